//! Sessions: what makes two events one session, what merges, what is late, what ends.

use crate::builders::{
    Sale, TestQuery, a_heartbeat, a_sale, an_hourly_query, at, shown_dropped, shown_spans,
};

/// Sessions that end ten minutes after their last event, and a watermark without any delay.
fn ten_minute_sessions() -> TestQuery {
    an_hourly_query().with_sessions("10 minutes").with_delay("0 seconds")
}

/// The same with an hour of delay, so that nothing ends by itself.
fn patient_sessions() -> TestQuery {
    an_hourly_query().with_sessions("10 minutes")
}

#[test]
fn two_events_are_one_session_when_their_gaps_overlap_or_touch() {
    for (case, second, sessions) in [
        ("one microsecond inside the gap", "09:09:59.999999", 1),
        ("exactly at the end of the gap", "09:10", 1),
        ("one microsecond after it", "09:10:00.000001", 2),
        ("at the same moment", "09:00", 1),
        ("exactly one gap before", "08:50", 1),
        ("one microsecond more before", "08:49:59.999999", 2),
    ] {
        let [mut at_once, mut one_by_one, mut restarted] = [0; 3].map(|_| patient_sessions());
        at_once.batch(["09:00", second].map(a_sale));
        one_by_one.batch([a_sale("09:00")]);
        one_by_one.batch([a_sale(second)]);
        restarted.batch([a_sale("09:00")]);
        restarted.restart();
        restarted.batch([a_sale(second)]);
        assert_eq!(at_once.state.open_windows(), sessions, "{case}: in one batch");
        assert_eq!(one_by_one.open_spans(), at_once.open_spans(), "{case}: in two batches");
        assert_eq!(restarted.open_spans(), at_once.open_spans(), "{case}: with a restart between");
    }
}

#[test]
fn an_event_that_comes_between_two_sessions_makes_them_one() {
    for (case, bridge, open) in [
        ("it overlaps both", "09:10", &["09:00:00-09:25:00 3 30.00 USD"][..]),
        ("it touches the second", "09:05", &["09:00:00-09:25:00 3 30.00 USD"]),
        (
            "one microsecond short of the second",
            "09:04:59.999999",
            &["09:00:00-09:14:59.999999 2 20.00 USD", "09:15:00-09:25:00 1 10.00 USD"],
        ),
        (
            "one microsecond after the first",
            "09:10:00.000001",
            &["09:00:00-09:10:00 1 10.00 USD", "09:10:00.000001-09:25:00 2 20.00 USD"],
        ),
    ] {
        for restart in [false, true] {
            let mut query = patient_sessions();
            query.batch(["09:00", "09:15"].map(a_sale));
            if restart {
                query.restart();
            }
            let outcome = query.batch([a_sale(bridge)]);
            assert_eq!(query.open_spans(), open, "{case}, restart: {restart}");
            assert_eq!(
                shown_spans(&outcome.state_changed).len(),
                1,
                "{case}: it is in one of them"
            );
            assert_eq!(outcome.windows_updated, 1, "{case}");
        }
    }
}

#[test]
fn sessions_that_merge_give_up_their_state_and_one_that_only_fills_keeps_it() {
    let mut query = patient_sessions();
    query.batch(["09:00", "09:15", "09:40"].map(a_sale));
    let outcome = query.batch([a_sale("09:08").of("2.50")]);
    let spans: Vec<String> =
        outcome.state_merged.iter().map(|key| key.window.start.to_string()).collect();
    assert_eq!(spans, ["2026-10-01T09:00:00Z", "2026-10-01T09:15:00Z"]);
    assert_eq!(shown_spans(&outcome.state_changed), ["09:00:00-09:25:00 3 22.50 USD"]);
    assert_eq!(outcome.windows_open, 2);
    let outcome = query.batch([a_sale("09:14")]);
    assert_eq!(outcome.state_merged, [], "inside, so its bounds stay");
    assert_eq!(shown_spans(&outcome.state_changed), ["09:00:00-09:25:00 4 32.50 USD"]);
}

#[test]
fn one_batch_may_join_any_number_of_sessions() {
    let mut query = patient_sessions();
    query.batch(["09:00", "09:15", "09:30", "10:20"].map(a_sale));
    let outcome = query.batch(["08:55", "09:08", "09:24", "09:39"].map(a_sale));
    assert_eq!(shown_spans(&outcome.state_changed), ["08:55:00-09:49:00 7 70.00 USD"]);
    let gone = outcome.state_merged.iter().map(|key| key.window.start.to_string());
    let gone: Vec<String> = gone.collect();
    for start in ["09:00", "09:15", "09:30"] {
        assert!(gone.contains(&format!("2026-10-01T{start}:00Z")), "{gone:?}");
    }
    assert_eq!(query.open_spans().len(), 2);
}

