//! Windows that overlap: an event counts in each of them, and may be late for some.

use tillmark::domain::OutputMode;

use crate::builders::{Sale, TestQuery, a_sale, an_hourly_query, shown, shown_dropped, sliding};

/// Windows of an hour, one every quarter of an hour, closed without any delay.
fn an_hour_every_quarter() -> TestQuery {
    an_hourly_query().with_sliding_windows("1 hour", "15 minutes").with_delay("0 seconds")
}

#[test]
fn an_event_counts_in_every_window_that_holds_it() {
    for (case, size, slide, offset, sale, starts) in [
        ("inside", "10 minutes", "5 minutes", "0 seconds", "09:07", &["09:00", "09:05"][..]),
        ("on a start", "10 minutes", "5 minutes", "0 seconds", "09:10", &["09:05", "09:10"]),
        (
            "the microsecond before an end",
            "10 minutes",
            "5 minutes",
            "0 seconds",
            "09:09:59.999999",
            &["09:00", "09:05"],
        ),
        ("an offset", "10 minutes", "5 minutes", "2 minutes", "09:06", &["08:57", "09:02"]),
        (
            "a slide that does not divide the size",
            "10 minutes",
            "4 minutes",
            "0 seconds",
            "09:09",
            &["09:00", "09:04", "09:08"],
        ),
        (
            "the same, where one window less holds it",
            "10 minutes",
            "4 minutes",
            "0 seconds",
            "09:11",
            &["09:04", "09:08"],
        ),
        ("side by side", "10 minutes", "10 minutes", "0 seconds", "09:10", &["09:10"]),
    ] {
        let mut query = an_hourly_query();
        query.rules.window = sliding(size, slide, offset);
        let outcome = query.batch([a_sale(sale)]);
        let expected: Vec<String> =
            starts.iter().map(|start| format!("{start}:00 1 10.00 USD")).collect();
        assert_eq!(shown(&outcome.state_changed), expected, "{case}");
        assert_eq!(outcome.events_in, 1, "{case}: one event all the same");
        assert_eq!(outcome.windows_open, outcome.windows_updated, "{case}");
    }
}

#[test]
fn an_event_is_late_for_the_windows_that_are_closed_and_counts_in_the_others() {
    for (case, watermark, missed) in [
        ("the oldest window ends at the watermark", "10:00", &["09:00"][..]),
        ("the watermark is one millisecond short", "09:59:59.999", &[]),
        ("two are closed", "10:15", &["09:15", "09:00"]),
        ("three are closed", "10:44:59.999", &["09:30", "09:15", "09:00"]),
        ("all four are", "10:45", &["09:45", "09:30", "09:15", "09:00"]),
    ] {
        let mut query = an_hour_every_quarter();
        query.run([a_sale(watermark)]);
        let outcome = query.batch([a_sale("09:50")]);
        let entries: Vec<String> =
            outcome.dropped.iter().map(|entry| entry.key.window.start.to_string()).collect();
        let expected: Vec<String> =
            missed.iter().map(|start| format!("2026-10-01T{start}:00Z")).collect();
        assert_eq!(entries, expected, "{case}");
        let is_late = u64::from(!missed.is_empty());
        assert_eq!(outcome.late_events, is_late, "{case}: an event, however many it missed");
        assert_eq!(outcome.state_changed.len(), 4 - missed.len(), "{case}");
    }
}

#[test]
fn late_events_are_counted_as_events_not_as_the_windows_they_missed() {
    let mut query = an_hour_every_quarter().grouped_by(["store_id"]);
    query.run([a_sale("10:15")]);
    let outcome = query.batch([
        a_sale("09:50").in_store("1").of("1.00"),
        a_sale("09:20").in_store("1").of("2.00"),
        a_sale("10:20").in_store("1"),
    ]);
    assert_eq!((outcome.events_in, outcome.late_events), (3, 2));
    assert_eq!(
        shown_dropped(&outcome.dropped),
        [
            "#2 missed 09:15:00 with 1.00 USD 1, late by 25 minutes",
            "#2 missed 09:00:00 with 1.00 USD 1, late by 25 minutes",
            "#3 missed 09:15:00 with 2.00 USD 1, late by 55 minutes",
            "#3 missed 09:00:00 with 2.00 USD 1, late by 55 minutes",
            "#3 missed 08:45:00 with 2.00 USD 1, late by 55 minutes",
            "#3 missed 08:30:00 with 2.00 USD 1, late by 55 minutes",
        ]
    );
}

#[test]
fn overlapping_windows_close_one_by_one_each_at_its_own_end() {
    for (case, newest, closed) in [
        ("one millisecond short of the first's end", "09:59:59.999", &[][..]),
        ("the first ends at the watermark", "10:00", &["09:00:00 2 20.00 USD"]),
        ("one millisecond short of the second's", "10:14:59.999", &["09:00:00 2 20.00 USD"]),
        ("and the second", "10:15", &["09:00:00 2 20.00 USD", "09:15:00 2 20.00 USD"]),
    ] {
        let mut query = an_hour_every_quarter();
        query.batch(["09:50", "09:51"].map(a_sale));
        assert_eq!(query.run([a_sale(newest)]), closed, "{case}");
    }
}

#[test]
fn an_update_query_writes_the_windows_that_an_event_still_reaches() {
    let mut query = an_hour_every_quarter().in_mode(OutputMode::Update);
    query.run([a_sale("10:15")]);
    let outcome = query.batch([a_sale("09:50")]);
    assert_eq!(shown(&outcome.rows), ["09:30:00 2 20.00 USD", "09:45:00 2 20.00 USD"]);
    assert_eq!(outcome.late_events, 1);
}

#[test]
fn in_complete_mode_an_event_is_late_for_no_window() {
    let mut query = an_hour_every_quarter().in_mode(OutputMode::Complete);
    query.batch([a_sale("15:00")]);
    query.batch([a_sale("16:00")]);
    let outcome = query.batch([a_sale("09:50")]);
    assert_eq!((outcome.late_events, outcome.dropped.len()), (0, 0));
    assert_eq!(outcome.rows.len(), 4 + 8);
}
