//! Heartbeats of sources, and silence.

use super::{Scene, Seen};
use crate::model::{ModelMode, ModelRecord};

pub(super) fn note(seen: &mut Seen, scene: &Scene<'_>) {
    let (outcome, watermarks) = (scene.outcome, scene.outcome.watermarks);
    let has_heartbeat =
        scene.read.iter().any(|record| matches!(record, ModelRecord::Heartbeat { .. }));
    let quiet: Vec<i64> = scene.read.iter().filter_map(quiet_millis).collect();
    let timeout = scene.settings.idle_timeout_millis;

    seen.note("a batch of heartbeats alone", outcome.events_in == 0 && !scene.read.is_empty());
    seen.note("a heartbeat moves the watermark", {
        let newest = scene.events().map(|event| event.micros).max();
        let by_events = newest
            .map_or(i64::MIN, |newest| newest.div_euclid(1_000))
            .saturating_sub(scene.settings.delay_millis);
        has_heartbeat
            && watermarks.next_by_sources > watermarks.current_by_sources
            && watermarks.next_by_sources > by_events
    });
    seen.note("a heartbeat in complete mode", {
        has_heartbeat && scene.rules.mode == ModelMode::Complete
    });
    seen.note("a silence exactly as long as the timeout", {
        quiet.iter().any(|quiet| Some(*quiet) == timeout)
    });
    seen.note("a silence one millisecond too short", {
        quiet.iter().any(|quiet| Some(quiet + 1) == timeout)
    });
    seen.note("a silence that the query does not ask for", !quiet.is_empty() && timeout.is_none());
    let by_silence = outcome.state_removed.iter().filter(|(_, by_silence)| *by_silence).count();
    let by_sources = outcome.state_removed.len() - by_silence;
    seen.note("closed by silence", by_silence > 0);
    seen.note("some closed by silence and some by their sources", by_silence > 0 && by_sources > 0);
    seen.note("a session closed by silence", by_silence > 0 && scene.rules.windows.are_sessions());
    seen.note("late for a window that silence closed", {
        let late = |end: i64| end > watermarks.current_by_sources * 1_000;
        outcome.dropped.iter().any(|entry| !entry.is_duplicate && late(entry.key.0))
    });
    seen.note("the sources catch up with the silence", {
        watermarks.current_by_sources < watermarks.current
            && watermarks.next_by_sources == watermarks.next
    });
}

fn quiet_millis(record: &ModelRecord) -> Option<i64> {
    match record {
        ModelRecord::IdleHeartbeat { quiet_millis, .. } => Some(*quiet_millis),
        ModelRecord::Event(_) | ModelRecord::Heartbeat { .. } => None,
    }
}
