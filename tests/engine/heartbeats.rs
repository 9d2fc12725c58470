//! Heartbeats of sources, and closing when nothing comes any more.

use tillmark::domain::{ClosedBy, OutputMode};
use tillmark::engine::{Outcome, State};

use crate::builders::{
    Sale, TestQuery, a_heartbeat, a_sale, an_hourly_query, at, moment, shown, shown_dropped,
    silence,
};

/// Closes its windows when nothing came for ten minutes.
fn an_impatient_query() -> TestQuery {
    an_hourly_query().idle_after("10 minutes")
}

/// What closed each window that the batch closed, by the window's start.
fn closed_by(outcome: &Outcome) -> Vec<(String, ClosedBy)> {
    let removed = outcome.state_removed.iter();
    let start = |start: String| start["2026-10-01T".len()..][..5].to_owned();
    removed.map(|key| (start(key.window.start.to_string()), outcome.closed_by(key))).collect()
}

#[test]
fn a_heartbeat_moves_the_watermark_as_an_event_would_and_counts_nowhere() {
    let mut query = an_hourly_query();
    query.batch([a_sale("09:30")]);
    let outcome = query.read([a_heartbeat("12:40:00.000999")]);
    assert_eq!(at(outcome.watermarks.next), "11:40:00", "whole milliseconds, minus the delay");
    assert_eq!(outcome.watermarks.next_by_sources, outcome.watermarks.next);
    assert_eq!((outcome.events_in, outcome.event_time), (0, None));
    assert_eq!(outcome.newest_event_time, Some(moment("09:30")));
    assert_eq!((outcome.windows_updated, outcome.dropped.len()), (0, 0));
    let outcome = query.catch_up();
    assert_eq!(shown(&outcome.rows), ["09:00:00 1 10.00 USD"]);
    assert_eq!(closed_by(&outcome), [("09:00".to_owned(), ClosedBy::Watermark)]);
}

#[test]
fn the_newest_of_events_and_heartbeats_moves_the_watermark() {
    for (case, sale, heartbeat, next) in [
        ("the event is newer", "12:40", "12:00", "11:40:00"),
        ("the heartbeat is", "12:00", "12:40", "11:40:00"),
        ("both are the same", "12:40", "12:40", "11:40:00"),
    ] {
        let outcome = an_hourly_query().read([a_sale(sale).into(), a_heartbeat(heartbeat)]);
        assert_eq!(at(outcome.watermarks.next), next, "{case}");
        assert_eq!(outcome.events_in, 1, "{case}");
    }
}

#[test]
fn a_heartbeat_is_heard_whatever_the_filter() {
    let mut query = an_hourly_query().of_status("placed");
    let paid = a_sale("23:00").with_status("paid").into();
    let outcome = query.read([paid, a_heartbeat("12:00")]);
    assert_eq!((outcome.events_in, at(outcome.watermarks.next).as_str()), (0, "11:00:00"));
}

#[test]
fn a_heartbeat_behind_the_watermark_moves_nothing() {
    let mut query = an_hourly_query();
    query.run([a_sale("12:40")]);
    let outcome = query.read([a_heartbeat("12:39")]);
    assert_eq!(at(outcome.watermarks.next), "11:40:00");
    assert_eq!(query.try_batch([]), None);
}

#[test]
fn a_heartbeat_owes_the_batch_without_data_over_a_restart() {
    let mut query = an_hourly_query();
    query.batch([a_sale("09:30")]);
    query.read([a_heartbeat("11:00")]);
    query.restart();
    assert_eq!(shown(&query.catch_up().rows), ["09:00:00 1 10.00 USD"]);
}

#[test]
fn an_event_behind_a_heartbeat_is_late_by_how_far_it_is_behind_the_newest_event() {
    let mut query = an_hourly_query();
    query.batch([a_sale("09:30")]);
    query.read([a_heartbeat("11:00")]);
    query.catch_up();
    let outcome = query.batch([a_sale("09:10"), a_sale("09:40")]);
    assert_eq!(
        shown_dropped(&outcome.dropped),
        [
            "#3 missed 09:00:00 with 10.00 USD, late by 20 minutes",
            "#4 missed 09:00:00 with 10.00 USD, late by 0 seconds",
        ]
    );
}

