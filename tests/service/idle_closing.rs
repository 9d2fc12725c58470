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

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_heartbeat_is_never_ahead_of_now() {
    let database = TestDatabase::create().await;
    let service = TestService::start_with(&[
        ("DATABASE_URL", &database.url),
        ("TILLMARK_MAX_FUTURE_SKEW", "off"),
    ])
    .await;
    let ahead =
        database.number("select extract(epoch from now() + interval '5 hours')::bigint").await;
    let ahead = chrono::DateTime::from_timestamp(ahead, 0).unwrap();
    service.put("/v1/queries/q", rule(&json!("200 milliseconds"), "append")).await;
    let mut sale = a_sale("1", "09:05:00", "20.00");
    sale["event_time"] = ahead.to_rfc3339().into();
    service.post_events(&[sale]).await;
    let heartbeats = "select count(*) from raw_events where kind = 'idle_heartbeat'";
    while database.number(heartbeats).await == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    let ahead =
        "select count(*) from raw_events where kind = 'idle_heartbeat' and event_time > received_at
        and event_time > (select max(event_time) from raw_events where kind = 'event')";
    assert_eq!(database.number(ahead).await, 0);
    assert_eq!(service.rows("q").await, Vec::<Value>::new(), "the window ends in five hours");
}
