//! Receipts: what became of an event, sentence by sentence.

use serde_json::{Value, json};

use crate::support::{TestDatabase, TestService, a_sale};

fn rule(window: &Value, members: &Value) -> Value {
    let mut rule = json!({
        "filter": {"status": ["placed"]}, "window": window, "watermark_delay": "1 hour",
        "output_mode": "append", "trigger": {"kind": "manual"},
    });
    for (name, value) in members.as_object().unwrap() {
        rule[name] = value.clone();
    }
    rule
}

fn hourly(members: &Value) -> Value {
    rule(&json!({"kind": "tumbling", "size": "1 hour"}), members)
}

async fn receipt(service: &TestService, event_id: &str) -> Value {
    let answer = service.get(&format!("/v1/events/{event_id}")).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.body
}

/// What a query made of an event; nothing when the receipt does not name the query.
async fn outcome(service: &TestService, event_id: &str, query: &str) -> Value {
    let receipt = receipt(service, event_id).await;
    let queries = receipt["queries"].as_array().unwrap();
    queries.iter().find(|one| one["query"] == query).cloned().unwrap_or_default()
}

async fn reason(service: &TestService, event_id: &str, query: &str) -> String {
    outcome(service, event_id, query).await["reason"].as_str().unwrap_or("none").to_owned()
}

/// A window of 1 October 2026.
fn window(start: &str, end: &str) -> Value {
    json!({"start": format!("2026-10-01T{start}:00Z"), "end": format!("2026-10-01T{end}:00Z")})
}

