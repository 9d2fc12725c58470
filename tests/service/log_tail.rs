//! What a process remembers of the end of the log is what the log says, and never instead of it.

use serde_json::{Value, json};
use tillmark::database::{Appended, Database, DatabaseError, FutureGuard};
use tillmark::domain::{EventTime, Heartbeat, QuerySpec, QuerySpecText, Seq, Span};
use tillmark::engine::{Batch, Rules};
use tillmark::intake::{Intake, IntakeError, IntakeSettings};
use tokio::sync::watch;

use crate::support::faulted_store::{identified, start};
use crate::support::{TestDatabase, TestService, a_sale};

const SETTINGS: IntakeSettings = IntakeSettings {
    queue_events_max: 100_000,
    queue_bytes_max: 100_000_000,
    commit_events_max: 10_000,
    future_guard: FutureGuard { skew_max: Some(Span::HOUR) },
};
/// More events than that are copied in.
const LARGE: usize = 450;

/// A process that appends, and another on the same database, which remembers nothing.
struct Log {
    database: TestDatabase,
    appending: Database,
    other: Database,
    intake: Intake,
    /// Where the log ended after the first appends, which are not remembered: they learn the partitions.
    begin: Seq,
}

impl Log {
    async fn begin() -> Self {
        let database = TestDatabase::create().await;
        let (appending, other) = (start(&database.url).await, start(&database.url).await);
        let head = watch::Sender::new(Seq::START);
        let (intake, _) = Intake::start(appending.clone(), SETTINGS, head);
        // One for each of the two writers.
        for id in ["first", "second"] {
            let event = identified(&[a_sale(id, "09:00:00", "1.00")]);
            intake.append(event, 1, false).await.unwrap();
        }
        let begin = other.raw_log_head().await.unwrap();
        Self { database, appending, other, intake, begin }
    }

    async fn append(&self, events: &[Value]) -> Vec<Appended> {
        self.intake.append(identified(events), 100, false).await.unwrap()
    }

    /// What both say after `position`; the same.
    async fn read(&self, rules: &Rules, position: Seq, records_max: u32) -> Batch {
        let head = self.other.raw_log_head().await.unwrap();
        let read = self.appending.raw_log_batch(rules, position, head, records_max).await.unwrap();
        let logged = self.other.raw_log_batch(rules, position, head, records_max).await.unwrap();
        assert_eq!(read, logged, "after {position}, at most {records_max}");
        read
    }

    /// Whether the end of the log after `position` is read without the log.
    async fn is_remembered(&self, rules: &Rules, position: Seq) -> bool {
        let head = self.other.raw_log_head().await.unwrap();
        self.database.execute("alter table raw_events rename to gone").await;
        let read = self.appending.raw_log_batch(rules, position, head, 1_000_000).await;
        self.database.execute("alter table gone rename to raw_events").await;
        match read {
            Ok(_) => true,
            Err(DatabaseError::Failed { .. }) => false,
            Err(other) => panic!("{other}"),
        }
    }
}

fn rules(more: &Value) -> Rules {
    let mut rule = json!({
        "window": { "kind": "tumbling", "size": "1 hour" }, "watermark_delay": "1 hour",
        "output_mode": "update",
    });
    rule.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let text: QuerySpecText = serde_json::from_value(rule).unwrap();
    Rules::from(&QuerySpec::try_from(text).unwrap())
}

