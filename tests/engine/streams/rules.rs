//! Random queries: every kind of windows, with everything it can be combined with.

use super::{Choices, one_in, pick};
use crate::model::{ModelMode, ModelRules, ModelSettings, ModelWindows};

const SIZES_MILLIS: [i64; 9] =
    [1, 10, 1_000, 1_500, 10_000, 60_000, 420_000, 3_600_000, 86_400_000];
const FILTERS: [&[(&str, &[&str])]; 6] = [
    &[],
    &[],
    &[],
    &[("status", &["placed"])],
    &[("status", &["placed", "refunded"]), ("attributes.channel", &["web"])],
    &[("store_id", &["1", "10"])],
];
const GROUPS: [&[&str]; 8] = [
    &[],
    &[],
    &[],
    &["store_id"],
    &["attributes.channel", "store_id"],
    &["store_id", "attributes.channel"],
    &["status"],
    &["till_id", "customer_id"],
];
const DUPLICATE_KEYS: [&[&str]; 7] = [
    &["order_id"],
    &["order_id"],
    &["order_id", "status"],
    &["event_id"],
    &["customer_id", "order_id"],
    &["item_count", "store_id", "attributes.channel"],
    &["currency", "amount", "event_time"],
];

pub(super) fn random_rules(rng: &mut Choices) -> ModelRules {
    let windows = random_windows(rng);
    let mode = match rng.u32(..6) {
        _ if windows.are_sessions() => ModelMode::Append,
        0 => ModelMode::Complete,
        1 | 2 => ModelMode::Update,
        _ => ModelMode::Append,
    };
    let may_deduplicate = mode != ModelMode::Complete;
    let deduplicate = may_deduplicate && rng.u32(..5) < 2;
    ModelRules {
        filter: pick(rng, &FILTERS)
            .iter()
            .map(|&(field, any)| (field, any.iter().map(|&value| value.to_owned()).collect()))
            .collect(),
        windows,
        group_by: random_groups(rng, windows),
        deduplicate: if deduplicate { pick(rng, &DUPLICATE_KEYS).to_vec() } else { vec![] },
        mode,
    }
}

/// Mostly none for sessions: the fewer there are, the more they have to do with each other.
fn random_groups(rng: &mut Choices, windows: ModelWindows) -> Vec<&'static str> {
    if windows.are_sessions() && !one_in(rng, 3) { vec![] } else { pick(rng, &GROUPS).to_vec() }
}

fn random_windows(rng: &mut Choices) -> ModelWindows {
    let size = pick(rng, &SIZES_MILLIS);
    match rng.u32(..10) {
        0..3 => ModelWindows::Tumbling { size, offset: random_offset(rng, size) },
        3..6 => {
            let slide = random_slide(rng, size);
            ModelWindows::Sliding { size, slide, offset: random_offset(rng, slide) }
        }
        _ => ModelWindows::Session { gap: size },
    }
}

/// Mostly quarters of the size, of which three do not divide it; never so short that an event has
/// more than six windows.
fn random_slide(rng: &mut Choices, size: i64) -> i64 {
    if one_in(rng, 3) { rng.i64(size / 6 + 1..=size) } else { (size * rng.i64(1..=4) / 4).max(1) }
}

fn random_offset(rng: &mut Choices, below: i64) -> i64 {
    if rng.bool() { 0 } else { rng.i64(0..below) }
}

pub(super) fn random_settings(rng: &mut Choices, windows: ModelWindows) -> ModelSettings {
    let length = length_of(windows);
    // Often a multiple of a quarter of the window, so that watermarks meet windows' ends exactly.
    let delay_millis = match rng.u32(..12) {
        // Long enough for a till that was offline.
        5..12 if windows.are_sessions() && rng.bool() => length * rng.i64(4..=120) / 4,
        0 | 1 => 0,
        2 => 1,
        3 => pick(rng, &[length * 4, length * 4, 3_660 * 86_400_000]),
        4 => rng.i64(0..=length * 3),
        5 => length,
        6 => length * rng.i64(4..=20) / 4,
        _ => length * rng.i64(0..=8) / 4,
    };
    let idle_timeout_millis = pick(rng, &[None, Some(60_000), Some(90_000)]);
    ModelSettings { delay_millis, idle_timeout_millis }
}

/// The size or gap, in milliseconds.
pub(super) fn length_of(windows: ModelWindows) -> i64 {
    match windows {
        ModelWindows::Tumbling { size, .. } | ModelWindows::Sliding { size, .. } => size,
        ModelWindows::Session { gap } => gap,
    }
}

/// How far a window's bounds stand from the epoch, in milliseconds.
pub(super) fn offset_of(windows: ModelWindows) -> i64 {
    match windows {
        ModelWindows::Tumbling { offset, .. } | ModelWindows::Sliding { offset, .. } => offset,
        ModelWindows::Session { .. } => 0,
    }
}
