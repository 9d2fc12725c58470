use std::cell::Cell;

use super::*;
use crate::domain::{
    Amount, DuplicateKey, EventTime, Lag, QuerySpec, QuerySpecText, Revenue, Totals,
};
use crate::engine::{Batch, Content, Profile, Record};

fn time(text: &str) -> EventTime {
    format!("2026-10-01T{text}:00Z").parse().expect(text)
}

fn span(text: &str) -> Span {
    text.parse().expect(text)
}

/// What one record says, and of which clock time.
enum Said {
    Order(&'static str, i64),
    OtherStatus(&'static str),
    Keyed(&'static str, &'static str),
    Heartbeat(&'static str),
    Silence(&'static str, &'static str),
}
use Said::{Heartbeat, Keyed, Order, OtherStatus, Silence};

/// A batch whose records were received one after the other, a minute apart, from `received` on.
fn a_batch(received: &str, records: &[Said], nothing_followed: bool) -> ReplayBatch {
    let mut batch = Batch::default();
    let mut profile = |status: &str| {
        let values = vec![Some(status.to_owned())];
        batch.add_profile(Profile { currency: "USD".parse().expect("a currency"), values })
    };
    let (paid, placed) = (profile("paid"), profile("placed"));
    let order = |units: i64, profile, key: Option<&str>| Content::Event {
        amount: Amount::from_ten_thousandths(units * 10_000).expect("in bounds"),
        profile,
        duplicate_key: key.map(DuplicateKey::new),
    };
    let mut received_at = Vec::new();
    for (seq, said) in (1..).zip(records) {
        let (at, content) = match *said {
            Order(at, units) => (at, order(units, placed, None)),
            OtherStatus(at) => (at, order(1, paid, None)),
            Keyed(at, key) => (at, order(1, placed, Some(key))),
            Heartbeat(at) => (at, Content::Heartbeat),
            Silence(at, quiet) => (at, Content::IdleHeartbeat { quiet: span(quiet) }),
        };
        batch.push(Record { seq: Seq::new(seq), event_time: time(at), content });
        let minutes = span(&format!("{} minutes", received_at.len()));
        received_at.push(time(received).plus(minutes));
    }
    ReplayBatch { batch, received_at, nothing_followed }
}

fn replay(rule: &str, delays: &[&str], batches: &[ReplayBatch]) -> Replay {
    let rule: QuerySpecText = serde_json::from_str(rule).expect("a rule");
    let spec = QuerySpec::try_from(rule).expect("a rule");
    let delays: Vec<Span> = delays.iter().map(|delay| span(delay)).collect();
    let mut replay = Replay::new(&Rules::from(&spec), &delays);
    assert!(replay.take(batches, || true));
    replay
}

const HOURLY: &str = r#"{"window": {"kind": "tumbling", "size": "1 hour"}, "filter": {"status": ["placed"]},
    "watermark_delay": "1 hour", "output_mode": "append", "idle_timeout": "10 minutes"}"#;
const HOURLY_ONCE: &str = r#"{"window": {"kind": "tumbling", "size": "1 hour"}, "filter": {"status": ["placed"]},
    "watermark_delay": "1 hour", "output_mode": "append", "deduplicate": {"keys": ["order_id"]}}"#;
const EVERY_HALF_HOUR: &str = r#"{"window": {"kind": "sliding", "size": "1 hour", "slide": "30 minutes"},
    "filter": {"status": ["placed"]}, "watermark_delay": "1 hour", "output_mode": "append"}"#;

fn sold(orders: i64, units: i128) -> Totals {
    Totals { orders, revenue: Revenue::from_ten_thousandths(units * 10_000) }
}

