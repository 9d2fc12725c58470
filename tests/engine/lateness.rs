//! Which events are late, what of them is kept, and what closes.

use tillmark::domain::OutputMode;

use crate::builders::{Sale, TestQuery, a_sale, an_hourly_query, at, shown, shown_dropped};

/// A query whose last batch closed windows with this watermark; the hour of delay is behind it.
fn a_query_at(watermark_plus_an_hour: &str) -> TestQuery {
    let mut query = an_hourly_query();
    query.batch([a_sale(watermark_plus_an_hour)]);
    query.catch_up();
    query
}

#[test]
fn an_event_is_late_when_its_window_ends_at_or_before_the_watermark_of_the_batch_before() {
    for (case, newest, sale, late) in [
        ("the window ends at the watermark", "11:00", "09:59:59.999999", true),
        ("the watermark is one millisecond short", "10:59:59.999", "09:59:59.999999", false),
        ("its microseconds do not count", "10:59:59.999999", "09:00", false),
        ("the window ends one millisecond before", "11:00:00.001", "09:00", true),
        ("on the window's end it belongs to the next", "11:00", "10:00", false),
        ("older than the watermark, its window open", "11:30", "10:05", false),
        ("on the window's start", "11:00", "09:00", true),
    ] {
        let outcome = a_query_at(newest).batch([a_sale(sale)]);
        assert_eq!(outcome.late_events, u64::from(late), "{case}");
        assert_eq!(outcome.dropped.len(), usize::from(late), "{case}");
        assert_eq!(outcome.state_changed.is_empty(), late, "{case}");
    }
}

#[test]
fn a_window_is_final_when_it_ends_at_or_before_the_watermark() {
    for (case, newest, closes) in [
        ("it ends at the watermark", "11:00", true),
        ("the watermark is one millisecond short", "10:59:59.999", false),
        ("and microseconds do not make up for it", "10:59:59.999999", false),
        ("one millisecond beyond", "11:00:00.001", true),
    ] {
        let mut query = an_hourly_query();
        let rows = query.run([a_sale("09:30"), a_sale(newest)]);
        assert_eq!(rows.len(), usize::from(closes), "{case}");
        assert_eq!(query.open().len(), 2 - usize::from(closes), "{case}");
    }
}

#[test]
fn an_event_exactly_on_the_end_of_a_window_counts_in_the_next() {
    let mut query = an_hourly_query();
    let outcome = query.batch(["09:00", "09:59:59.999999", "10:00"].map(a_sale));
    assert_eq!(shown(&outcome.state_changed), ["09:00:00 2 20.00 USD", "10:00:00 1 10.00 USD"]);
}

#[test]
fn an_event_whose_window_this_very_batch_closes_still_counts() {
    let mut query = an_hourly_query();
    query.batch([a_sale("09:30"), a_sale("11:00")]);
    let outcome = query.batch([a_sale("09:45").of("2.50")]);
    assert_eq!(at(outcome.late_watermark), "1970-01-01T00:00:00.000Z");
    assert_eq!(at(outcome.watermarks.current), "10:00:00");
    assert_eq!(outcome.late_events, 0);
    assert_eq!(shown(&outcome.rows), ["09:00:00 2 12.50 USD"]);
    let outcome = query.batch([a_sale("09:46")]);
    assert_eq!(outcome.late_events, 1, "one batch later it is late");
    assert_eq!(outcome.rows, []);
}

#[test]
fn an_event_alone_in_a_window_that_its_own_batch_closes_is_written() {
    let mut query = an_hourly_query();
    query.batch([a_sale("12:00")]);
    let outcome = query.batch([a_sale("09:45")]);
    assert_eq!(shown(&outcome.rows), ["09:00:00 1 10.00 USD"]);
    assert_eq!(outcome.state_changed, []);
    assert_eq!(outcome.state_removed.len(), 1);
    assert_eq!((outcome.windows_updated, outcome.windows_open), (1, 1));
}

#[test]
fn a_batch_cannot_close_windows_with_its_own_events() {
    let mut query = an_hourly_query();
    let outcome = query.batch([a_sale("09:30"), a_sale("23:00"), a_sale("09:31")]);
    assert_eq!((outcome.rows.len(), outcome.late_events), (0, 0));
    assert_eq!(shown(&query.catch_up().rows), ["09:00:00 2 20.00 USD"]);
}

#[test]
fn with_no_delay_a_window_closes_as_soon_as_the_next_begins() {
    let mut query = an_hourly_query().with_delay("0 seconds");
    assert_eq!(query.run([a_sale("09:59:59.999")]), [""; 0]);
    assert_eq!(query.run([a_sale("10:00")]), ["09:00:00 1 10.00 USD"]);
    assert_eq!(query.batch([a_sale("09:59:59.999")]).late_events, 1);
}

#[test]
fn an_offset_moves_the_boundaries() {
    let mut query = an_hourly_query().with_windows("1 hour", "15 minutes").with_delay("0 seconds");
    let outcome = query.batch(["09:14:59.999999", "09:15", "10:14"].map(a_sale));
    assert_eq!(shown(&outcome.state_changed), ["08:15:00 1 10.00 USD", "09:15:00 2 20.00 USD"]);
    assert_eq!(shown(&query.catch_up().rows), ["08:15:00 1 10.00 USD"]);
    assert_eq!(query.run([a_sale("10:15")]), ["09:15:00 2 20.00 USD"]);
}

