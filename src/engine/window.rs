//! Which windows an event belongs to.

use crate::domain::{EventTime, Window, WindowSpec};

/// The windows that hold `time`, the newest first. Of tumbling windows it is one; of sliding ones
/// every window that holds it; of sessions the one that the event opens, before any merging.
pub(super) fn windows_of(spec: WindowSpec, time: EventTime) -> impl Iterator<Item = Window> {
    let (newest, slide) = match spec {
        WindowSpec::Tumbling { size, offset } => {
            let start = time.floor_to(size, offset);
            (Window { start, end: start.plus(size) }, None)
        }
        WindowSpec::Sliding { size, slide, offset } => {
            let start = time.floor_to(slide, offset);
            (Window { start, end: start.plus(size) }, Some(slide))
        }
        WindowSpec::Session { gap } => (Window { start: time, end: time.plus(gap) }, None),
    };
    std::iter::successors(Some(newest), move |window| {
        let slide = slide?;
        let before = Window { start: window.start.minus(slide), end: window.end.minus(slide) };
        // A bound that cannot move any further would never end.
        (before.end > time && before.start < window.start).then_some(before)
    })
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
