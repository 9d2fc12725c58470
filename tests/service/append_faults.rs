//! Every call of an append fails once, in both ways; a till that tries again until it is answered
//! has each event in the log once.

use std::collections::BTreeMap;

use serde_json::Value;
use tillmark::database::{Appended, FutureGuard};
use tillmark::domain::Seq;
use tillmark::intake::{Intake, IntakeError, IntakeSettings};
use tokio::sync::watch;

use crate::support::fault_proxy::{Fault, FaultProxy};
use crate::support::faulted_store::{identified, start};
use crate::support::{TestDatabase, a_sale};

const SETTINGS: IntakeSettings = IntakeSettings {
    queue_events_max: 1_000,
    queue_bytes_max: 100_000,
    commit_events_max: 1_000,
    future_guard: FutureGuard { skew_max: Some(tillmark::domain::Span::HOUR) },
};
const LARGE: u32 = 400;

/// Three posts of one till: new events, one of them twice; a retry with something new; one id with
/// other content, and one event of another century.
fn posts(till: &str) -> [Vec<Value>; 3] {
    let sale = |number: u32, amount: &str| a_sale(&format!("{till}-{number}"), "09:05:00", amount);
    let mut from_the_future = sale(5, "5.00");
    from_the_future["event_time"] = "2150-01-01T00:00:00Z".into();
    [
        vec![sale(1, "1.00"), sale(2, "2.00"), sale(1, "1.00")],
        vec![sale(2, "2.00"), sale(3, "3.00")],
        vec![sale(3, "3.50"), sale(4, "4.00"), from_the_future],
    ]
}

/// So many events as are copied in at once; then all of them again, with a new one.
fn large_posts(till: &str) -> [Vec<Value>; 2] {
    let sale = |number: u32| a_sale(&format!("{till}-{number}"), "09:05:00", "1.00");
    [(0..LARGE).map(sale).collect(), (0..=LARGE).map(sale).collect()]
}

