//! Events from the future: set aside, looked at, released or rejected.

use serde_json::{Value, json};

use crate::support::{TestDatabase, TestService, a_sale};

/// The time so many minutes from now, by the database's clock, in whole seconds.
async fn in_minutes(database: &TestDatabase, minutes: f64) -> String {
    sqlx::query_scalar(
        "select to_char((now() + make_interval(secs => $1 * 60)) at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')",
    )
    .bind(minutes)
    .fetch_one(&database.pool)
    .await
    .unwrap()
}

fn at(id: &str, event_time: &str) -> Value {
    let mut sale = a_sale(id, "00:00:00", "9.00");
    sale["event_time"] = event_time.into();
    sale
}

/// (count of the answer's `member`, its status, detail of the first result) of a post.
async fn posted(service: &TestService, event: Value, member: &str) -> (Value, u16, Value) {
    let answer = service.post("/v1/events?results=all", event).await;
    (answer.body[member].clone(), answer.status, answer.body["results"][0]["detail"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_from_the_future_waits_in_quarantine_and_moves_no_watermark() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    service.post_events(&[a_sale("1001", "09:05:00", "20.00")]).await;
    let time = in_minutes(&database, 20.0).await;
    let early = at("1009", &time);
    for attempt in ["first", "retry"] {
        let (count, status, detail) = posted(&service, early.clone(), "quarantined").await;
        assert_eq!((count, status), (json!(1), 200), "{attempt}");
        assert!(detail.as_str().unwrap().contains("once somebody releases it"), "{detail}");
    }
    let mut other = early.clone();
    other["amount"] = "10.00".into();
    assert_eq!(posted(&service, other, "conflicts").await.1, 409);

    let listed = service.get("/v1/quarantine").await.body;
    let entries = listed["quarantine"].as_array().unwrap();
    assert_eq!((entries.len(), &listed["next_cursor"]), (1, &Value::Null));
    assert_eq!(entries[0]["event"]["event_time"], json!(time));
    assert_eq!(entries[0]["resolution"], Value::Null);
    let reason = entries[0]["reason"].as_str().unwrap();
    assert!(
        reason
            .starts_with("its event_time was more than 15 minutes ahead of the database's clock, "),
        "{reason}"
    );
    service.wait_until_idle("hourly_sales").await;
    let query = service.get("/v1/queries/hourly_sales").await.body;
    assert_eq!(query["watermark"], "2026-10-01T08:05:00.000Z");
    let report = service.get("/v1/reconciliation").await.body;
    assert_eq!(report["totals"]["USD"]["recount"]["orders"], 1);
    assert_eq!(report["totals"]["USD"]["quarantined"], json!({"orders": 1, "revenue": "9.00"}));
    assert_eq!(report["unexplained"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_released_event_counts_at_its_own_or_a_corrected_time() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let time = in_minutes(&database, 20.0).await;
    service.post("/v1/events", json!([at("as-it-is", &time), at("corrected", &time)])).await;
    for (id, body, counts_at, orders) in [
        (
            "corrected-placed",
            json!({"action": "release", "event_time": "2026-10-01T09:05:00Z", "note": "a day ahead"}),
            "2026-10-01T09:05:00Z",
            1,
        ),
        ("as-it-is-placed", json!({"action": "release", "note": "it is so"}), &*time, 2),
    ] {
        let path = format!("/v1/quarantine/{id}");
        let released = service.post(&path, body.clone()).await;
        assert_eq!(released.status, 200, "{}", released.body);
        assert_eq!(released.body["event"]["event_time"], json!(time), "as it was posted");
        let resolution = &released.body["resolution"];
        assert_eq!(resolution["action"], "release");
        assert_eq!(resolution["note"], body["note"]);
        assert_eq!(
            (&resolution["event_time"], &resolution["seq"]),
            (&json!(counts_at), &json!(orders))
        );
        let again = service.post(&path, body).await;
        assert_eq!(
            (again.status, &again.body["type"]),
            (409, &json!("/problems/already-resolved"))
        );
        assert_eq!(
            again.body["detail"],
            format!(
                "Event `{id}` was released at {} as seq {orders}, with the note `{}`.",
                resolution["resolved_at"].as_str().unwrap(),
                resolution["note"].as_str().unwrap(),
            )
        );
    }
    for id in ["corrected", "as-it-is"] {
        let retry = posted(&service, at(id, &time), "duplicates").await;
        assert_eq!((retry.0, retry.1), (json!(1), 200), "{id}");
    }
    assert_eq!(service.get("/v1/quarantine").await.body["quarantine"], json!([]));
    service.wait_until_idle("hourly_sales_live").await;
    let rows = service.rows("hourly_sales_live").await;
    assert_eq!((rows.len(), &rows[0]["start"]), (2, &json!("2026-10-01T09:00:00Z")), "{rows:?}");
    let report = service.get("/v1/reconciliation").await.body;
    assert_eq!(
        (&report["totals"]["USD"]["quarantined"]["orders"], &report["unexplained"]),
        (&json!(0), &json!(0))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_event_never_counts_and_its_retry_is_told_so() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let time = in_minutes(&database, 60.0 * 24.0 * 365.0).await;
    // An id may hold anything.
    let mut event = at("x", &time);
    event["event_id"] = "till 7/ä?#%2F".into();
    assert_eq!(posted(&service, event.clone(), "quarantined").await.0, 1);
    let path = "/v1/quarantine/till%207%2F%C3%A4%3F%23%252F";
    let rejected = service.post(path, json!({"action": "reject", "note": "a test"})).await;
    assert_eq!(rejected.status, 200, "{}", rejected.body);
    let resolution = &rejected.body["resolution"];
    assert_eq!((&resolution["action"], &resolution["note"]), (&json!("reject"), &json!("a test")));
    assert_eq!((&resolution["event_time"], &resolution["seq"]), (&Value::Null, &Value::Null));
    let late = service.post(path, json!({"action": "release", "note": "after all"})).await;
    assert_eq!(late.status, 409);
    let detail = late.body["detail"].as_str().unwrap();
    assert!(detail.starts_with("Event `till 7/ä?#%2F` was rejected at 20"), "{detail}");
    assert!(detail.ends_with("Z, with the note `a test`."), "{detail}");
    let (count, status, detail) = posted(&service, event, "duplicates").await;
    assert_eq!((count, status), (json!(1), 200));
    assert_eq!(
        detail,
        "The same event was in quarantine, and somebody rejected it: it counts nowhere."
    );
    assert_eq!(database.number("select count(*) from raw_events").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_limit_the_future_comes_in() {
    let database = TestDatabase::create().await;
    for (setting, shown, member) in
        [("1 hour", "1 hour", "quarantined"), ("off", "off", "accepted")]
    {
        let service = TestService::start_with(&[
            ("DATABASE_URL", &database.url),
            ("TILLMARK_MAX_FUTURE_SKEW", setting),
        ])
        .await;
        assert_eq!(service.get("/v1/limits").await.body["max_future_skew"], shown);
        let event = at(setting, &in_minutes(&database, 61.0).await);
        assert_eq!(posted(&service, event, member).await.0, 1, "{setting}");
        let event = at(&format!("{setting}-2"), &in_minutes(&database, 59.0).await);
        assert_eq!(posted(&service, event, "accepted").await.0, 1, "{setting}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_quarantine_is_listed_page_by_page_the_oldest_first() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let time = in_minutes(&database, 20.0).await;
    // One post has one moment of receipt, so the ids decide there.
    for events in [json!([at("b", &time), at("a", &time)]), json!([at("0", &time)])] {
        assert_eq!(service.post("/v1/events", events).await.status, 200);
    }
    let (mut ids, mut next) = (Vec::new(), Some("/v1/quarantine?limit=1".to_owned()));
    while let Some(path) = next.take() {
        let page = service.get(&path).await.body;
        ids.push(page["quarantine"][0]["event"]["event_id"].as_str().unwrap().to_owned());
        next = page["next_cursor"]
            .as_str()
            .map(|cursor| format!("/v1/quarantine?limit=1&cursor={cursor}"));
    }
    assert_eq!(ids, ["a-placed", "b-placed", "0-placed"]);
    for (parameters, status) in [("?limit=0", 400), ("?cursor=x", 400), ("?all=true", 400)] {
        assert_eq!(service.get(&format!("/v1/quarantine{parameters}")).await.status, status);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_bad_decision_gets_its_status_place_and_sentence() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let time = in_minutes(&database, 20.0).await;
    service.post("/v1/events", at("1009", &time)).await;
    let path = "/v1/quarantine/1009-placed";
    for (body, status, pointer, sentence) in [
        (
            "{".to_owned(),
            400,
            "",
            "The body is not JSON: EOF while parsing an object at line 1 column 1.",
        ),
        ("null".to_owned(), 422, "", "The body is null; a decision is an object of named fields"),
        (
            r#"{"note":"x"}"#.to_owned(),
            422,
            "/action",
            "`action` is required: `release` or `reject`",
        ),
        (
            r#"{"action":"Reject","note":"x"}"#.to_owned(),
            422,
            "/action",
            "`action` is `Reject`; it must be `release` or `reject`",
        ),
        (
            r#"{"action":true,"note":"x"}"#.to_owned(),
            422,
            "/action",
            "`action` is a boolean; it must be `release` or `reject`",
        ),
        (
            r#"{"action":"reject"}"#.to_owned(),
            422,
            "/note",
            "`note` is required: a string of 1 to 1000 characters",
        ),
        (
            r#"{"action":"reject","note":""}"#.to_owned(),
            422,
            "/note",
            "`note` is empty; it needs 1 to 1000 characters",
        ),
        (
            format!(r#"{{"action":"reject","note":"{}"}}"#, "x".repeat(1001)),
            422,
            "/note",
            "`note` has 1001 characters; at most 1000 are allowed",
        ),
        (
            r#"{"action":"reject","note":"x","event_time":"2026-10-01T09:05:00Z"}"#.to_owned(),
            422,
            "/event_time",
            "`event_time` is for a release only; leave it out of a rejection",
        ),
        (
            r#"{"action":"release","note":"x","event_time":"2200-01-01T00:00:00Z"}"#.to_owned(),
            422,
            "/event_time",
            "`event_time` `2200-01-01T00:00:00Z` is outside the years 1900 to 2199",
        ),
        (
            r#"{"action":"release","note":"x","by":"me"}"#.to_owned(),
            422,
            "/by",
            "`by` is no field of a decision; the fields are action, event_time, note",
        ),
    ] {
        let case = body.chars().take(80).collect::<String>();
        let answer = service.post_text(path, "application/json", body).await;
        assert_eq!(answer.status, status, "{case}: {}", answer.body);
        let (at, found) = match &answer.body["errors"][0] {
            Value::Null => ("", &answer.body["detail"]),
            error => (error["pointer"].as_str().unwrap(), &error["detail"]),
        };
        assert_eq!((at, found), (pointer, &json!(sentence)), "{case}");
    }
    let unknown = format!("/v1/quarantine/{}", "x".repeat(201));
    for path in ["/v1/quarantine/none", "/v1/quarantine/%FF", "/v1/quarantine/%00", &unknown] {
        for action in ["release", "reject"] {
            let answer = service.post(path, json!({"action": action, "note": "x"})).await;
            assert_eq!(
                (answer.status, &answer.body["type"]),
                (404, &json!("/problems/not-in-quarantine")),
                "{path}"
            );
        }
    }
    assert_eq!(service.get("/v1/quarantine").await.body["quarantine"].as_array().unwrap().len(), 1);
}
