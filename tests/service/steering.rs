//! Queries that are paused, resumed, reset and deleted while their batches run; and state that stays
//! as small as the watermark lets it be.

use serde_json::{Value, json};

use crate::support::{TestDatabase, TestService};

/// A day of events, two a minute, put into the log as somebody with psql could.
async fn fill(database: &TestDatabase, events: u32) {
    let insert = format!(
        "insert into raw_events (seq, received_at, event_id, order_id, status, amount, currency, event_time, store_id)
         select nextval('raw_events_seq'), now(), 'event-' || n, 'order-' || n, 'placed', n % 97, 'USD',
             timestamptz '2026-10-01T00:00Z' + n * interval '30 seconds', 'S' || n % 5
         from generate_series(1, {events}) n"
    );
    database.execute(&insert).await;
}

fn rule(events_max: u32) -> Value {
    json!({
        "window": {"kind": "tumbling", "size": "1 hour"}, "watermark_delay": "1 hour",
        "group_by": ["store_id"], "output_mode": "append", "max_events_per_batch": events_max,
    })
}

fn without_times(mut rows: Vec<Value>) -> Vec<Value> {
    for row in &mut rows {
        row["written_at"].take();
    }
    rows
}

#[tokio::test(flavor = "multi_thread")]
async fn steering_a_query_while_its_batches_run_changes_no_row() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    fill(&database, 20_000).await;
    service.put("/v1/queries/undisturbed", rule(50)).await;
    service.put("/v1/queries/q", rule(50)).await;
    let act = async |action: &str| {
        let answer = service.post(&format!("/v1/queries/q/{action}"), json!({})).await;
        assert_eq!(answer.status, 200, "{action}: {}", answer.body);
        answer.body
    };
    for _ in 0..10 {
        act("pause").await;
        let stands = act("pause").await["position"].clone();
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        let still = service.get("/v1/queries/q").await.body;
        assert_eq!((&still["position"], &still["status"]), (&stands, &json!("paused")));
        act("resume").await;
        tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    }
    let before = service.get("/v1/queries/q").await.body["position"].as_i64().unwrap();
    assert!((1..20_000).contains(&before), "the batches did not run meanwhile: {before}");
    act("reset").await;
    tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    // A changed delay counts from the next batch on; the windows of this log close all the same.
    let mut changed = rule(50);
    changed["max_events_per_batch"] = 500.into();
    assert_eq!(service.put("/v1/queries/q", changed).await.status, 200);
    act("reset").await;
    service.put("/v1/queries/q", rule(50)).await;
    act("reset").await;
    service.wait_until_idle("q").await;
    service.wait_until_idle("undisturbed").await;
    let rows = without_times(service.rows("undisturbed").await);
    assert!(rows.len() > 800);
    assert_eq!(without_times(service.rows("q").await), rows);
    let report = service.get("/v1/queries/q/reconciliation").await.body;
    assert_eq!(report["unexplained"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_deleted_while_its_batches_run_leaves_nothing_behind() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    fill(&database, 20_000).await;
    service.put("/v1/queries/q", rule(50)).await;
    while service.get("/v1/queries/q").await.body["batch_id"].is_null() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let query_id = database.number("select query_id from queries where name = 'q'").await;
    assert_eq!(service.delete("/v1/queries/q").await.status, 204);
    assert_eq!(service.post("/v1/queries/q/run", json!({})).await.status, 404);
    // Another of the same name is another query.
    service.put("/v1/queries/q", rule(1_000)).await;
    service.wait_until_idle("q").await;
    for table in ["window_rows", "window_state", "progress", "dropped_events", "duplicate_state"] {
        let left = format!("select count(*) from {table} where query_id = {query_id}");
        assert_eq!(database.number(&left).await, 0, "{table}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn remembered_keys_and_open_windows_stay_as_few_as_the_watermark_asks_for() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    fill(&database, 50_000).await;
    let mut counted_once = rule(5_000);
    counted_once["deduplicate"] = json!({"keys": ["order_id"]});
    counted_once["trigger"] = json!({"kind": "manual"});
    service.put("/v1/queries/q", counted_once).await;
    let count = |table: &str| {
        format!("select count(*) from {table} join queries using (query_id) where name = 'q'")
    };
    let mut most = (0, 0);
    while service.post("/v1/queries/q/run", json!({"max_batches": 1})).await.body["progress"]
        != json!([])
    {
        let keys = database.number(&count("duplicate_state")).await;
        let windows = database.number(&count("window_state")).await;
        most = (most.0.max(keys), most.1.max(windows));
    }
    // Two events a minute: a batch spans 42 hours, and its predecessor's last two are still open.
    assert!(most.0 > 4_000 && most.0 <= 5_240, "{} keys", most.0);
    assert!(most.1 > 200 && most.1 <= 5 * 46, "{} windows", most.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn steering_with_words_that_nobody_would_read_is_refused() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let query = "/v1/queries/hourly_sales";
    for path in [
        format!("{query}/pause"),
        format!("{query}/reset"),
        format!("{query}/resume"),
        format!("{query}/run"),
    ] {
        for (content_type, body, status) in [
            ("application/json", r#"{"after":"today"}"#, [400, 422]),
            ("application/json", "{", [400, 400]),
            ("text/plain", "after today", [415, 415]),
        ] {
            let answer = service.post_text(&path, content_type, body).await;
            assert!(status.contains(&answer.status), "{path} {body}: {}", answer.body);
        }
        let answer = service.post_text(&path, "application/json", "").await;
        assert!(answer.status < 300, "{path}: {}", answer.body);
    }
    let answer = service.post_text(&format!("{query}/run"), "application/json", "null").await;
    assert_eq!(answer.body, json!({"progress": []}));
}
