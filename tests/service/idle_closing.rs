//! Windows that close because nothing comes any more, for queries that ask for it.

use serde_json::{Value, json};

use crate::support::{TestDatabase, TestService, a_sale};

fn rule(idle_timeout: &Value, output_mode: &str) -> Value {
    json!({
        "window": {"kind": "tumbling", "size": "100 milliseconds"}, "watermark_delay": "0 seconds",
        "output_mode": output_mode, "idle_timeout": idle_timeout,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quiet_night_closes_the_last_windows_of_those_who_want_it_and_a_replay_does_the_same() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    service.put("/v1/queries/waits", rule(&Value::Null, "append")).await;
    service.put("/v1/queries/closes", rule(&json!("400 milliseconds"), "append")).await;
    service.put("/v1/queries/closes_live", rule(&json!("400 milliseconds"), "update")).await;
    service.put("/v1/queries/patient", rule(&json!("1 hour"), "append")).await;
    service
        .post_events(&[a_sale("1", "09:05:00", "20.00"), a_sale("2", "09:05:00.250", "1.00")])
        .await;
    // One window is closed by the second event, the other by silence alone.
    let rows = loop {
        let rows = service.rows("closes").await;
        if rows.len() == 2 {
            break rows;
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    };
    let closed_by: Vec<&Value> = rows.iter().map(|row| &row["closed_by"]).collect();
    assert_eq!(closed_by, ["watermark", "idle"]);
    service.wait_until_idle("closes_live").await;
    let live = service.rows("closes_live").await;
    let closed_by: Vec<&Value> = live.iter().map(|row| &row["closed_by"]).collect();
    assert_eq!(closed_by, ["watermark", "idle"]);
    for other in ["waits", "patient"] {
        service.wait_until_idle(other).await;
        assert_eq!(service.rows(other).await.len(), 1, "{other}");
    }
    // Nothing is open any more, so no more heartbeats come.
    let heartbeats = "select count(*) from raw_events where kind = 'idle_heartbeat'";
    let counted = database.number(heartbeats).await;
    tokio::time::sleep(std::time::Duration::from_millis(900)).await;
    assert_eq!(database.number(heartbeats).await, counted);

    // Another day, another query, the same log: the same rows, and the same reasons.
    let mut again = rule(&json!("400 milliseconds"), "append");
    again["trigger"] = json!({"kind": "manual"});
    service.put("/v1/queries/again", again).await;
    service.run("again").await;
    let figures = |rows: &[Value]| -> Vec<Value> {
        let fields = ["start", "end", "orders", "revenue", "closed_by"];
        rows.iter().map(|row| fields.map(|field| row[field].clone()).into()).collect()
    };
    assert_eq!(figures(&service.rows("again").await), figures(&rows));
    let report = service.get("/v1/queries/again/reconciliation").await.body;
    assert_eq!(
        (&report["unexplained"], &report["windows"][1]["status"]),
        (&json!(0), &json!("match"))
    );
    // What comes for a window that silence has closed is late, and said to be.
    service.post_events(&[a_sale("3", "09:05:00.260", "5.00")]).await;
    service.wait_until_idle("closes").await;
    assert_eq!(
        service.rows("closes").await[1]["late_since"],
        json!({"orders": 1, "revenue": "5.00"})
    );
}

fn minutes(status: &str, idle_timeout: &str, delay: &str) -> Value {
    json!({
        "filter": {"status": [status]}, "window": {"kind": "tumbling", "size": "1 minute"},
        "watermark_delay": delay, "output_mode": "append", "idle_timeout": idle_timeout,
    })
}

async fn a_sale_at(database: &TestDatabase, id: &str, status: &str, from_now: &str) -> Value {
    let micros =
        format!("select (extract(epoch from now() + interval '{from_now}') * 1e6)::bigint");
    let time = chrono::DateTime::from_timestamp_micros(database.number(&micros).await).unwrap();
    let mut sale = a_sale(id, "09:05:00", "20.00");
    (sale["status"], sale["event_time"]) = (status.into(), time.to_rfc3339().into());
    sale
}

#[tokio::test(flavor = "multi_thread")]
async fn one_fast_clock_closes_nobody_elses_windows_when_all_are_silent() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    service.put("/v1/queries/fast", minutes("fast", "300 milliseconds", "0 seconds")).await;
    service.put("/v1/queries/right", minutes("right", "300 milliseconds", "1 minute")).await;
    let fast = a_sale_at(&database, "1", "fast", "14 minutes").await;
    let right = a_sale_at(&database, "2", "right", "0 minutes").await;
    service.post_events(&[right, fast]).await;
    tokio::time::sleep(std::time::Duration::from_millis(1_500)).await;
    let ahead = "select count(*) from raw_events where kind = 'idle_heartbeat' and event_time > received_at";
    assert_eq!(database.number(ahead).await, 0);
    let late_by_nothing = a_sale_at(&database, "3", "right", "0 minutes").await;
    service.post_events(&[late_by_nothing]).await;
    service.wait_until_idle("right").await;
    let dropped = service.get("/v1/queries/right/dropped-events").await.body;
    assert_eq!(dropped["dropped_events"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_waits_long_does_not_keep_another_from_closing() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    service.put("/v1/queries/patient", minutes("old", "200 milliseconds", "10 days")).await;
    let mut quick = minutes("new", "500 milliseconds", "0 seconds");
    quick["window"]["size"] = "100 milliseconds".into();
    service.put("/v1/queries/quick", quick).await;
    let old = a_sale_at(&database, "1", "old", "-5 hours").await;
    let new = a_sale_at(&database, "2", "new", "0 hours").await;
    service.post_events(&[old, new]).await;
    while service.rows("quick").await.is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    tokio::time::sleep(std::time::Duration::from_millis(1_000)).await;
    let heartbeats = "select count(*) from raw_events where kind = 'idle_heartbeat'";
    assert_eq!(database.number(heartbeats).await, 1, "one is all that it takes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_waits_for_less_than_it_rests_reads_all_the_same() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let rule = json!({
        "window": {"kind": "tumbling", "size": "1 hour"}, "watermark_delay": "1 hour",
        "output_mode": "update", "idle_timeout": "1 millisecond",
    });
    service.put("/v1/queries/q", rule).await;
    for number in 0..20 {
        service.post_events(&[a_sale(&number.to_string(), "09:05:00", "1.00")]).await;
    }
    service.wait_until_idle("q").await;
    let report = service.get("/v1/queries/q/reconciliation").await.body;
    assert_eq!(report["unexplained"], 0, "{report}");
}
