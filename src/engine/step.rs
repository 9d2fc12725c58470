//! One micro-batch, in the order of semantics.md: filter, late, duplicates, aggregate, close,
//! advance.

use std::collections::BTreeMap;

use crate::domain::{OutputMode, Totals, WindowKey, WindowSpec};

use super::reading::Reading;
use super::{Batch, Outcome, Row, Rules, State};

/// Runs one micro-batch over `batch`, the next run of the raw log, and moves `state` on.
///
/// Without records it is the batch without data, which only applies the watermark that was reached.
/// The answer is nothing, and the state as it was, when there is no batch to report: no event
/// passes the filter and there is no heartbeat, or no batch without data is owed.
pub fn step(rules: &Rules, state: &mut State, batch: &Batch) -> Option<Outcome> {
    let reading = Reading::of(rules, state, batch);
    let applies_watermark = batch.is_empty() && state.owes_batch_without_data(rules.output_mode);
    if reading.is_empty() && !applies_watermark {
        return None;
    }
    let before = state.watermarks();
    let (newest, event_times) = (reading.newest(), reading.event_times);
    let merged = Merged::into_state(rules, state, reading);
    state.begin_batch();
    let watermark = state.watermarks().current;
    // Only there so that `tests/defects` can show that a wrong comparison is noticed.
    #[cfg(feature = "defects")]
    let watermark = rules.defective_closing_watermark(watermark);
    let closes = rules.output_mode != OutputMode::Complete;
    let closed = if closes { state.windows.take_closed(watermark) } else { Vec::new() };
    let keys_forgotten = state.duplicates.forget(watermark);
    state.advance(newest, rules.watermark_delay);

    let Merged { mut changed, merged_away, dropped, late_events, duplicates, remembered } = merged;
    let windows_updated = count(&changed);
    let state_removed = closed.iter().map(|row| row.key.clone()).collect();
    let rows = match rules.output_mode {
        OutputMode::Append => closed,
        OutputMode::Update => changed.clone(),
        OutputMode::Complete => state.windows.rows(),
    };
    if closes {
        changed.retain(|row| !row.key.window.is_closed_at(watermark));
    }
    Some(Outcome {
        late_watermark: before.current,
        watermark_by_sources: before.next_by_sources,
        watermarks: state.watermarks(),
        newest_event_time: state.newest_event_time(),
        events_in: event_times.count,
        late_events,
        duplicates,
        event_time: event_times.range(),
        rows,
        state_changed: changed,
        state_removed,
        state_merged: merged_away,
        windows_updated,
        windows_open: state.open_windows(),
        dropped,
        keys_remembered: remembered
            .into_iter()
            .filter(|remembered| remembered.expires_at > watermark.as_event_time())
            .collect(),
        keys_forgotten,
    })
}

/// What a batch did to the open windows, before any of them closes.
#[derive(Debug, Default)]
struct Merged {
    /// Windows that it added to, ordered by key.
    changed: Vec<Row>,
    /// Sessions, of this batch and of earlier ones, that are part of a larger one now.
    merged_away: Vec<WindowKey>,
    dropped: Vec<super::Dropped>,
    late_events: u64,
    duplicates: u64,
    remembered: Vec<super::Remembered>,
}

impl Merged {
    fn into_state(rules: &Rules, state: &mut State, reading: Reading) -> Self {
        let Reading { groups, tally, sessions, dropped, late_events, duplicates, .. } = reading;
        let remembered = reading.remembered;
        let mut merged = Self { dropped, late_events, duplicates, remembered, ..Self::default() };
        if let WindowSpec::Session { gap } = rules.window {
            let sessions = sessions
                .into_sessions(gap)
                .into_iter()
                .filter_map(|(number, window, totals)| Some((groups.get(number)?, window, totals)));
            let mut changed: BTreeMap<WindowKey, Totals> = BTreeMap::new();
            for (group, window, totals) in sessions {
                let (row, gone) = state.windows.merge_session(window, group, totals);
                for key in gone {
                    changed.remove(&key);
                    merged.merged_away.push(key);
                }
                changed.insert(row.key, row.totals);
            }
            merged.merged_away.sort_unstable();
            merged.changed = changed.into_iter().map(|(key, totals)| Row { key, totals }).collect();
        } else {
            for (key, added) in tally.into_additions(&groups) {
                let totals = state.windows.add(key.clone(), added);
                merged.changed.push(Row { key, totals });
            }
        }
        merged
    }
}

fn count<T>(items: &[T]) -> u64 {
    items.len().try_into().unwrap_or(u64::MAX)
}
