//! Where the watermark goes, what holds it, and when a batch without data runs for it.

use tillmark::domain::{OutputMode, Watermark};
use tillmark::engine::State;

use crate::builders::{Sale, a_sale, an_hourly_query, at, moment, shown};

const EPOCH: &str = "1970-01-01T00:00:00.000Z";

#[test]
fn the_watermark_follows_the_newest_event_by_the_delay_in_whole_milliseconds() {
    for (case, newest, delay, next_watermark) in [
        ("an hour behind", "10:20", "1 hour", "09:20:00"),
        ("no delay", "10:20", "0 seconds", "10:20:00"),
        ("a delay of one millisecond", "10:20", "1 millisecond", "10:19:59.999"),
        ("microseconds are cut off", "10:20:00.000999", "1 hour", "09:20:00"),
        ("a millisecond is not", "10:20:00.001", "1 hour", "09:20:00.001"),
        ("the last microsecond of a second", "10:20:00.999999", "1 hour", "09:20:00.999"),
        (
            "the first moment above 1970",
            "1970-01-01T01:00:00.001Z",
            "1 hour",
            "1970-01-01T00:00:00.001Z",
        ),
        ("not above 1970 by microseconds", "1970-01-01T01:00:00.000999Z", "1 hour", EPOCH),
        ("nothing moves it below 1970", "1969-12-31T23:59:59Z", "1 hour", EPOCH),
        ("the oldest event", "1900-01-01T00:00:00Z", "3660 days", EPOCH),
        (
            "the newest event",
            "2199-12-31T23:59:59.999999Z",
            "0 seconds",
            "2199-12-31T23:59:59.999Z",
        ),
    ] {
        let mut query = an_hourly_query().with_delay(delay);
        let outcome = query.batch([a_sale(newest)]);
        assert_eq!(at(outcome.watermarks.next), next_watermark, "{case}");
        assert_eq!(outcome.newest_event_time, Some(moment(newest)), "{case}");
        assert_eq!(query.state.watermarks().next, outcome.watermarks.next, "{case}");
    }
}

#[test]
fn a_batch_reports_the_watermark_that_judged_it_and_the_one_that_closed() {
    let mut query = an_hourly_query();
    let mut seen = Vec::new();
    for sale in ["10:20", "11:30", "12:40"] {
        let outcome = query.batch([a_sale(sale)]);
        let marks =
            [outcome.late_watermark, outcome.watermarks.current, outcome.watermarks.next].map(at);
        assert_eq!(query.state.watermarks().current, outcome.watermarks.current);
        seen.push(marks);
    }
    let expected = [
        [EPOCH, EPOCH, "09:20:00"],
        [EPOCH, "09:20:00", "10:30:00"],
        ["09:20:00", "10:30:00", "11:40:00"],
    ];
    assert_eq!(seen, expected);
}

#[test]
fn the_newest_event_moves_the_watermark_wherever_it_stands_in_the_batch() {
    for order in
        [["12:40", "10:20", "11:30"], ["10:20", "12:40", "11:30"], ["10:20", "11:30", "12:40"]]
    {
        let outcome = an_hourly_query().batch(order.map(a_sale));
        assert_eq!(at(outcome.watermarks.next), "11:40:00", "{order:?}");
    }
}

#[test]
fn the_watermark_never_goes_back() {
    let mut query = an_hourly_query();
    query.run([a_sale("12:40")]);
    let outcome = query.batch([a_sale("11:50")]);
    assert_eq!(at(outcome.watermarks.current), "11:40:00");
    assert_eq!(at(outcome.watermarks.next), "11:40:00");
    assert_eq!(outcome.newest_event_time, Some(moment("12:40")));
    assert_eq!(query.try_batch([]), None, "nothing was reached, so nothing is owed");
}

#[test]
fn a_longer_delay_does_not_pull_the_watermark_back() {
    let mut query = an_hourly_query();
    query.run([a_sale("12:40")]);
    query.restart();
    query.rules.watermark_delay = "6 hours".parse().unwrap();
    assert_eq!(at(query.batch([a_sale("13:00")]).watermarks.next), "11:40:00");
    assert_eq!(query.try_batch([]), None);
    assert_eq!(at(query.batch([a_sale("18:00")]).watermarks.next), "12:00:00");
}