#[tokio::test(flavor = "multi_thread")]
async fn each_event_is_in_the_log_once_whatever_call_of_its_append_fails() {
    let database = TestDatabase::create().await;
    for (fault, writers) in every_fault_and_way() {
        let calls =
            fail_every_call(&database, (fault, writers), posts, async |till, answers, place| {
                assert_stored(&database, till, answers, place).await;
            });
        let used = match writers {
            Writers::New => "insert into raw_events",
            Writers::Used => "select * from append_events",
        };
        assert_failed(&calls.await, &["BEGIN", used, "insert into quarantine", "COMMIT"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_of_large_posts_that_are_copied_in() {
    let database = TestDatabase::create().await;
    for (fault, writers) in every_fault_and_way() {
        let ways = (fault, writers);
        let calls = fail_every_call(&database, ways, large_posts, async |till, answers, place| {
            let stored: Vec<(String, i64)> = sqlx::query_as(
                "select event_id, seq from raw_events join event_keys using (event_id, seq)
                 where starts_with(event_id, $1)",
            )
            .bind(format!("{till}-"))
            .fetch_all(&database.pool)
            .await
            .unwrap();
            assert_eq!((stored.len(), answers.len()), (401, 401), "{place}");
            for (event_id, seq) in stored {
                let (Appended::Accepted(at) | Appended::Duplicate(at)) = answers[&event_id] else {
                    panic!("{place}: {event_id} is answered {:?}", answers[&event_id]);
                };
                assert_eq!(at, Seq::new(seq), "{place}: {event_id}");
            }
            let all = "select count(*) - count(distinct event_id) from raw_events";
            assert_eq!(database.number(all).await, 0, "{place}: an event stands twice");
        });
        let expected: &[&str] = match writers {
            Writers::New => &["BEGIN", "insert into event_keys", "COMMIT"],
            // A whole copy, then one that finds an id taken, and the statement that can tell.
            Writers::Used => &[
                "BEGIN",
                "with locked as materialized (select pg_advisory_lock",
                "copy event_keys",
                "with locked as materialized (select pg_advisory_xact_lock",
                "copy raw_events",
                "COMMIT",
                "select pg_logical_emit_message",
                "ROLLBACK",
                "select pg_advisory_unlock(",
                "select * from append_events",
            ],
        };
        assert_failed(&calls.await, expected);
    }
}

/// Whether the writers have appended before, and know that there is room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writers {
    New,
    Used,
}

fn every_fault_and_way() -> impl Iterator<Item = (Fault, Writers)> {
    let faults = [Fault::NotApplied, Fault::AppliedButReportedFailed];
    faults.into_iter().flat_map(|fault| [(fault, Writers::New), (fault, Writers::Used)])
}

/// Each of these calls was one of those that failed.
fn assert_failed(calls: &[String], expected: &[&str]) {
    for beginning in expected {
        let failed = calls.iter().any(|call| call.starts_with(beginning));
        assert!(failed, "{beginning} is not among {calls:#?}");
    }
}

/// Runs the posts again and again, each time with the next call failing, until none is left to fail.
/// Answers which there were.
async fn fail_every_call<const POSTS: usize>(
    database: &TestDatabase,
    (fault, writers): (Fault, Writers),
    posts: fn(&str) -> [Vec<Value>; POSTS],
    assert_stored: impl AsyncFn(&str, &BTreeMap<String, Appended>, &str),
) -> Vec<String> {
    let proxy = FaultProxy::start(&database.url);
    let mut failed = Vec::new();
    for nth in 1.. {
        let till = format!("{fault:?}-{writers:?}-{nth}");
        let place = format!("call {nth} of the appends, {fault:?}");
        let store = start(&proxy.url).await;
        let (intake, writer) =
            Intake::start(store.clone(), SETTINGS, watch::Sender::new(Seq::START));
        if writers == Writers::Used {
            // They take turns.
            for number in 0..2 {
                let sale = a_sale(&format!("before-{till}-{number}"), "09:05:00", "1.00");
                post_until_answered(&intake, &identified(&[sale]), &place).await;
            }
        }
        proxy.count(Some((nth, fault)));
        let mut answers = BTreeMap::new();
        for post in posts(&till) {
            let events = identified(&post);
            let ids = events.iter().map(|one| one.event.event_id.as_str().to_owned());
            let ids: Vec<String> = ids.collect();
            let answer = post_until_answered(&intake, &events, &place).await;
            answers.extend(ids.into_iter().zip(answer));
        }
        let met = proxy.stop_counting();
        drop(intake);
        writer.await.unwrap();
        store.close().await;
        assert_stored(&till, &answers, &format!("{place}: {:?}", met.failed)).await;
        let Some(call) = met.failed else { break };
        failed.push(call);
    }
    failed
}

async fn post_until_answered(
    intake: &Intake,
    events: &[tillmark::domain::IdentifiedEvent],
    place: &str,
) -> Vec<Appended> {
    for _ in 0..5 {
        match intake.append(events.to_vec(), 100, false).await {
            Ok(answer) => return answer,
            Err(IntakeError::Unknown(_)) => {}
            Err(other) => panic!("{place}: {other:?}"),
        }
    }
    panic!("{place}: no answer");
}

/// The log has orders 1 to 4 once, where the answers say; the fifth waits in quarantine.
async fn assert_stored(
    database: &TestDatabase,
    till: &str,
    answers: &BTreeMap<String, Appended>,
    place: &str,
) {
    let stored: Vec<(String, i64, String)> = sqlx::query_as(
        "select event_id, seq, amount::text from raw_events join event_keys using (event_id, seq)
         where starts_with(event_id, $1) order by event_id",
    )
    .bind(format!("{till}-"))
    .fetch_all(&database.pool)
    .await
    .unwrap();
    let amounts: Vec<&str> = stored.iter().map(|(.., amount)| amount.as_str()).collect();
    assert_eq!(amounts, ["1.0000", "2.0000", "3.0000", "4.0000"], "{place}: {stored:?}");
    for (event_id, seq, _) in &stored {
        let (answer, seq) = (answers[event_id], Seq::new(*seq));
        let right = match answer {
            Appended::Accepted(at) | Appended::Duplicate(at) => at == seq,
            // The last word on order 3 is the refusal of its other content.
            Appended::Conflict { first_seq, .. } => first_seq == Some(seq),
            _ => false,
        };
        assert!(right, "{place}: {event_id} stands at {seq}, answered {answer:?}");
    }
    let future = format!("{till}-5-placed");
    assert_eq!(answers[&future], Appended::Quarantined, "{place}");
    let waits = format!(
        "select count(*) from quarantine where event_id = '{future}' and resolved_at is null"
    );
    assert_eq!(database.number(&waits).await, 1, "{place}");
    let all = "select count(*) - count(distinct event_id) from raw_events";
    assert_eq!(database.number(all).await, 0, "{place}: an event stands twice");
}