#[test]
fn sessions_of_other_stores_and_currencies_never_merge() {
    let mut query = patient_sessions().grouped_by(["store_id"]);
    query.batch([
        a_sale("09:00").in_store("1"),
        a_sale("09:01").in_store("2"),
        a_sale("09:02").in_store("1").in_currency("EUR"),
        a_sale("09:03"),
        a_sale("09:04").in_store("1"),
    ]);
    assert_eq!(
        query.open_spans(),
        [
            "09:01:00-09:11:00 1 10.00 USD 2",
            "09:02:00-09:12:00 1 10.00 EUR 1",
            "09:03:00-09:13:00 1 10.00 USD -",
            "09:00:00-09:14:00 2 20.00 USD 1",
        ]
    );
}

#[test]
fn an_event_is_late_when_its_own_gap_ends_at_or_before_the_watermark() {
    for (case, watermark, late) in [
        ("the gap ends at the watermark", "09:10", true),
        ("the watermark is one millisecond short", "09:09:59.999", false),
        ("its microseconds do not count", "09:09:59.999999", false),
        ("one millisecond beyond", "09:10:00.001", true),
    ] {
        let mut query = ten_minute_sessions();
        query.run([a_sale(watermark)]);
        let outcome = query.batch([a_sale("09:00")]);
        assert_eq!(outcome.late_events, u64::from(late), "{case}");
        // The sale that moved the watermark is open and begins within, or at the end of, the gap.
        assert_eq!(outcome.windows_open, 1, "{case}: judged before any merging");
        let orders = if late { "1 10.00" } else { "2 20.00" };
        assert!(query.open_spans()[0].contains(orders), "{case}: {:?}", query.open_spans());
    }
}

#[test]
fn the_ledger_names_the_session_that_a_late_event_would_have_opened() {
    let mut query = ten_minute_sessions();
    query.run([a_sale("09:30")]);
    let outcome = query.batch([a_sale("09:20").of("3.00"), a_sale("09:20:00.000001")]);
    assert_eq!(
        shown_dropped(&outcome.dropped),
        ["#2 missed 09:20:00 with 3.00 USD, late by 10 minutes"]
    );
    let window = outcome.dropped[0].key.window;
    assert_eq!(window.end.since(window.start).to_string(), "10 minutes");
}

#[test]
fn a_session_is_final_when_it_ends_at_or_before_the_watermark() {
    for (case, newest, closes) in [
        ("it ends at the watermark", "09:14", true),
        ("the watermark is one millisecond short", "09:13:59.999", false),
        ("one millisecond beyond", "09:14:00.001", true),
    ] {
        let mut query = ten_minute_sessions();
        query.batch(["09:00", "09:04"].map(a_sale));
        let outcome = query.read([a_heartbeat(newest)]);
        assert!(outcome.rows.is_empty(), "{case}");
        let outcome = query.catch_up();
        let expected: &[&str] = if closes { &["09:00:00-09:14:00 2 20.00 USD"] } else { &[] };
        assert_eq!(shown_spans(&outcome.rows), expected, "{case}");
        assert_eq!(outcome.state_removed.len(), usize::from(closes), "{case}");
    }
}

#[test]
fn an_event_in_time_goes_on_with_a_session_that_its_own_batch_would_have_closed() {
    let mut query = ten_minute_sessions();
    query.batch(["09:00", "09:10:00.001"].map(a_sale));
    let outcome = query.batch([a_sale("09:05")]);
    assert_eq!(at(outcome.watermarks.current), "09:10:00.001");
    assert_eq!(outcome.rows, [], "joined to the next before the watermark could end it");
    assert_eq!(query.open_spans(), ["09:00:00-09:20:00.001 3 30.00 USD"]);
}

#[test]
fn a_session_that_is_closed_stays_as_it_is_and_an_event_in_time_opens_another() {
    let mut query = ten_minute_sessions();
    query.run([a_sale("09:00")]);
    query.read([a_heartbeat("09:10")]);
    assert_eq!(shown_spans(&query.catch_up().rows), ["09:00:00-09:10:00 1 10.00 USD"]);
    let outcome = query.batch([a_sale("09:00:00.001")]);
    assert_eq!((outcome.late_events, outcome.state_merged.len()), (0, 0));
    assert_eq!(query.open_spans(), ["09:00:00.001-09:10:00.001 1 10.00 USD"]);
    query.read([a_heartbeat("11:00")]);
    query.catch_up();
    assert_eq!(query.table().len(), 2, "two rows, though their gaps overlap");
}

#[test]
fn a_session_merged_by_the_batch_that_closes_it_is_written_whole() {
    let mut query = patient_sessions();
    query.batch(["09:00", "09:15", "10:25"].map(a_sale));
    let outcome = query.batch([a_sale("09:07")]);
    assert_eq!(shown_spans(&outcome.rows), ["09:00:00-09:25:00 3 30.00 USD"]);
    assert_eq!((outcome.state_merged.len(), outcome.state_removed.len()), (2, 1));
    assert_eq!(outcome.state_changed, []);
    assert_eq!(query.open_spans(), ["10:25:00-10:35:00 1 10.00 USD"]);
}

#[test]
fn events_that_open_one_session_in_one_batch_leave_nothing_to_take_out_of_state() {
    let mut query = patient_sessions();
    let outcome = query.batch(["09:00", "09:05", "09:10"].map(a_sale));
    assert_eq!((outcome.state_changed.len(), outcome.state_merged.len()), (1, 0));
}