#[test]
fn a_shorter_delay_counts_from_the_next_event_on() {
    let mut query = an_hourly_query();
    query.run([a_sale("12:40")]);
    query.restart();
    query.rules.watermark_delay = "10 minutes".parse().unwrap();
    assert_eq!(query.try_batch([]), None, "a delay alone reaches nothing");
    let outcome = query.batch([a_sale("12:45")]);
    assert_eq!(at(outcome.watermarks.current), "11:40:00");
    assert_eq!(at(outcome.watermarks.next), "12:35:00");
}

#[test]
fn late_events_take_part_in_the_newest_event_time() {
    // A late event stands behind the watermark and so cannot move it; but it is an event like any
    // other in what is reported, and before 1970 it may be the newest of all.
    let mut query = an_hourly_query();
    query.run([a_sale("12:00")]);
    let range = query.batch([a_sale("09:00"), a_sale("11:30")]).event_time.expect("events came");
    assert_eq!([range.min, range.avg, range.max], ["09:00", "10:15", "11:30"].map(moment));

    let mut query = an_hourly_query();
    for sale in ["1969-12-31T20:30:00Z", "1969-12-31T22:30:00Z", "1969-12-31T21:30:00Z"] {
        let outcome = query.batch([a_sale(sale)]);
        assert_eq!(outcome.late_events, 1, "its window ends before the first watermark");
    }
    assert_eq!(query.state.newest_event_time(), Some(moment("1969-12-31T22:30:00Z")));
}

#[test]
fn events_that_do_not_match_neither_count_nor_move_the_watermark() {
    let mut query = an_hourly_query().of_status("placed");
    let paid = |at| a_sale(at).with_status("paid");
    let outcome = query.batch([paid("23:00"), a_sale("10:20"), paid("22:00")]);
    assert_eq!(outcome.events_in, 1);
    assert_eq!(at(outcome.watermarks.next), "09:20:00");
    assert_eq!(outcome.newest_event_time, Some(moment("10:20")));
    let range = outcome.event_time.expect("an event matched");
    assert_eq!([range.min, range.avg, range.max], [moment("10:20"); 3]);
    assert_eq!(shown(&outcome.state_changed), ["10:00:00 1 10.00 USD"]);
}

#[test]
fn a_filter_of_a_field_that_an_event_has_not_keeps_the_event_out() {
    let mut query = an_hourly_query();
    query.rules.filter.0.insert("store_id".parse().unwrap(), vec!["1".to_owned(), "2".to_owned()]);
    query.rules.filter.0.insert("status".parse().unwrap(), vec!["placed".to_owned()]);
    let outcome = query.batch([
        a_sale("10:00"),
        a_sale("10:01").in_store("1"),
        a_sale("10:02").in_store("2"),
        a_sale("10:03").in_store("3"),
        a_sale("10:04").in_store("1").with_status("paid"),
    ]);
    assert_eq!(outcome.events_in, 2);
}

#[test]
fn when_nothing_matches_there_is_no_batch_and_the_state_is_untouched() {
    let mut query = an_hourly_query().of_status("placed");
    query.batch([a_sale("10:20")]);
    let before = query.state.clone();
    assert!(before.owes_batch_without_data(OutputMode::Append));
    let paid = a_sale("12:00").with_status("paid");
    assert_eq!(query.try_batch([paid.clone(), paid]), None);
    assert_eq!(query.state, before);
    assert_eq!(at(query.catch_up().watermarks.current), "09:20:00", "it is still owed");
}

#[test]
fn the_first_batch_without_a_match_leaves_a_new_query_new() {
    let mut query = an_hourly_query().of_status("placed");
    assert_eq!(query.try_batch([a_sale("12:00").with_status("paid")]), None);
    assert_eq!(query.try_batch([]), None);
    assert_eq!(query.state, State::default());
    assert_eq!(query.state.watermarks().current, Watermark::EPOCH);
}