#[test]
fn each_delay_counts_what_a_query_with_it_would() {
    let batches = [
        a_batch("11:00", &[Order("09:10", 3), Order("10:50", 5), OtherStatus("13:00")], true),
        a_batch("11:10", &[Order("09:20", 7), Order("10:55", 1)], true),
        a_batch("11:20", &[OtherStatus("15:00")], true),
    ];
    let Replay { trials, .. } = replay(HOURLY, &["0 seconds", "1 hour", "2 hours"], &batches);
    let [none, hour, two] = &trials[..] else { panic!("three") };
    for (trial, batches, late, rows, money) in
        [(none, 4, 1, 1, 7), (hour, 4, 0, 0, 0), (two, 4, 0, 0, 0)]
    {
        let delay = trial.delay();
        assert_eq!(trial.batches, batches, "{delay}");
        assert_eq!((trial.events_in, trial.late_events, trial.duplicates), (4, late, 0), "{delay}");
        assert_eq!((trial.counted(), trial.rows_written), (4 - late, rows), "{delay}");
        let of_late = trial.late.values().next().copied().unwrap_or_default();
        let money = sold(i64::try_from(late).expect("few"), money);
        assert_eq!((of_late.events, of_late.missing), (money, money), "{delay}");
    }
    assert_eq!(none.share_counted(), "75%".parse().ok());
    assert_eq!(hour.share_counted(), "100%".parse().ok());
    assert_eq!((none.state_windows_max, hour.state_windows_max), (2, 2));
}

#[test]
fn the_smallest_delay_that_reaches_the_target_is_named_in_whichever_order_they_were_asked_for() {
    let batches = [
        a_batch("11:00", &[Order("10:50", 5)], true),
        a_batch("11:10", &[Order("09:20", 7), Order("10:55", 1), Order("10:56", 1)], true),
    ];
    let delays = ["2 hours", "1 hour", "0 seconds"];
    let Replay { trials, .. } = replay(HOURLY, &delays, &batches);
    let query = |trials| DelayAdvice { query: a_query(), end: Seq::new(0), trials };
    let advice = query(trials);
    for (target, delay) in [("100%", "1 hour"), ("75.0001%", "1 hour"), ("75%", "0 seconds")] {
        let smallest = advice.smallest_reaching(target.parse().expect("a share"));
        assert_eq!(smallest, Some(span(delay)), "{target}");
    }
    let advice = query(replay(HOURLY, &["0 seconds"], &batches).trials);
    assert_eq!(advice.smallest_reaching("76%".parse().expect("a share")), None);
    let nothing = replay(HOURLY, &["0 seconds"], &[a_batch("11:00", &[Heartbeat("10:00")], true)]);
    let [trial] = &nothing.trials[..] else { panic!("one") };
    assert_eq!((trial.batches, trial.events_in, trial.share_counted()), (2, 0, None));
    assert!(!trial.reaches("1%".parse().expect("a share")), "there was nothing to count");
}

fn a_query() -> StoredQuery {
    let rule: QuerySpecText = serde_json::from_str(HOURLY).expect("a rule");
    StoredQuery {
        query_id: 1,
        name: "q".parse().expect("a name"),
        spec: rule.try_into().expect("a rule"),
        paused: false,
        error: None,
        epoch: 0,
        start_seq: Seq::new(0),
        position: Seq::new(0),
        next_batch_id: crate::domain::BatchId::FIRST,
        watermarks: crate::engine::Watermarks::EPOCH,
        newest_event_time: None,
        has_poison_events: false,
    }
}

/// How many windows closed, and how many minutes after their ends at the median and at worst.
fn closed(trial: &Trial) -> (u64, Option<i64>, Option<i64>) {
    let minutes = |lag: Option<Lag>| lag.map(|lag| lag.as_millis() / 60_000);
    let closings = &trial.closings;
    (closings.windows(), minutes(closings.median()), minutes(closings.worst()))
}

