//! Keys remembered, recognised, and forgotten.

use super::{Scene, Seen};
use crate::model::{ModelEvent, ModelMode, ModelWindows};

pub(super) fn note(seen: &mut Seen, scene: &Scene<'_>) {
    if !scene.rules.has_duplicates_rule() {
        return;
    }
    let (late, closing) = scene.watermarks();
    let outcome = scene.outcome;
    let duplicates = outcome.duplicates > 0;
    seen.note("a duplicate", duplicates);
    seen.note("a duplicate in update mode", {
        duplicates && scene.rules.mode == ModelMode::Update
    });
    seen.note("a duplicate among sessions", duplicates && scene.rules.windows.are_sessions());
    seen.note("a duplicate among sliding windows", {
        duplicates && matches!(scene.rules.windows, ModelWindows::Sliding { .. })
    });
    seen.note("duplicates and late events in one batch", duplicates && outcome.late_events > 0);
    seen.note("an event at exactly the late watermark", {
        scene.events().any(|event| event.micros == late)
    });
    seen.note("an event one microsecond after the late watermark", {
        scene.events().any(|event| event.micros == late + 1)
    });
    seen.note("late by its time, though its window is open", {
        outcome.dropped.iter().any(|entry| !entry.is_duplicate && entry.key.0 > late)
    });
    seen.note("a key that expires at exactly the watermark", {
        scene.remembered_before.iter().any(|(expires_at, _)| *expires_at == closing)
    });
    seen.note("a key that expires one microsecond after the watermark", {
        scene.remembered_before.iter().any(|(expires_at, _)| *expires_at == closing + 1)
    });
    let expired = scene.remembered_before.iter().filter(|(expires_at, _)| *expires_at <= closing);
    let expired: u64 = expired.count().try_into().unwrap();
    seen.note("a key remembered and forgotten by one batch", outcome.keys_forgotten > expired);
    seen.note("a repeat", !scene.accounts.repeats.is_empty());
    seen.note("repeats in the recount's duplicates' window", {
        let mut repeats = scene.accounts.repeats.iter();
        repeats.any(|row| scene.accounts.duplicates.iter().any(|other| other.0 == row.0))
    });
    note_counted_again(seen, scene);
}

fn note_counted_again(seen: &mut Seen, scene: &Scene<'_>) {
    let values = |event: &ModelEvent| event.values(&scene.rules.deduplicate);
    let is_counted = |event: &ModelEvent| scene.times_dropped(event) == 0;
    for event in scene.events() {
        let earlier: Vec<_> =
            scene.events_before().filter(|other| values(other) == values(event)).collect();
        let any_counted = earlier.iter().any(|other| is_counted(other));
        seen.note("a duplicate of a forgotten key counts", is_counted(event) && any_counted);
        seen.note("its key's first event was late, so this one counts", {
            is_counted(event) && !earlier.is_empty() && !any_counted
        });
        seen.note("a duplicate within the batch", {
            let first = scene.events().find(|other| values(other) == values(event));
            first.is_some_and(|first| first.seq < event.seq && is_counted(first))
        });
    }
}