#[test]
fn a_batch_without_data_applies_the_watermark_once_and_reports_no_events() {
    let mut query = an_hourly_query();
    query.batch([a_sale("10:20")]);
    let outcome = query.catch_up();
    assert_eq!((outcome.events_in, outcome.late_events), (0, 0));
    assert_eq!(outcome.event_time, None);
    assert_eq!(outcome.windows_updated, 0);
    assert_eq!(at(outcome.late_watermark), EPOCH);
    assert_eq!(at(outcome.watermarks.current), "09:20:00");
    assert_eq!(outcome.watermarks.next, outcome.watermarks.current);
    assert_eq!(outcome.newest_event_time, Some(moment("10:20")));
    assert_eq!(query.try_batch([]), None, "once");
}

#[test]
fn a_batch_without_data_is_owed_only_when_a_new_watermark_waits_and_something_can_close() {
    for (case, mode, sale, owed) in [
        ("append", OutputMode::Append, "10:20", true),
        ("update", OutputMode::Update, "10:20", true),
        ("complete never closes", OutputMode::Complete, "10:20", false),
        ("the watermark did not move", OutputMode::Append, "1970-01-01T00:30:00Z", false),
        ("one millisecond is a move", OutputMode::Append, "1970-01-01T01:00:00.001Z", true),
    ] {
        let mut query = an_hourly_query().in_mode(mode);
        query.batch([a_sale(sale)]);
        assert_eq!(query.state.owes_batch_without_data(mode), owed, "{case}");
        let before = query.state.clone();
        assert_eq!(query.try_batch([]).is_some(), owed, "{case}");
        assert_eq!(query.state != before, owed, "{case}");
    }
}

#[test]
fn a_new_query_owes_nothing() {
    for mode in [OutputMode::Append, OutputMode::Update, OutputMode::Complete] {
        assert_eq!(an_hourly_query().in_mode(mode).try_batch([]), None, "{mode:?}");
    }
}

#[test]
fn a_batch_without_data_that_was_owed_runs_after_a_restart() {
    let mut query = an_hourly_query();
    query.batch([a_sale("09:30"), a_sale("11:00")]);
    query.restart();
    let outcome = query.catch_up();
    assert_eq!(at(outcome.watermarks.current), "10:00:00");
    assert_eq!(shown(&outcome.rows), ["09:00:00 1 10.00 USD"]);
}

#[test]
fn a_watermark_that_was_owed_over_a_restart_keeps_the_delay_it_came_from() {
    let mut query = an_hourly_query();
    query.batch([a_sale("09:30"), a_sale("11:00")]);
    query.restart();
    query.rules.watermark_delay = "3 hours".parse().unwrap();
    assert_eq!(at(query.catch_up().watermarks.current), "10:00:00");
}

#[test]
fn waiting_data_applies_the_watermark_in_place_of_a_batch_without_data() {
    let mut query = an_hourly_query();
    query.batch([a_sale("09:30"), a_sale("11:00")]);
    let outcome = query.batch([a_sale("11:05")]);
    assert_eq!(shown(&outcome.rows), ["09:00:00 1 10.00 USD"]);
    assert_eq!(at(query.catch_up().watermarks.current), "10:05:00");
}

#[test]
fn in_complete_mode_the_watermark_moves_though_it_closes_nothing() {
    let mut query = an_hourly_query().in_mode(OutputMode::Complete);
    query.batch([a_sale("10:20")]);
    let outcome = query.batch([a_sale("12:40")]);
    assert_eq!(at(outcome.watermarks.current), "09:20:00");
    assert_eq!(at(outcome.watermarks.next), "11:40:00");
}

#[test]
fn a_batch_reports_the_oldest_newest_and_mean_event_time() {
    for (case, times, [min, avg, max]) in [
        (
            "the mean is cut to whole microseconds",
            ["10:20", "09:40", "10:00:00.000001"],
            ["09:40", "10:00", "10:20"],
        ),
        (
            "and before 1970 to the one before",
            ["1969-12-31T23:59:59.999999Z", "1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"],
            ["1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999Z", "1970-01-01T00:00:00Z"],
        ),
    ] {
        let range = an_hourly_query().batch(times.map(a_sale)).event_time.expect("events came");
        assert_eq!([range.min, range.avg, range.max], [min, avg, max].map(moment), "{case}");
    }
}
