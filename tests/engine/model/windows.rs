//! Windows by trying every start, and sessions by merging over and over.

use super::log::{ModelEvent, ModelRules, ModelWindows};

/// Window end, window start, currency and group: in the order in which rows are written.
pub(crate) type ModelKey = (i64, i64, String, Vec<Option<String>>);
/// A key with its events and money.
pub(crate) type ModelRow = (ModelKey, i64, i128);

/// Every key that an event counts under by itself: one per window that holds it; with sessions the
/// one that it opens.
pub(crate) fn keys_of(rules: &ModelRules, event: &ModelEvent) -> Vec<ModelKey> {
    let group = event.values(&rules.group_by);
    let windows = bounds_of(rules.windows, event.micros).into_iter();
    windows.map(|(start, end)| (end, start, event.currency.clone(), group.clone())).collect()
}

fn bounds_of(windows: ModelWindows, micros: i64) -> Vec<(i64, i64)> {
    match windows {
        ModelWindows::Tumbling { size, offset } => {
            every_start(micros, size * 1_000, size * 1_000, offset * 1_000)
        }
        ModelWindows::Sliding { size, slide, offset } => {
            every_start(micros, size * 1_000, slide * 1_000, offset * 1_000)
        }
        ModelWindows::Session { gap } => vec![(micros, micros + gap * 1_000)],
    }
}

/// Tries the starts around `micros`, from one that is surely too early.
fn every_start(micros: i64, size: i64, slide: i64, offset: i64) -> Vec<(i64, i64)> {
    let mut start = offset + ((micros - offset - size) / slide - 2) * slide;
    let mut bounds = Vec::new();
    while start <= micros {
        if micros < start + size {
            bounds.push((start, start + size));
        }
        start += slide;
    }
    bounds
}

/// Whether `key` is the window, or the session, that `own` of an event went into.
pub(crate) fn covers(key: &ModelKey, own: &ModelKey) -> bool {
    key.1 <= own.1 && own.0 <= key.0 && (&key.2, &key.3) == (&own.2, &own.3)
}

/// Adds up rows of equal keys; ordered by key.
pub(crate) fn add_rows(rows: impl IntoIterator<Item = ModelRow>) -> Vec<ModelRow> {
    let mut sums: Vec<ModelRow> = Vec::new();
    for (key, orders, money) in rows {
        match sums.iter_mut().find(|(known, ..)| *known == key) {
            Some((_, known_orders, known_money)) => {
                *known_orders += orders;
                *known_money += money;
            }
            None => sums.push((key, orders, money)),
        }
    }
    sums.sort();
    sums
}

/// Makes one of rows of the same keys that overlap or touch, until there are none; ordered by key.
pub(crate) fn merge_rows(rows: impl IntoIterator<Item = ModelRow>) -> Vec<ModelRow> {
    let mut merged: Vec<ModelRow> = Vec::new();
    for mut row in rows {
        while let Some(at) = merged.iter().position(|other| touch(&other.0, &row.0)) {
            let (other, orders, money) = merged.swap_remove(at);
            row.0.0 = row.0.0.max(other.0);
            row.0.1 = row.0.1.min(other.1);
            row.1 += orders;
            row.2 += money;
        }
        merged.push(row);
    }
    merged.sort();
    merged
}

fn touch(one: &ModelKey, other: &ModelKey) -> bool {
    one.1 <= other.0 && other.1 <= one.0 && (&one.2, &one.3) == (&other.2, &other.3)
}
