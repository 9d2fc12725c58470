//! Which windows an event belongs to.

use crate::domain::{EventTime, Window, WindowSpec};

/// The windows that hold `time`; of tumbling windows it is one.
pub(super) fn windows_of(spec: WindowSpec, time: EventTime) -> impl Iterator<Item = Window> {
    match spec {
        WindowSpec::Tumbling { size, offset } => {
            let start = time.floor_to(size, offset);
            std::iter::once(Window { start, end: start.plus(size) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_holds_its_start_but_not_its_end() {
        for (case, size, offset, time, start, end) in [
            (
                "its start",
                "1 hour",
                "0 seconds",
                "2026-10-01T09:00:00Z",
                "2026-10-01T09:00:00Z",
                "2026-10-01T10:00:00Z",
            ),
            (
                "the last microsecond",
                "1 hour",
                "0 seconds",
                "2026-10-01T09:59:59.999999Z",
                "2026-10-01T09:00:00Z",
                "2026-10-01T10:00:00Z",
            ),
            (
                "its end opens the next",
                "1 hour",
                "0 seconds",
                "2026-10-01T10:00:00Z",
                "2026-10-01T10:00:00Z",
                "2026-10-01T11:00:00Z",
            ),
            (
                "before 1970",
                "1 hour",
                "0 seconds",
                "1969-12-31T23:59:59Z",
                "1969-12-31T23:00:00Z",
                "1970-01-01T00:00:00Z",
            ),
            (
                "an offset",
                "1 hour",
                "15 minutes",
                "2026-10-01T09:10:00Z",
                "2026-10-01T08:15:00Z",
                "2026-10-01T09:15:00Z",
            ),
            (
                "an offset before 1970",
                "1 hour",
                "15 minutes",
                "1969-12-31T23:10:00Z",
                "1969-12-31T22:15:00Z",
                "1969-12-31T23:15:00Z",
            ),
            (
                "a size that divides no hour",
                "7 minutes",
                "0 seconds",
                "1970-01-01T00:13:59Z",
                "1970-01-01T00:07:00Z",
                "1970-01-01T00:14:00Z",
            ),
            (
                "the first year accepted",
                "1 day",
                "0 seconds",
                "1900-01-01T00:00:00Z",
                "1900-01-01T00:00:00Z",
                "1900-01-02T00:00:00Z",
            ),
            (
                "the last year accepted",
                "1 day",
                "0 seconds",
                "2199-12-31T23:59:59Z",
                "2199-12-31T00:00:00Z",
                "2200-01-01T00:00:00Z",
            ),
        ] {
            let spec = WindowSpec::Tumbling {
                size: size.parse().expect("a span"),
                offset: offset.parse().expect("a span"),
            };
            let windows: Vec<Window> = windows_of(spec, time.parse().expect("a time")).collect();
            let want = Window {
                start: start.parse().expect("a time"),
                end: end.parse().unwrap_or_else(|_| {
                    // 2200-01-01 is a window's end, though no event may have that time.
                    EventTime::from_micros(7_258_118_400_000_000)
                }),
            };
            assert_eq!(windows, [want], "{case}");
        }
    }
}