/// Events that differ in whatever a query may ask for.
fn events(from: usize, count: usize) -> Vec<Value> {
    let event = |number: usize| {
        let mut event =
            a_sale(&number.to_string(), "09:05:00.123456", &format!("{number}.0{}", number % 10));
        let fields = event.as_object_mut().unwrap();
        let stores = [json!("S1"), json!("S"), Value::Null, json!("1")];
        fields.insert("store_id".to_owned(), stores[number % 4].clone());
        let tills = [Value::Null, json!("1S1"), json!("päivä 😀")];
        fields.insert("till_id".to_owned(), tills[number % 3].clone());
        let currency = ["USD", "EUR"][number % 2];
        fields.insert("currency".to_owned(), currency.into());
        if number.is_multiple_of(5) {
            fields.insert("attributes".to_owned(), json!({ "channel": "web", "empty": "" }));
        }
        event
    };
    (from..from + count).map(event).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_remembered_is_what_the_log_says() {
    let log = Log::begin().await;
    let all_fields =
        json!({ "group_by": ["store_id", "till_id", "attributes.channel", "attributes.empty"] });
    let rules = [
        rules(&json!({})),
        rules(&all_fields),
        rules(&json!({ "filter": { "status": ["placed"], "customer_id": ["nobody"] } })),
    ];
    log.append(&events(0, 3)).await;
    log.append(&events(3, LARGE)).await;
    // Some that were there already, so that positions are left without an event, also the last ones.
    let again = [events(460, 2), events(0, 3), events(470, 1), events(1, 1)].concat();
    let answers = log.append(&again).await;
    assert_eq!(answers.iter().filter(|answer| answer.accepted().is_some()).count(), 3);
    log.append(&events(480, 1)).await;
    for rules in &rules {
        assert!(log.is_remembered(rules, log.begin).await);
    }
    // The same twice in one post, and a copy that is given up because an id is taken.
    let twice = [events(500, 2), events(501, 3)].concat();
    log.append(&twice).await;
    let before_copy = log.other.raw_log_head().await.unwrap();
    log.append(&[events(600, LARGE), events(0, 1)].concat()).await;
    assert!(!log.is_remembered(&rules[0], log.begin).await);
    assert_eq!(log.read(&rules[0], before_copy, 1_000).await.records().len(), LARGE);
    let before_last = log.other.raw_log_head().await.unwrap();
    log.append(&events(2_000, 2)).await;
    assert!(log.is_remembered(&rules[0], before_last).await);
    let end = log.other.raw_log_head().await.unwrap();
    for rules in &rules {
        for position in log.begin.get()..=end.get() {
            log.read(rules, Seq::new(position), 1_000).await;
        }
        for records_max in [1, 2, 3, 4, 452, 453, 454, 455, 456, 457, 460] {
            log.read(rules, log.begin, records_max).await;
        }
    }
    let records = log.read(&rules[0], log.begin, 1_000).await.records().len();
    assert_eq!(records, 3 + LARGE + 3 + 1 + 4 + LARGE + 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_remembered_without_a_gap_is_read_from_the_log() {
    let log = Log::begin().await;
    let plain = rules(&json!({}));
    log.append(&events(0, 2)).await;
    assert!(log.is_remembered(&plain, log.begin).await);
    // A rule whose keys Postgres writes out, and a position from before.
    assert!(
        !log.is_remembered(&rules(&json!({ "deduplicate": { "keys": ["amount"] } })), log.begin)
            .await
    );
    assert!(!log.is_remembered(&plain, Seq::START).await);
    // A heartbeat goes the long way, as does what another process appends.
    let event_time: EventTime = "2026-10-01T09:30:00Z".parse().unwrap();
    let heartbeat = Heartbeat { source: "till-1".parse().unwrap(), event_time };
    log.intake.heartbeat(heartbeat).await.unwrap();
    let after_heartbeat = log.other.raw_log_head().await.unwrap();
    log.append(&events(10, 2)).await;
    assert!(!log.is_remembered(&plain, log.begin).await);
    assert!(log.is_remembered(&plain, after_heartbeat).await);
    assert_eq!(log.read(&plain, log.begin, 1_000).await.records().len(), 5);
    let (others, _) = Intake::start(log.other.clone(), SETTINGS, watch::Sender::new(Seq::START));
    others.append(identified(&events(20, 1)), 1, false).await.unwrap();
    assert!(!log.is_remembered(&plain, after_heartbeat).await);
    assert_eq!(log.read(&plain, after_heartbeat, 1_000).await.records().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_remembered_after_a_failure_and_no_more_than_fits() {
    let log = Log::begin().await;
    let plain = rules(&json!({}));
    log.append(&events(0, 2)).await;
    assert!(log.is_remembered(&plain, log.begin).await);
    log.database.execute("alter table event_keys rename to no_keys").await;
    let failed = log.intake.append(identified(&events(10, 1)), 1, false).await;
    assert!(matches!(failed, Err(IntakeError::Unknown(_))), "{failed:?}");
    log.database.execute("alter table no_keys rename to event_keys").await;
    assert!(!log.is_remembered(&plain, log.begin).await);

    let before_large = log.other.raw_log_head().await.unwrap();
    let attributes: serde_json::Map<String, Value> =
        (0..30).map(|number| (number.to_string(), "x".repeat(250).into())).collect();
    for from in [1_000, 2_000, 3_000, 4_000] {
        let mut large = events(from, 600);
        large.iter_mut().for_each(|event| event["attributes"] = attributes.clone().into());
        log.append(&large).await;
    }
    assert!(!log.is_remembered(&plain, before_large).await, "it would be more than 18 MB");
    let before_last = Seq::new(log.other.raw_log_head().await.unwrap().get() - 600);
    assert!(log.is_remembered(&plain, before_last).await);
    assert_eq!(log.read(&plain, before_large, 10_000).await.records().len(), 2_400);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_that_took_over_has_lost_is_not_counted() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let rule = json!({
        "window": { "kind": "tumbling", "size": "1 hour" }, "watermark_delay": "1 hour",
        "output_mode": "update", "trigger": { "kind": "interval", "every": "2 seconds" },
    });
    assert_eq!(service.put("/v1/queries/q", rule).await.status, 201);
    for number in 0..3 {
        service.post_events(&[a_sale(&number.to_string(), "09:05:00", "1.00")]).await;
    }
    service.wait_until_idle("q").await;
    // Remembered by the process, and gone from the log before the query's next turn.
    service.post_events(&events(10, 2)).await;
    let lost = "with lost as (delete from event_keys where event_id ~ '1[01]' returning seq)
         delete from raw_events using lost where raw_events.seq = lost.seq";
    database.execute(lost).await;
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    service.post_events(&events(20, 1)).await;
    service.wait_until_idle("q").await;
    let rows = service.rows("q").await;
    assert_eq!(rows.iter().map(|row| row["orders"].as_i64().unwrap()).sum::<i64>(), 4, "{rows:?}");
    let report = service.get("/v1/queries/q/reconciliation").await.body;
    assert_eq!(report["unexplained"], 0, "{report}");
}