#[test]
fn before_1970_every_closed_window_is_late_and_the_one_that_reaches_over_is_not() {
    let mut query = an_hourly_query();
    let outcome =
        query.batch([a_sale("1969-12-31T22:30:00Z"), a_sale("1969-12-31T23:59:59.999999Z")]);
    assert_eq!(outcome.late_events, 2, "both windows end at or before the first watermark");
    assert_eq!(
        shown_dropped(&outcome.dropped),
        [
            "#1 missed 1969-12-31T22:00:00Z with 10.00 USD, late by 0 seconds",
            "#2 missed 1969-12-31T23:00:00Z with 10.00 USD, late by 0 seconds",
        ]
    );

    let mut query = an_hourly_query().with_windows("1 hour", "15 minutes");
    let outcome = query.batch([a_sale("1969-12-31T23:14:00Z"), a_sale("1969-12-31T23:15:00Z")]);
    assert_eq!(outcome.late_events, 1);
    assert_eq!(shown(&outcome.state_changed), ["1969-12-31T23:15:00Z 1 10.00 USD"]);
}

#[test]
fn complete_mode_counts_events_before_1970_with_boundaries_by_floor() {
    let mut query = an_hourly_query().in_mode(OutputMode::Complete);
    let outcome = query.batch(["1969-12-31T23:00:00Z", "1969-12-31T22:59:59.999999Z"].map(a_sale));
    assert_eq!(
        shown(&outcome.rows),
        ["1969-12-31T22:00:00Z 1 10.00 USD", "1969-12-31T23:00:00Z 1 10.00 USD"]
    );
}

#[test]
fn a_batch_of_only_late_events_is_reported_and_changes_no_window() {
    let mut query = a_query_at("12:00");
    let before = query.open();
    let outcome = query.batch([a_sale("09:50"), a_sale("08:10")]);
    assert_eq!((outcome.events_in, outcome.late_events), (2, 2));
    assert_eq!((outcome.windows_updated, outcome.windows_open), (0, 1));
    assert!(outcome.rows.is_empty() && outcome.state_changed.is_empty());
    assert!(outcome.state_removed.is_empty());
    assert_eq!(outcome.event_time.map(|range| at_moment(range.max)), Some("09:50".to_owned()));
    assert_eq!(query.open(), before);
    assert_eq!(query.try_batch([]), None, "they did not move the watermark");
}

fn at_moment(time: tillmark::domain::EventTime) -> String {
    time.to_string()["2026-10-01T".len()..][..5].to_owned()
}

#[test]
fn late_events_are_counted_as_events_not_as_the_groups_they_fall_in() {
    let outcome = a_query_at("12:00").batch(["09:50", "09:51", "09:52", "08:10"].map(a_sale));
    assert_eq!(outcome.late_events, 4);
    assert_eq!(outcome.dropped.len(), 4);
}

#[test]
fn the_ledger_says_which_event_missed_which_window_and_how_late_it_was() {
    let mut query = a_query_at("12:00");
    query.rules.group_by = vec!["store_id".parse().unwrap()];
    let outcome = query.batch([
        a_sale("10:59").of("1.00").in_store("1").in_currency("EUR"),
        a_sale("11:10"),
        a_sale("08:00:00.000001").of("-2.00"),
        a_sale("13:00"),
    ]);
    assert_eq!(
        shown_dropped(&outcome.dropped),
        [
            "#2 missed 10:00:00 with 1.00 EUR 1, late by 61 minutes",
            "#4 missed 08:00:00 with -2.00 USD -, late by 14399999 milliseconds",
        ],
        "behind the newest event of the batches before, so 13:00 does not count"
    );
}

#[test]
fn an_update_query_drops_late_events_too() {
    let mut query = an_hourly_query().in_mode(OutputMode::Update);
    query.run([a_sale("09:30"), a_sale("11:00")]);
    let outcome = query.batch([a_sale("09:50").of("5.00"), a_sale("10:50")]);
    assert_eq!(outcome.late_events, 1);
    assert_eq!(shown(&outcome.rows), ["10:00:00 1 10.00 USD"]);
    assert_eq!(query.table()[0], "09:00:00 1 10.00 USD", "the final row stays as it was");
}

#[test]
fn in_complete_mode_nothing_is_late() {
    let mut query = an_hourly_query().in_mode(OutputMode::Complete);
    query.batch([a_sale("09:30"), a_sale("15:00")]);
    query.batch([a_sale("20:00")]);
    let outcome = query.batch([a_sale("09:31")]);
    assert_eq!(at(outcome.late_watermark), "14:00:00");
    assert_eq!((outcome.late_events, outcome.dropped.len()), (0, 0));
    assert_eq!(shown(&outcome.rows)[0], "09:00:00 2 20.00 USD");
}

#[test]
fn lateness_is_judged_with_the_committed_watermark_after_a_restart() {
    for restart in [false, true] {
        let mut query = an_hourly_query();
        query.batch([a_sale("09:30"), a_sale("11:00")]);
        if restart {
            query.restart();
        }
        assert_eq!(query.batch([a_sale("09:45")]).late_events, 0, "restart: {restart}");
        if restart {
            query.restart();
        }
        let outcome = query.batch([a_sale("09:46")]);
        assert_eq!(outcome.late_events, 1, "restart: {restart}");
        assert_eq!(
            shown_dropped(&outcome.dropped),
            ["#4 missed 09:00:00 with 10.00 USD, late by 74 minutes"],
            "restart: {restart}"
        );
    }
}