#[test]
fn silence_is_heard_by_queries_whose_timeout_it_has_reached() {
    for (case, timeout, quiet, heard) in [
        ("exactly as long", Some("10 minutes"), "10 minutes", true),
        ("one millisecond too short", Some("10 minutes"), "599999 milliseconds", false),
        ("one millisecond longer", Some("10 minutes"), "600001 milliseconds", true),
        ("a query that does not ask", None, "10 days", false),
    ] {
        let query = an_hourly_query();
        let mut query = match timeout {
            Some(timeout) => query.idle_after(timeout),
            None => query,
        };
        let outcome = query.try_read(vec![silence("12:00", quiet)]);
        assert_eq!(outcome.is_some(), heard, "{case}");
        let next = outcome.map(|outcome| at(outcome.watermarks.next));
        assert_eq!(next.as_deref(), heard.then_some("11:00:00"), "{case}: minus the delay");
        assert_eq!(query.state == State::default(), !heard, "{case}");
    }
}

#[test]
fn a_window_that_ends_by_what_its_sources_reached_is_not_closed_by_silence() {
    for (case, newest, closed) in [
        ("its sources reached its end", "11:00", ClosedBy::Watermark),
        ("they are one millisecond short", "10:59:59.999", ClosedBy::Idle),
    ] {
        for restart in [false, true] {
            let mut query = an_impatient_query();
            query.batch([a_sale("09:30")]);
            query.read([a_heartbeat(newest), silence("12:00", "10 minutes")]);
            if restart {
                query.restart();
            }
            let outcome = query.catch_up();
            assert_eq!(at(outcome.watermarks.current), "11:00:00", "{case}");
            assert_eq!(closed_by(&outcome), [("09:00".to_owned(), closed)], "{case}");
        }
    }
}

#[test]
fn one_batch_may_close_windows_by_both() {
    let mut query = an_impatient_query();
    query.read([a_sale("09:30").into(), a_sale("11:10").into(), silence("13:00", "10 minutes")]);
    let outcome = query.catch_up();
    assert_eq!(
        closed_by(&outcome),
        [("09:00".to_owned(), ClosedBy::Watermark), ("11:00".to_owned(), ClosedBy::Idle)]
    );
    assert_eq!(at(outcome.watermark_by_sources), "10:10:00");
}

#[test]
fn sources_that_are_still_behind_the_silence_close_nothing_themselves() {
    let mut query = an_impatient_query();
    query.read([a_sale("11:10").into(), a_sale("09:30").into(), silence("13:00", "10 minutes")]);
    let outcome = query.batch([a_sale("12:10")]);
    assert_eq!(at(outcome.watermark_by_sources), "10:10:00");
    assert_eq!(at(outcome.watermarks.next_by_sources), "11:10:00");
    query.read([silence("15:00", "10 minutes")]);
    let outcome = query.catch_up();
    assert_eq!(at(outcome.watermark_by_sources), "11:10:00", "what silence reached is not theirs");
    assert_eq!(closed_by(&outcome), [("12:00".to_owned(), ClosedBy::Idle)]);
}

#[test]
fn once_the_sources_go_on_they_close_the_windows_again() {
    let mut query = an_impatient_query();
    query.read([a_sale("09:30").into(), silence("12:00", "10 minutes")]);
    query.catch_up();
    assert_eq!(query.batch([a_sale("09:40")]).late_events, 1, "what silence closed is closed");
    query.batch([a_sale("11:30"), a_sale("13:00")]);
    let outcome = query.catch_up();
    assert_eq!(at(outcome.watermarks.current), "12:00:00");
    assert_eq!(closed_by(&outcome), [("11:00".to_owned(), ClosedBy::Watermark)]);
}

#[test]
fn silence_does_not_pull_the_watermark_back() {
    let mut query = an_impatient_query();
    query.run([a_sale("12:40")]);
    let outcome = query.read([silence("12:00", "10 minutes")]);
    assert_eq!(at(outcome.watermarks.next), "11:40:00");
    assert_eq!(query.try_batch([]), None);
}

#[test]
fn silence_makes_a_query_forget_keys() {
    let mut query = an_impatient_query().once_per_order();
    query.batch([a_sale("10:00")]);
    query.read([silence("12:00", "10 minutes")]);
    assert_eq!(query.catch_up().keys_forgotten, 1);
    assert_eq!(query.batch([a_sale("11:30")]).duplicates, 0);
}

#[test]
fn in_complete_mode_a_heartbeat_moves_the_watermark_and_closes_nothing() {
    let mut query = an_hourly_query().in_mode(OutputMode::Complete);
    query.batch([a_sale("09:30")]);
    let outcome = query.read([a_heartbeat("15:00")]);
    assert_eq!(shown(&outcome.rows), ["09:00:00 1 10.00 USD"]);
    assert_eq!(at(outcome.watermarks.next), "14:00:00");
    assert_eq!(query.try_batch([]), None);
    assert_eq!(query.batch([a_sale("09:31")]).late_events, 0);
}
