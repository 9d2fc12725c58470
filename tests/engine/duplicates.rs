//! The duplicates rule: the first event with a key counts, for as long as the key is remembered.

use tillmark::domain::{EventTime, OutputMode};
use tillmark::engine::Outcome;

use crate::builders::{Sale, TestQuery, a_sale, an_hourly_query, at, moment, shown, shown_dropped};

fn order(order: &str, at: &str) -> tillmark::domain::Event {
    a_sale(at).of_order(order)
}

/// One hour of delay, and the first order at 10:00: its key expires at 11:00.
fn a_query_that_knows_order_one() -> TestQuery {
    let mut query = an_hourly_query().once_per_order();
    let outcome = query.batch([order("1", "10:00")]);
    assert_eq!(expiries(&outcome), [moment("11:00")]);
    query
}

fn expiries(outcome: &Outcome) -> Vec<EventTime> {
    outcome.keys_remembered.iter().map(|remembered| remembered.expires_at).collect()
}

#[test]
fn of_events_with_one_key_the_first_in_the_log_counts() {
    for restart in [false, true] {
        let mut query = an_hourly_query().once_per_order();
        let sales = [order("1", "10:30").of("3.00"), order("1", "10:00").of("4.00")];
        let first = query.batch(sales);
        if restart {
            query.restart();
        }
        let second = query.batch([order("1", "10:45").of("5.00"), order("2", "10:50").of("6.00")]);
        assert_eq!([first.duplicates, second.duplicates], [1, 1], "restart: {restart}");
        assert_eq!([first.events_in, second.events_in], [2, 2], "they are events all the same");
        assert_eq!([first.late_events, second.late_events], [0, 0]);
        assert_eq!(query.open(), ["10:00:00 2 9.00 USD"]);
        assert_eq!(
            shown_dropped(&query.database.ledger),
            [
                "#2 missed 10:00:00 with 4.00 USD, duplicate by 0 seconds",
                "#3 missed 10:00:00 with 5.00 USD, duplicate by 0 seconds",
            ],
            "restart: {restart}"
        );
        assert_eq!(query.state.remembered_keys(), 2);
    }
}

#[test]
fn an_event_is_late_when_it_stands_at_or_before_the_watermark_though_its_window_is_open() {
    for (case, sale, late) in [
        ("at the watermark", "10:30", true),
        ("one microsecond after it", "10:30:00.000001", false),
        ("one microsecond before it", "10:29:59.999999", true),
    ] {
        for (rule, is_late) in [(true, late), (false, false)] {
            let query = an_hourly_query();
            let mut query = if rule { query.once_per_order() } else { query };
            query.run([order("1", "11:30")]);
            let outcome = query.batch([order("2", sale)]);
            assert_eq!(outcome.late_events, u64::from(is_late), "{case}, rule: {rule}");
            assert_eq!(outcome.dropped.len(), usize::from(is_late), "{case}, rule: {rule}");
            assert_eq!(outcome.keys_remembered.len(), usize::from(rule && !late), "{case}");
        }
    }
}

#[test]
fn a_key_is_forgotten_when_it_expires_at_or_before_the_watermark() {
    for (case, newest, forgotten) in [
        ("at the watermark", "12:00", true),
        ("the watermark is one millisecond short", "11:59:59.999", false),
        ("its microseconds do not count", "11:59:59.999999", false),
        ("one millisecond beyond", "12:00:00.001", true),
    ] {
        for restart in [false, true] {
            let mut query = a_query_that_knows_order_one();
            query.batch([order("2", newest)]);
            let outcome = query.catch_up();
            assert_eq!(outcome.keys_forgotten, u64::from(forgotten), "{case}");
            assert_eq!(query.state.remembered_keys(), 2 - u64::from(forgotten), "{case}");
            if restart {
                query.restart();
            }
            let again = query.batch([order("1", "11:30")]);
            assert_eq!(again.duplicates, u64::from(!forgotten), "{case}, restart: {restart}");
            assert_eq!(expiries(&again).len(), usize::from(forgotten), "{case}: remembered anew");
        }
    }
}

#[test]
fn a_key_expires_by_the_time_of_its_own_event_not_by_the_newest() {
    let mut query = an_hourly_query().once_per_order();
    query.batch([order("1", "12:00")]);
    let outcome = query.batch([order("2", "11:30"), order("3", "12:30"), order("4", "11:40")]);
    assert_eq!(expiries(&outcome), ["12:30", "13:30", "12:40"].map(moment));
}

#[test]
fn the_batch_that_forgets_a_key_still_knows_it() {
    let mut query = a_query_that_knows_order_one();
    query.batch([order("2", "12:00")]);
    let outcome = query.batch([order("1", "11:30")]);
    assert_eq!((outcome.duplicates, outcome.keys_forgotten), (1, 1));
    assert_eq!(query.batch([order("1", "11:31")]).duplicates, 0, "the next does not");
}

#[test]
fn a_duplicate_does_not_prolong_its_key() {
    let mut query = a_query_that_knows_order_one();
    let outcome = query.batch([order("1", "11:45")]);
    assert_eq!((outcome.duplicates, outcome.keys_remembered.len()), (1, 0));
    query.batch([order("2", "12:00")]);
    assert_eq!(query.catch_up().keys_forgotten, 1);
}

#[test]
fn a_late_event_with_a_known_key_is_late_and_no_duplicate() {
    let mut query = a_query_that_knows_order_one();
    query.run([order("2", "11:30")]);
    let outcome = query.batch([order("1", "10:20")]);
    assert_eq!((outcome.late_events, outcome.duplicates), (1, 0));
    assert_eq!(
        shown_dropped(&outcome.dropped),
        ["#3 missed 10:00:00 with 10.00 USD, late by 70 minutes"]
    );
}