#[tokio::test(flavor = "multi_thread")]
async fn the_worked_example_is_told_event_by_event() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    service.put("/v1/queries/example", hourly(&json!({}))).await;
    let mut paid = a_sale("1001", "09:06:00", "20.00");
    paid["event_id"] = "1001-paid".into();
    paid["status"] = "paid".into();
    service
        .post_events(&[
            a_sale("1001", "09:05:00", "20.00"),
            a_sale("1002", "09:20:00", "30.50"),
            a_sale("1003", "09:40:00", "18.00"),
            paid,
            a_sale("1004", "10:20:00", "40.00"),
        ])
        .await;
    let waits = outcome(&service, "1001-placed", "example").await;
    assert_eq!(
        waits,
        json!({
            "query": "example", "outcome": "waiting", "windows": [window("09:00", "10:00")],
            "missed_windows": [], "batch_id": null,
            "reason": "waiting: the query has not read it yet",
        })
    );
    service.run("example").await;
    assert_eq!(
        reason(&service, "1001-placed", "example").await,
        "counted: in the 09:00–10:00 window by batch 0; the window is still open"
    );
    service.post_events(&[a_sale("1005", "11:30:00", "18.25")]).await;
    service.run("example").await;
    service
        .post_events(&[
            a_sale("1006", "09:50:00", "22.00"),
            a_sale("1007", "10:45:00", "15.00"),
            a_sale("1008", "12:40:00", "12.00"),
        ])
        .await;
    service.run("example").await;

    let nine = "counted: in the 09:00–10:00 window by batch 0; the window is final since batch 3";
    for (event_id, sentence) in [
        ("1001-placed", nine),
        ("1002-placed", nine),
        ("1003-placed", nine),
        (
            "1004-placed",
            "counted: in the 10:00–11:00 window by batch 0; the window is final since batch 5",
        ),
        ("1005-placed", "counted: in the 11:00–12:00 window by batch 2; the window is still open"),
        ("1006-placed", "late: the 09:00–10:00 window was closed at 10:30 by order 1005 of 11:30"),
        (
            "1007-placed",
            "counted: in the 10:00–11:00 window by batch 4; the window is final since batch 5",
        ),
        ("1008-placed", "counted: in the 12:00–13:00 window by batch 4; the window is still open"),
        ("1001-paid", "none"),
    ] {
        assert_eq!(reason(&service, event_id, "example").await, sentence, "{event_id}");
    }
    let late = receipt(&service, "1006-placed").await;
    assert_eq!((&late["seq"], &late["quarantine"]), (&json!(7), &Value::Null));
    assert_eq!(late["event"]["event_time"], "2026-10-01T09:50:00Z");
    assert!(late["received_at"].as_str().unwrap().ends_with('Z'));
    assert_eq!(
        outcome(&service, "1006-placed", "example").await,
        json!({
            "query": "example", "outcome": "late", "windows": [],
            "missed_windows": [window("09:00", "10:00")], "batch_id": 4,
            "reason": "late: the 09:00–10:00 window was closed at 10:30 by order 1005 of 11:30",
        })
    );
    assert_eq!(receipt(&service, "1001-paid").await["queries"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_starts_later_is_not_on_the_receipt() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    service.post_events(&[a_sale("1", "09:05:00", "1.00")]).await;
    service.put("/v1/queries/later", hourly(&json!({"start": "latest"}))).await;
    service.post_events(&[a_sale("2", "09:05:00", "1.00")]).await;
    assert_eq!(reason(&service, "1-placed", "later").await, "none");
    assert_eq!(
        reason(&service, "2-placed", "later").await,
        "waiting: the query has not read it yet"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn who_closed_a_window_may_be_a_heartbeat_or_silence() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    service.put("/v1/queries/q", hourly(&json!({"idle_timeout": "30 minutes"}))).await;
    service.post_events(&[a_sale("1", "09:05:00", "1.00")]).await;
    service.run("q").await;
    let heartbeat = json!({"source": "till-7", "event_time": "2026-10-01T11:20:00Z"});
    assert_eq!(service.post("/v1/heartbeats", heartbeat).await.status, 202);
    service.run("q").await;
    // What the service appends after a silence; one that was too short for this query does nothing.
    for (clock, quiet_ms) in [("12:10", 31 * 60_000), ("13:10", 60_000)] {
        database
            .execute(&format!(
                "insert into raw_events (seq, received_at, kind, event_id, event_time, quiet_ms)
                 values (nextval('raw_events_seq'), now(), 'idle_heartbeat', 'tillmark', '2026-10-01T{clock}Z', {quiet_ms})"
            ))
            .await;
    }
    service.run("q").await;
    service.post_events(&[a_sale("2", "09:30:00", "1.00"), a_sale("3", "10:30:00", "1.00")]).await;
    service.run("q").await;
    for (event_id, sentence) in [
        (
            "2-placed",
            "late: the 09:00–10:00 window was closed at 10:20 by a heartbeat of till-7 of 11:20",
        ),
        (
            "3-placed",
            "late: the 10:00–11:00 window was closed at 11:10 because nothing came for 31 minutes",
        ),
    ] {
        assert_eq!(reason(&service, event_id, "q").await, sentence);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sliding_event_counts_in_the_windows_that_are_still_open() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let sliding = json!({"kind": "sliding", "size": "1 hour", "slide": "30 minutes"});
    service.put("/v1/queries/q", rule(&sliding, &json!({"group_by": ["store_id"]}))).await;
    service.post_events(&[a_sale("1", "09:10:00", "1.00")]).await;
    service.run("q").await;
    // Both move the watermark in one batch; the newest of them closes windows.
    service.post_events(&[a_sale("2", "11:05:00", "1.00"), a_sale("3", "10:50:00", "1.00")]).await;
    service.run("q").await;
    service.post_events(&[a_sale("4", "09:40:00", "1.00")]).await;
    service.run("q").await;
    assert_eq!(
        reason(&service, "1-placed", "q").await,
        "counted: in 2 windows (08:30–09:30 to 09:00–10:00) by batch 0; all are final since batch 3"
    );
    let late = outcome(&service, "4-placed", "q").await;
    assert_eq!((&late["outcome"], &late["batch_id"]), (&json!("late"), &json!(4)));
    assert_eq!(late["missed_windows"], json!([window("09:00", "10:00")]));
    assert_eq!(late["windows"], json!([window("09:30", "10:30")]));
    assert_eq!(
        late["reason"],
        "late: the 09:00–10:00 window was closed at 10:05 by order 2 of 11:05; it counts in the \
         other one by batch 4"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_told_as_it_is_now() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let sessions = json!({"kind": "session", "gap": "30 minutes"});
    service.put("/v1/queries/q", rule(&sessions, &json!({"group_by": ["store_id"]}))).await;
    let mut other_store = a_sale("2", "09:10:00", "1.00");
    other_store["store_id"] = "S2".into();
    service.post_events(&[a_sale("1", "09:00:00", "1.00"), other_store]).await;
    service.run("q").await;
    assert_eq!(
        reason(&service, "1-placed", "q").await,
        "counted: in the 09:00–09:30 session by batch 0; the session is still open"
    );
    service.post_events(&[a_sale("3", "09:20:00", "1.00")]).await;
    service.run("q").await;
    for (event_id, batch) in [("1-placed", 0), ("3-placed", 2)] {
        assert_eq!(
            reason(&service, event_id, "q").await,
            format!(
                "counted: in the 09:00–09:50 session by batch {batch}; the session is still open"
            )
        );
    }
    service.post_events(&[a_sale("4", "11:00:00", "1.00")]).await;
    service.run("q").await;
    service.post_events(&[a_sale("5", "09:20:00", "1.00")]).await;
    service.run("q").await;
    for (event_id, sentence) in [
        (
            "1-placed",
            "counted: in the 09:00–09:50 session by batch 0; the session is final since batch 5",
        ),
        (
            "2-placed",
            "counted: in the 09:10–09:40 session by batch 0; the session is final since batch 5",
        ),
        ("5-placed", "late: the 09:20–09:50 session was closed at 10:00 by order 4 of 11:00"),
    ] {
        assert_eq!(reason(&service, event_id, "q").await, sentence, "{event_id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_duplicate_is_told_which_event_counted() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let keys = json!({"deduplicate": {"keys": ["event_time", "order_id", "status", "store_id"]}});
    service.put("/v1/queries/all_fields", hourly(&keys)).await;
    let keys = json!({"deduplicate": {"keys": ["order_id", "status"]}});
    service.put("/v1/queries/q", hourly(&keys)).await;
    let named = |event_id: &str, clock: &str| {
        let mut sale = a_sale("1001", clock, "20.00");
        sale["event_id"] = event_id.into();
        sale
    };
    service.post_events(&[named("X", "09:05:00"), a_sale("1002", "09:06:00", "1.00")]).await;
    service.post_events(&[named("Y", "09:07:00"), named("Z", "09:05:00")]).await;
    for query in ["q", "all_fields"] {
        service.run(query).await;
    }
    for event_id in ["Y", "Z"] {
        let duplicate = outcome(&service, event_id, "q").await;
        assert_eq!(
            duplicate["reason"],
            "duplicate: order 1001 with status placed was counted first, as event X"
        );
        assert_eq!(duplicate["missed_windows"], json!([window("09:00", "10:00")]));
        assert_eq!((&duplicate["windows"], &duplicate["batch_id"]), (&json!([]), &json!(0)));
    }
    assert_eq!(
        reason(&service, "Z", "all_fields").await,
        "duplicate: order 1001 with event_time 2026-10-01T09:05:00Z, status placed and no \
         store_id was counted first, as event X"
    );
    assert_eq!(
        reason(&service, "Y", "all_fields").await,
        "counted: in the 09:00–10:00 window by batch 0; the window is still open"
    );

    // At 10:30 the key of 09:05 is forgotten: what it names may count again, but not of 10:20.
    service.post_events(&[a_sale("1005", "11:30:00", "1.00")]).await;
    service.run("q").await;
    service.post_events(&[named("V", "10:20:00"), named("W", "10:40:00")]).await;
    service.run("q").await;
    service.post_events(&[named("W2", "10:41:00")]).await;
    service.run("q").await;
    for (event_id, sentence) in [
        (
            "V",
            "late: whether it is a duplicate could no longer be told: its time, 10:20, was passed at \
             10:30 by order 1005 of 11:30",
        ),
        ("W", "counted: in the 10:00–11:00 window by batch 4; the window is still open"),
        ("W2", "duplicate: order 1001 with status placed was counted first, as event W"),
    ] {
        assert_eq!(reason(&service, event_id, "q").await, sentence, "{event_id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_is_set_aside_is_told_why() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    service.put("/v1/queries/q", hourly(&json!({}))).await;
    for id in ["released", "rejected", "waiting"] {
        let mut event = a_sale(id, "09:05:00", "1.00");
        event["event_time"] = "2199-10-01T09:05:00Z".into();
        assert_eq!(service.post("/v1/events", event).await.body["quarantined"], 1);
    }
    let waiting = receipt(&service, "waiting-placed").await;
    assert_eq!((&waiting["seq"], &waiting["quarantine"]["action"]), (&Value::Null, &Value::Null));
    let because = waiting["quarantine"]["reason"].as_str().unwrap();
    assert_eq!(
        outcome(&service, "waiting-placed", "q").await,
        json!({
            "query": "q", "outcome": "quarantined", "batch_id": null, "missed_windows": [],
            "windows": [{"start": "2199-10-01T09:00:00Z", "end": "2199-10-01T10:00:00Z"}],
            "reason": format!("quarantined: {because}"),
        })
    );
    let decide = async |id: &str, body: Value| {
        let answer = service.post(&format!("/v1/quarantine/{id}-placed"), body).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
    };
    decide("rejected", json!({"action": "reject", "note": "a test"})).await;
    let rejected = reason(&service, "rejected-placed", "q").await;
    assert!(rejected.ends_with("; it was rejected: a test"), "{rejected}");

    let time = "2026-10-01T09:05:00Z";
    decide("released", json!({"action": "release", "event_time": time, "note": "wrong year"}))
        .await;
    service.run("q").await;
    let released = receipt(&service, "released-placed").await;
    assert_eq!((&released["seq"], &released["event"]["event_time"]), (&json!(1), &json!(time)));
    let was = &released["quarantine"];
    assert_eq!(
        (&was["action"], &was["note"], &was["event_time"]),
        (&json!("release"), &json!("wrong year"), &json!("2199-10-01T09:05:00Z"))
    );
    assert!(was["received_at"].as_str().unwrap() < released["received_at"].as_str().unwrap());
    assert_eq!(
        reason(&service, "released-placed", "q").await,
        "counted: in the 09:00–10:00 window by batch 0; the window is still open"
    );

    database
        .execute("insert into poison_events (query_id, seq, reason) select query_id, 1, 'a sum was too large' from queries where name = 'q'")
        .await;
    assert_eq!(service.get("/v1/queries/q").await.body["poison_events"], 1);
    assert_eq!(service.get("/v1/queries/hourly_sales").await.body["poison_events"], 0);
    let poisoned = outcome(&service, "released-placed", "q").await;
    assert_eq!(
        (&poisoned["outcome"], &poisoned["batch_id"]),
        (&json!("quarantined"), &Value::Null)
    );
    assert_eq!(
        poisoned["reason"],
        "quarantined: the query goes on without it: a sum was too large"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_event_has_no_receipt_and_any_id_can_be_asked_for() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let mut event = a_sale("1", "09:05:00", "1.00");
    event["event_id"] = "a/b c?d#é%41".into();
    service.post_events(&[event]).await;
    let found = receipt(&service, "a%2Fb%20c%3Fd%23%C3%A9%2541").await;
    assert_eq!(found["event"]["event_id"], "a/b c?d#é%41");
    let too_long = "x".repeat(201);
    for id in ["none", "a", "%00", "%FF", &too_long] {
        let answer = service.get(&format!("/v1/events/{id}")).await;
        assert_eq!(
            (answer.status, answer.header("content-type"), &answer.body["type"]),
            (404, "application/problem+json", &json!("/problems/no-such-event")),
            "{id}"
        );
    }
    assert_eq!(
        service.get("/v1/events/none").await.body["detail"],
        "No event `none` was ever stored."
    );
    assert_eq!(service.get("/v1/events/none?query=q").await.status, 400);
}
