//! Heartbeats: a source says that nothing older will come, and windows close.

use serde_json::{Value, json};

use crate::support::{TestDatabase, TestService, a_sale};

#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_closes_a_window_and_counts_nowhere() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    service.post_events(&[a_sale("1001", "09:05:00", "20.00")]).await;
    let heartbeat = json!({"source": "till-7", "event_time": "2026-10-01T13:00:00+02:00"});
    let answer = service.post("/v1/heartbeats", heartbeat).await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    assert_eq!(
        answer.body,
        json!({"source": "till-7", "event_time": "2026-10-01T11:00:00Z", "seq": 2})
    );
    service.wait_until_idle("hourly_sales").await;
    let rows = service.rows("hourly_sales").await;
    assert_eq!((rows.len(), &rows[0]["orders"]), (1, &json!(1)), "{rows:?}");
    assert_eq!(rows[0]["closed_by"], "watermark");
    let events_in: i64 = service.get("/v1/queries/hourly_sales/progress").await.body["progress"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["events_in"].as_i64().unwrap())
        .sum();
    assert_eq!(events_in, 1);
    let report = service.get("/v1/reconciliation").await.body;
    assert_eq!(report["totals"]["USD"]["recount"]["orders"], 1, "{report}");
    assert_eq!(report["unexplained"], 0);
    assert_eq!(service.get("/v1/events/till-7").await.status, 404, "its source is no event");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_from_the_future_is_refused_and_nothing_of_it_stays() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let heartbeat = json!({"source": "till-7", "event_time": "2199-12-31T23:59:59Z"});
    let refused = service.post("/v1/heartbeats", heartbeat.clone()).await;
    assert_eq!((refused.status, refused.header("content-type")), (422, "application/problem+json"));
    assert_eq!(refused.body["type"], "/problems/heartbeat-from-the-future");
    assert_eq!(
        refused.body["detail"],
        "`event_time` `2199-12-31T23:59:59Z` is more than 15 minutes ahead of the database's clock; \
         15 minutes is the limit (`max_future_skew` of `GET /v1/limits`). Nothing was stored."
    );
    assert_eq!(refused.body["errors"][0]["pointer"], "/event_time");
    assert_eq!(database.number("select count(*) from raw_events").await, 0);
    assert_eq!(database.number("select count(*) from quarantine").await, 0);

    let open = TestService::start_with(&[
        ("DATABASE_URL", &database.url),
        ("TILLMARK_MAX_FUTURE_SKEW", "off"),
    ])
    .await;
    assert_eq!(open.post("/v1/heartbeats", heartbeat).await.status, 202);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_bad_heartbeat_gets_its_status_place_and_sentence() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let time = r#""event_time":"2026-10-01T09:05:00Z""#;
    for (case, body, status, pointer, sentence) in [
        (
            "nothing",
            String::new(),
            400,
            "",
            "The body is not JSON: EOF while parsing a value at line 1 column 0.",
        ),
        (
            "cut short",
            "{".to_owned(),
            400,
            "",
            "The body is not JSON: EOF while parsing an object at line 1 column 1.",
        ),
        (
            "two of them",
            "{}{}".to_owned(),
            400,
            "",
            "The body is not JSON: trailing characters at line 1 column 3.",
        ),
        (
            "byte order mark",
            "\u{feff}{}".to_owned(),
            400,
            "",
            "The body begins with a byte order mark; JSON is sent without one (RFC 8259).",
        ),
        (
            "an array",
            format!(r#" [{{"source":"till-7",{time}}}]"#),
            422,
            "",
            "The body is an array; a heartbeat is an object of named fields",
        ),
        (
            "no source",
            format!("{{{time}}}"),
            422,
            "/source",
            "`source` is required: a string of 1 to 200 characters",
        ),
        (
            "source is null",
            format!(r#"{{"source":null,{time}}}"#),
            422,
            "/source",
            "`source` is null, but it is required: a string of 1 to 200 characters",
        ),
        (
            "source is a number",
            format!(r#"{{"source":7,{time}}}"#),
            422,
            "/source",
            "`source` is a number; it must be a string of 1 to 200 characters",
        ),
        (
            "source is empty",
            format!(r#"{{"source":"",{time}}}"#),
            422,
            "/source",
            "`source` is empty; it needs 1 to 200 characters",
        ),
        (
            "source is long",
            format!(r#"{{"source":"{}",{time}}}"#, "ü".repeat(201)),
            422,
            "/source",
            "`source` has 201 characters; at most 200 are allowed",
        ),
        (
            "source holds NUL",
            format!(r#"{{"source":"a\u0000",{time}}}"#),
            422,
            "/source",
            "`source` holds a NUL character (\\u0000), which cannot be stored",
        ),
        (
            "no time",
            r#"{"source":"till-7"}"#.to_owned(),
            422,
            "/event_time",
            "`event_time` is required: an RFC 3339 time with an offset in a string, such as \
             `2026-10-01T09:05:00Z`",
        ),
        (
            "an epoch number",
            r#"{"source":"till-7","event_time":1790845500}"#.to_owned(),
            422,
            "/event_time",
            "`event_time` is a number; epoch numbers are refused, write an RFC 3339 time with an \
             offset in a string, such as `2026-10-01T09:05:00Z`",
        ),
        (
            "no offset",
            r#"{"source":"till-7","event_time":"2026-10-01T09:05:00"}"#.to_owned(),
            422,
            "/event_time",
            "`event_time` `2026-10-01T09:05:00` has no UTC offset; end it with `Z` or an offset such \
             as `+02:00`",
        ),
        (
            "too old",
            r#"{"source":"till-7","event_time":"1899-12-31T23:59:59Z"}"#.to_owned(),
            422,
            "/event_time",
            "`event_time` `1899-12-31T23:59:59Z` is outside the years 1900 to 2199",
        ),
        (
            "an unknown field",
            format!(r#"{{"source":"till-7","till/id":"7",{time}}}"#),
            422,
            "/till~1id",
            "`till/id` is no field of a heartbeat; the fields are source, event_time",
        ),
        (
            "written twice",
            format!(r#"{{"source":"till-7","source":"till-7",{time}}}"#),
            422,
            "/source",
            "`source` is written more than once; write it once",
        ),
    ] {
        let answer = service.post_text("/v1/heartbeats", "application/json", body).await;
        assert_eq!(answer.status, status, "{case}: {}", answer.body);
        assert_eq!(answer.header("content-type"), "application/problem+json", "{case}");
        let (at, found) = match &answer.body["errors"][0] {
            Value::Null => ("", &answer.body["detail"]),
            error => (error["pointer"].as_str().unwrap(), &error["detail"]),
        };
        assert_eq!((at, found), (pointer, &json!(sentence)), "{case}");
    }
    let plain = service.post_text("/v1/heartbeats", "text/plain", "x").await;
    assert_eq!(plain.status, 415);
    assert_eq!(service.post("/v1/heartbeats?now=1", json!({})).await.status, 400);
    assert_eq!(database.number("select count(*) from raw_events").await, 0);
}
