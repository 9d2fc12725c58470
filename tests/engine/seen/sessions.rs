//! Sessions that grow, touch, merge and end.

use super::{Scene, Seen};
use crate::model::{ModelKey, ModelRow, covers, keys_of};

pub(super) fn note(seen: &mut Seen, scene: &Scene<'_>) {
    if !scene.rules.windows.are_sessions() {
        return;
    }
    note_merging(seen, scene);
    let (late, _) = scene.watermarks();
    let opened = || scene.events().flat_map(|event| keys_of(scene.rules, event));
    let has_old = |found: &dyn Fn(&ModelKey, &ModelKey) -> bool| {
        opened().any(|own| scene.open_before.iter().any(|old| found(&old.0, &own)))
    };
    seen.note("an event at exactly the end of its session", {
        has_old(&|old, own| is_alike(old, own) && old.0 == own.1 && own.0 > late)
    });
    seen.note("an event whose gap ends where a session begins", {
        has_old(&|old, own| is_alike(old, own) && old.1 == own.0 && own.0 > late)
    });
    seen.note("late, though an open session begins within its gap", {
        has_old(&|old, own| is_alike(old, own) && old.1 <= own.0 && own.0 <= late)
    });
    seen.note("in time, though the session it would have been part of is closed", {
        let closed = |own: &ModelKey| {
            scene
                .table
                .iter()
                .any(|(old, ..)| is_alike(old, own) && old.0 <= late && own.1 <= old.0)
        };
        opened().any(|own| own.0 > late && closed(&own))
    });
    seen.note("sessions one microsecond apart", {
        let apart = |one: &ModelRow, other: &ModelRow| {
            is_alike(&one.0, &other.0) && one.0.0 + 1 == other.0.1
        };
        scene.open.iter().any(|one| scene.open.iter().any(|other| apart(one, other)))
    });
}

fn note_merging(seen: &mut Seen, scene: &Scene<'_>) {
    let closed = scene.outcome.rows.iter();
    for now in scene.open.iter().chain(closed) {
        let parts: Vec<_> = scene.open_before.iter().filter(|old| covers(&now.0, &old.0)).collect();
        let oldest = parts.iter().map(|old| old.0.1).min();
        let newest = parts.iter().map(|old| old.0.0).max();
        let grew = oldest > Some(now.0.1) || newest < Some(now.0.0);
        seen.note("a session grew backwards", oldest > Some(now.0.1));
        seen.note("a session grew forwards", newest.is_some_and(|newest| newest < now.0.0));
        seen.note("a late bridge merges sessions", parts.len() > 1 && !grew);
        seen.note("a bridge merges three sessions", parts.len() > 2);
        seen.note("a session grew and merged in one batch", parts.len() > 1 && grew);
    }
    let merged_and_closed = scene
        .outcome
        .rows
        .iter()
        .any(|row| scene.open_before.iter().filter(|old| covers(&row.0, &old.0)).count() > 1);
    seen.note("sessions merged by the batch that closes them", merged_and_closed);
}

/// Whether both are of the same currency and group.
fn is_alike(one: &ModelKey, other: &ModelKey) -> bool {
    (&one.2, &one.3) == (&other.2, &other.3)
}