#[test]
fn a_window_closes_when_the_record_was_received_that_moved_the_watermark_past_it() {
    // Received at 11:00, 11:01, …; the third is the first that reaches 10:00 with no delay, the last with half an hour.
    let records = [Order("09:10", 1), Order("09:05", 1), Order("10:00", 1), Order("10:30", 1)];
    for (case, batches, none, half) in [
        ("within one batch", vec![a_batch("11:00", &records, true)], Some(62), Some(63)),
        (
            "what does not pass the filter moves nothing",
            vec![a_batch(
                "11:00",
                &[Order("09:10", 1), OtherStatus("12:00"), Order("10:30", 1)],
                true,
            )],
            Some(62),
            Some(62),
        ),
        (
            "a heartbeat moves it",
            vec![a_batch("11:00", &[Order("09:10", 1), Heartbeat("10:30")], true)],
            Some(61),
            Some(61),
        ),
        (
            "a silence moves it that is long enough",
            vec![a_batch(
                "11:00",
                &[Order("09:10", 1), Silence("10:40", "9 minutes"), Silence("10:30", "10 minutes")],
                true,
            )],
            Some(62),
            Some(62),
        ),
        (
            "of two records of one time the first counts",
            vec![a_batch(
                "11:00",
                &[Order("09:10", 1), Heartbeat("10:30"), Heartbeat("10:30")],
                true,
            )],
            Some(61),
            Some(61),
        ),
        (
            "an older record after it moves nothing",
            vec![a_batch(
                "11:00",
                &[Order("09:10", 1), Heartbeat("10:30"), Heartbeat("10:29")],
                true,
            )],
            Some(61),
            Some(61),
        ),
        (
            "batch by batch, though nobody ran one without data",
            vec![
                a_batch("11:00", &[Order("09:10", 1)], false),
                a_batch("11:10", &[Order("10:00", 1)], false),
                a_batch("11:20", &[Order("10:30", 1)], false),
                a_batch("11:30", &[OtherStatus("12:00")], true),
            ],
            Some(70),
            Some(80),
        ),
    ] {
        let Replay { trials, .. } = replay(HOURLY, &["0 seconds", "30 minutes"], &batches);
        assert_eq!(closed(&trials[0]), (1, none, none), "{case}, no delay");
        assert_eq!(closed(&trials[1]), (1, half, half), "{case}, half an hour");
    }
}

#[test]
fn a_window_of_several_groups_closes_once_and_one_that_nothing_passed_not_at_all() {
    let batches =
        [a_batch("11:00", &[Order("08:10", 1), Order("09:10", 1), Order("10:59", 1)], true)];
    let Replay { trials, .. } = replay(HOURLY, &["0 seconds", "2 hours"], &batches);
    assert_eq!(closed(&trials[0]), (2, Some(62), Some(121)));
    assert_eq!(closed(&trials[1]), (0, None, None));
    let by_status = HOURLY.replace(r#""output_mode""#, r#""group_by": ["status"], "output_mode""#);
    let by_status = by_status.replace(r#"{"status": ["placed"]}"#, "{}");
    let records = [Order("09:10", 1), OtherStatus("09:20"), Order("10:00", 1)];
    let Replay { trials, .. } =
        replay(&by_status, &["0 seconds"], &[a_batch("11:00", &records, true)]);
    assert_eq!((closed(&trials[0]), trials[0].rows_written), ((1, Some(62), Some(62)), 2));
}

#[test]
fn an_event_late_for_two_windows_is_one_event_that_is_missing_twice() {
    let batches = [
        a_batch("11:00", &[Order("12:00", 1)], true),
        a_batch("11:10", &[Order("09:40", 7), Order("09:45", 5)], true),
    ];
    let Replay { trials, .. } = replay(EVERY_HALF_HOUR, &["0 seconds"], &batches);
    let late = trials[0].late.values().next().expect("some");
    assert_eq!((late.events, late.missing), (sold(2, 12), sold(4, 24)));
    assert_eq!((trials[0].late_events, trials[0].counted()), (2, 1));
}

#[test]
fn a_duplicate_is_no_late_event_and_neither_counts_nor_is_due() {
    let records = [Keyed("09:10", "a"), Keyed("09:11", "a"), Keyed("09:12", "b")];
    let batches = [a_batch("11:00", &records, true)];
    let Replay { trials, .. } = replay(HOURLY_ONCE, &["1 hour"], &batches);
    let trial = &trials[0];
    assert_eq!((trial.events_in, trial.duplicates, trial.late_events), (3, 1, 0));
    assert_eq!((trial.counted(), trial.remembered_keys_max), (2, 2));
    assert_eq!((trial.share_counted(), trial.late.len()), ("100%".parse().ok(), 0));
}

#[test]
fn a_replay_that_nobody_waits_for_stops() {
    let batches = [a_batch("11:00", &[Order("09:10", 1)], true)];
    let rule: QuerySpecText = serde_json::from_str(HOURLY).expect("a rule");
    let rules = Rules::from(&QuerySpec::try_from(rule).expect("a rule"));
    let mut replay = Replay::new(&rules, &[span("0 seconds"), span("1 hour")]);
    let asked = Cell::new(0);
    assert!(!replay.take(&batches, || asked.replace(asked.get() + 1) < 1));
    let taken: Vec<u64> = replay.trials.iter().map(|trial| trial.events_in).collect();
    assert_eq!(taken, [1, 0]);
}
