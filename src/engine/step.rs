//! One micro-batch, in the order of semantics.md: filter, late, aggregate, close, advance.

use crate::domain::{LoggedEvent, OutputMode};

use super::deltas::Deltas;
use super::{EventTimeRange, Outcome, Row, Rules, State};

/// Runs one micro-batch over `events`, the next run of the raw log, and moves `state` on.
///
/// Without events it is the batch without data, which only applies the watermark that was reached.
/// The answer is nothing, and the state as it was, when there is no batch to report: no event
/// passes the filter, or no batch without data is owed.
pub fn step(rules: &Rules, state: &mut State, events: &[LoggedEvent]) -> Option<Outcome> {
    let matching: Vec<&LoggedEvent> =
        events.iter().filter(|logged| rules.filter.matches(&logged.event)).collect();
    let applies_watermark = events.is_empty() && state.owes_batch_without_data(rules.output_mode);
    if matching.is_empty() && !applies_watermark {
        return None;
    }
    let mut deltas = Deltas::of(rules, state, &matching);
    let (late_watermark, watermark) = state.begin_batch();
    let (late_events, dropped) = (deltas.late_events, std::mem::take(&mut deltas.dropped));
    let mut changed = Vec::new();
    for (key, added) in deltas.into_additions() {
        let totals = state.add(key.clone(), added);
        changed.push(Row { key, totals });
    }
    let windows_updated = count(&changed);
    let closed =
        if rules.output_mode == OutputMode::Complete { Vec::new() } else { state.take_closed() };
    let event_time = EventTimeRange::of(matching.iter().map(|logged| logged.event.event_time));
    if let Some(range) = event_time {
        state.advance(range.max, rules.watermark_delay);
    }
    let state_removed = closed.iter().map(|row| row.key.clone()).collect();
    let rows = match rules.output_mode {
        OutputMode::Append => closed,
        OutputMode::Update => changed.clone(),
        OutputMode::Complete => state.rows(),
    };
    if rules.output_mode != OutputMode::Complete {
        changed.retain(|row| !row.key.window.is_closed_at(watermark));
    }
    Some(Outcome {
        late_watermark,
        watermark,
        next_watermark: state.next_watermark(),
        newest_event_time: state.newest_event_time(),
        events_in: count(&matching),
        late_events,
        event_time,
        rows,
        state_changed: changed,
        state_removed,
        windows_updated,
        windows_open: state.open_windows(),
        dropped,
    })
}

fn count<T>(items: &[T]) -> u64 {
    items.len().try_into().unwrap_or(u64::MAX)
}
