//! What is late, what closes, and what is added together.

use super::{Scene, Seen};
use crate::model::{ModelMode, ModelWindows, keys_of};

pub(super) fn note(seen: &mut Seen, scene: &Scene<'_>) {
    note_lateness(seen, scene);
    note_sliding(seen, scene);
    note_sums(seen, scene);
}

fn note_lateness(seen: &mut Seen, scene: &Scene<'_>) {
    let (late, closing) = scene.watermarks();
    let (outcome, closes) = (scene.outcome, scene.rules.closes());
    let ends_at = |time: i64| {
        let mut keys = scene.events().flat_map(|event| keys_of(scene.rules, event));
        keys.any(|key| key.0 == time)
    };
    seen.note("late events", outcome.late_events > 0);
    seen.note("only late events", {
        outcome.late_events > 0 && outcome.late_events == outcome.events_in
    });
    seen.note("a window that ends at the late watermark", closes && ends_at(late));
    seen.note("a window that ends at the closing watermark", {
        closes && late < closing && ends_at(closing)
    });
    seen.note("a window that ends one microsecond after the late watermark", {
        closes && ends_at(late + 1)
    });
    let changed: u64 = outcome.state_changed.len().try_into().unwrap();
    seen.note("its own batch closes the window", changed < outcome.windows_updated);
    seen.note("data applies the watermark that was owed", outcome.events_in > 0 && late < closing);
    seen.note("a batch without data", scene.read.is_empty());
    seen.note("late in update mode", {
        scene.rules.mode == ModelMode::Update && outcome.late_events > 0
    });
    seen.note("one batch closes windows of several ends", {
        let removed = &outcome.state_removed;
        removed.first().map(|one| one.0.0) != removed.last().map(|one| one.0.0)
    });
}

fn note_sliding(seen: &mut Seen, scene: &Scene<'_>) {
    let ModelWindows::Sliding { size, slide, .. } = scene.rules.windows else { return };
    let is_cut = |windows: usize, missed: usize| missed > 0 && missed < windows;
    let is_partly_late = scene
        .events()
        .any(|event| is_cut(keys_of(scene.rules, event).len(), scene.times_dropped(event)));
    seen.note("a sliding event late for some of its windows", is_partly_late);
    seen.note("late for some in update mode", {
        is_partly_late && scene.rules.mode == ModelMode::Update
    });
    seen.note("a slide that does not divide the size", {
        size % slide != 0 && !scene.outcome.rows.is_empty()
    });
    seen.note("sliding in complete mode", {
        scene.rules.mode == ModelMode::Complete && scene.outcome.events_in > 0
    });
}

fn note_sums(seen: &mut Seen, scene: &Scene<'_>) {
    let times = scene.outcome.event_times;
    seen.note("before 1970", times.is_some_and(|(oldest, ..)| oldest < 0));
    let mut written = scene.table.iter();
    seen.note("more money than 64 bits hold", {
        written.any(|(_, _, money)| i64::try_from(*money).is_err())
    });
    seen.note("two currencies in one window", {
        let keys: Vec<_> = scene.table.iter().map(|row| &row.0).collect();
        keys.windows(2)
            .any(|two| (two[0].0, two[0].1) == (two[1].0, two[1].1) && two[0].2 != two[1].2)
    });
    seen.note("a group without a value", {
        scene.table.iter().any(|((.., group), ..)| group.contains(&None))
    });
}