#[test]
fn a_late_event_is_not_remembered_so_the_next_with_its_key_counts() {
    let mut query = an_hourly_query().once_per_order();
    query.run([order("1", "11:30")]);
    assert_eq!(query.batch([order("2", "10:30")]).late_events, 1);
    let outcome = query.batch([order("2", "10:31")]);
    assert_eq!((outcome.late_events, outcome.duplicates), (0, 0));
    assert_eq!(shown(&outcome.state_changed), ["10:00:00 1 10.00 USD"]);
}

#[test]
fn a_remembered_key_keeps_the_expiry_it_got_whatever_becomes_of_the_delay() {
    for (delay, newest) in [("5 hours", "16:00"), ("10 minutes", "11:10")] {
        let mut query = a_query_that_knows_order_one();
        query.restart();
        query.rules.watermark_delay = delay.parse().unwrap();
        let outcome = query.batch([order("2", newest)]);
        assert_eq!(at(outcome.watermarks.next), "11:00:00", "{delay}");
        assert_eq!(expiries(&outcome), [moment(newest).plus(query.rules.watermark_delay)]);
        assert_eq!(query.catch_up().keys_forgotten, 1, "{delay}: at 11:00, as was said");
    }
}

#[test]
fn late_events_and_duplicates_move_the_watermark() {
    let mut query = a_query_that_knows_order_one();
    let outcome = query.batch([order("1", "14:00")]);
    assert_eq!((outcome.duplicates, at(outcome.watermarks.next).as_str()), (1, "13:00:00"));
    assert_eq!(outcome.newest_event_time, Some(moment("14:00")));
    query.catch_up();
    query.restart();
    query.rules.watermark_delay = "0 seconds".parse().unwrap();
    let outcome = query.batch([order("3", "13:00")]);
    assert_eq!((outcome.late_events, at(outcome.watermarks.next).as_str()), (1, "13:00:00"));
    let outcome = query.batch([order("1", "14:10"), order("3", "13:00")]);
    assert_eq!((outcome.late_events, at(outcome.watermarks.next).as_str()), (1, "14:10:00"));
}

#[test]
fn a_key_that_expires_in_its_own_batch_is_counted_as_forgotten_and_never_kept() {
    let mut query = an_hourly_query().once_per_order().with_delay("0 seconds");
    query.batch([order("1", "12:00")]);
    let outcome = query.batch([
        order("2", "11:30"),
        order("2", "11:40"),
        order("3", "12:00"),
        order("4", "12:00:00.000001"),
    ]);
    assert_eq!(at(outcome.watermarks.current), "12:00:00");
    assert_eq!(outcome.duplicates, 1, "within the batch it is known");
    assert_eq!(expiries(&outcome), [moment("12:00:00.000001")]);
    assert_eq!(outcome.keys_forgotten, 3, "orders 1, 2 and 3");
    assert_eq!(query.state, query.database.restore());
}

#[test]
fn a_key_is_made_of_all_its_fields_and_having_none_is_a_value() {
    let mut query = an_hourly_query();
    query.rules.deduplicate = ["order_id", "store_id"].map(|name| name.parse().unwrap()).to_vec();
    let outcome = query.batch([
        order("1", "10:00").in_store("1"),
        order("1", "10:01").in_store("2"),
        order("1", "10:02"),
        order("2", "10:03").in_store("1"),
        order("1", "10:04"),
        order("1", "10:05").in_store("1").in_currency("EUR").of("7.00"),
    ]);
    assert_eq!((outcome.duplicates, query.state.remembered_keys()), (2, 4));
    assert_eq!(query.open(), ["10:00:00 4 40.00 USD"], "the group of a duplicate is no matter");
}

#[test]
fn an_event_that_does_not_match_is_not_remembered() {
    let mut query = an_hourly_query().once_per_order().of_status("placed");
    let outcome = query.batch([order("1", "10:00").with_status("paid"), order("1", "10:05")]);
    assert_eq!((outcome.events_in, outcome.duplicates), (1, 0));
    assert_eq!(expiries(&outcome), [moment("11:05")]);
}

#[test]
fn a_duplicate_is_entered_under_every_window_that_holds_it_and_counted_once() {
    let mut query =
        an_hourly_query().once_per_order().with_sliding_windows("10 minutes", "5 minutes");
    let outcome = query.batch([order("1", "10:02"), order("1", "10:07")]);
    assert_eq!((outcome.duplicates, outcome.dropped.len()), (1, 2));
    assert_eq!(shown(&outcome.state_changed), ["09:55:00 1 10.00 USD", "10:00:00 1 10.00 USD"]);
}

#[test]
fn a_duplicate_neither_grows_nor_joins_sessions() {
    let mut query = an_hourly_query().once_per_order().with_sessions("10 minutes");
    query.batch([order("1", "10:00"), order("2", "10:15")]);
    let outcome = query.batch([order("1", "10:08")]);
    assert_eq!((outcome.duplicates, outcome.windows_updated), (1, 0));
    assert_eq!(query.open_spans().len(), 2);
}

#[test]
fn an_update_query_writes_no_row_for_a_duplicate() {
    let mut query = a_query_that_knows_order_one();
    query.rules.output_mode = OutputMode::Update;
    let outcome = query.batch([order("1", "10:10"), order("2", "10:20")]);
    assert_eq!(shown(&outcome.rows), ["10:00:00 2 20.00 USD"]);
    assert_eq!(outcome.duplicates, 1);
}
