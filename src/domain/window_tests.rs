//! Boundaries of windows.

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
        let windows: Vec<Window> = spec.windows_of(time.parse().expect("a time")).collect();
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

#[test]
fn a_sliding_event_belongs_to_every_window_that_holds_it() {
    for (case, size, slide, offset, time, starts) in [
        ("four of them", 60, 15, 0, "09:50:00Z", vec!["09:45", "09:30", "09:15", "09:00"]),
        ("at a start", 60, 15, 0, "10:00:00Z", vec!["10:00", "09:45", "09:30", "09:15"]),
        ("slide does not divide size", 10, 4, 0, "09:09:00Z", vec!["09:08", "09:04", "09:00"]),
        ("one less just before a start", 10, 4, 0, "09:11:00Z", vec!["09:08", "09:04"]),
        ("an offset", 10, 5, 2, "09:06:59Z", vec!["09:02", "08:57"]),
        ("side by side", 10, 10, 0, "09:06:59Z", vec!["09:00"]),
    ] {
        let minutes = |count: i64| format!("{count} minutes").parse().expect("a span");
        let spec = WindowSpec::Sliding {
            size: minutes(size),
            slide: minutes(slide),
            offset: minutes(offset),
        };
        let time = format!("2026-10-01T{time}").parse().expect("a time");
        let windows: Vec<Window> = spec.windows_of(time).collect();
        let shown: Vec<String> =
            windows.iter().map(|window| window.start.to_string()[11..16].to_owned()).collect();
        assert_eq!(shown, starts, "{case}");
        assert!(windows.iter().all(|window| window.end == window.start.plus(minutes(size))));
    }
}

#[test]
fn an_event_opens_a_session_of_its_own() {
    let time: EventTime = "1969-12-31T23:59:59.999999Z".parse().expect("a time");
    let spec = WindowSpec::Session { gap: "1 second".parse().expect("a span") };
    let windows: Vec<Window> = spec.windows_of(time).collect();
    assert_eq!(windows, [Window { start: time, end: EventTime::from_micros(999_999) }]);
}

#[test]
fn a_range_is_closed_once_every_window_that_starts_in_it_is() {
    let minutes = |count: i64| format!("{count} minutes").parse().expect("a span");
    let hours = WindowSpec::Tumbling { size: minutes(60), offset: minutes(0) };
    let sliding = WindowSpec::Sliding { size: minutes(60), slide: minutes(15), offset: minutes(0) };
    let sessions = WindowSpec::Session { gap: minutes(1) };
    for (case, spec, end, watermark, is_closed) in [
        ("its end is the watermark", hours, "10:00:00Z", "10:00:00Z", true),
        ("one millisecond before", hours, "10:00:00Z", "09:59:59.999Z", false),
        ("the end is inside the last window", hours, "09:00:00.000001Z", "09:59:59Z", false),
        ("which the watermark has passed", hours, "09:00:00.000001Z", "10:00:00Z", true),
        ("the window at the end is not in the range", hours, "09:00:00Z", "09:00:00Z", true),
        ("the last that starts goes on", sliding, "10:00:00Z", "10:44:59Z", false),
        ("it has ended", sliding, "10:00:00Z", "10:45:00Z", true),
        ("nobody knows when a session began", sessions, "09:00:00Z", "12:00:00Z", false),
    ] {
        let time =
            |clock: &str| -> EventTime { format!("2026-10-01T{clock}").parse().expect("a time") };
        let watermark = Watermark::from_millis(time(watermark).as_micros() / 1_000);
        assert_eq!(spec.is_closed_before(time(end), watermark), is_closed, "{case}");
    }
    let long_ago = EventTime::from_micros(-3_600_000_000);
    assert!(!hours.is_closed_before(long_ago, Watermark::EPOCH), "nothing was read yet");
}
