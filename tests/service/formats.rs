//! NDJSON, CloudEvents and compressed bodies: the same events, the same answers, bounded memory.

use serde_json::{Value, json};

use crate::support::{TestDatabase, TestService, a_sale, gzip, zstd};

const NDJSON: &str = "application/x-ndjson";
const CLOUD_EVENT: &str = "application/cloudevents+json";
const CLOUD_EVENTS: &str = "application/cloudevents-batch+json";

/// A sale as a till that speaks CloudEvents posts it.
fn a_cloud_event(id: &str, amount: &str) -> Value {
    json!({
        "specversion": "1.0", "id": format!("{id}-placed"), "source": "till-7", "type": "sale",
        "time": "2026-10-01T09:05:00Z",
        "data": { "order_id": id, "status": "placed", "amount": amount },
    })
}

/// A way to write many events in one body.
struct Format {
    /// Begins the ids, so that the formats do not meet.
    prefix: &'static str,
    content_type: &'static str,
    event: fn(&str, &str) -> Value,
    written: fn(&[Value]) -> String,
}

/// The counts of an answer, and index and status of every result.
fn summary(body: &Value) -> (Vec<i64>, Vec<(i64, &str)>) {
    let counts = ["accepted", "duplicates", "conflicts", "quarantined", "rejected"];
    let counts = counts.map(|name| body[name].as_i64().unwrap()).to_vec();
    let results = body["results"].as_array().unwrap().iter();
    let results =
        results.map(|one| (one["index"].as_i64().unwrap(), one["status"].as_str().unwrap()));
    (counts, results.collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_is_answered_under_its_number_and_a_bad_one_costs_nobody_else() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let (first, second) = (a_sale("1", "09:05:00", "20.00"), a_sale("2", "09:06:00", "30.50"));
    let other = a_sale("1", "09:05:00", "21.00");
    let lines = format!("{first}\r\n\n{{\"order_id\":\n{second}\n{first}\n{other}\n");
    let answer = service.post_text("/v1/events?results=all", NDJSON, lines.clone()).await;
    assert_eq!(answer.status, 207, "{}", answer.body);
    let results =
        vec![(0, "accepted"), (2, "rejected"), (3, "accepted"), (4, "duplicate"), (5, "conflict")];
    assert_eq!(summary(&answer.body), (vec![2, 1, 1, 0, 1], results));
    let retry = service.post_text("/v1/events", NDJSON, lines).await;
    let results = vec![
        (0, "duplicate"),
        (2, "rejected"),
        (3, "duplicate"),
        (4, "duplicate"),
        (5, "conflict"),
    ];
    assert_eq!(summary(&retry.body), (vec![0, 3, 1, 0, 1], results));
    assert_eq!(database.number("select count(*) from raw_events").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_format_is_answered_with_the_same_statuses() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    for Format { prefix, content_type, event, written } in [
        Format {
            prefix: "lines",
            content_type: NDJSON,
            event: |id, amount| a_sale(id, "09:05:00", amount),
            written: |events| events.iter().map(|event| format!("{event}\n")).collect(),
        },
        Format {
            prefix: "batch",
            content_type: CLOUD_EVENTS,
            event: a_cloud_event,
            written: |events| Value::from(events).to_string(),
        },
    ] {
        let id = |number: u8| format!("{prefix}-{number}");
        let (first, other) = (event(&id(1), "20.00"), event(&id(1), "21.00"));
        let (second, bad) = (event(&id(2), "30.50"), json!({}));
        for (case, path, events, status, counts) in [
            ("nothing", "", vec![], 200, [0, 0, 0, 0, 0]),
            ("all rejected", "", vec![bad.clone(), bad.clone()], 422, [0, 0, 0, 0, 2]),
            (
                "atomic, one bad",
                "?atomic=true",
                vec![first.clone(), bad.clone()],
                422,
                [0, 0, 0, 0, 2],
            ),
            ("all accepted", "", vec![first.clone()], 200, [1, 0, 0, 0, 0]),
            ("all in conflict", "", vec![other.clone()], 409, [0, 0, 1, 0, 0]),
            (
                "atomic, one in conflict",
                "?atomic=true",
                vec![second.clone(), other],
                422,
                [0, 0, 1, 0, 1],
            ),
            ("a mixture", "", vec![first.clone(), second.clone(), bad], 207, [1, 1, 0, 0, 1]),
            ("a retry", "", vec![first, second], 200, [0, 2, 0, 0, 0]),
        ] {
            let path = format!("/v1/events{path}");
            let answer = service.post_text(&path, content_type, written(&events)).await;
            assert_eq!(answer.status, status, "{prefix}, {case}: {}", answer.body);
            assert_eq!(summary(&answer.body).0, counts, "{prefix}, {case}");
        }
    }
    assert_eq!(database.number("select count(*) from raw_events").await, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cloud_event_is_the_event_in_it_under_its_id_till_and_time() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let content_type = "application/cloudevents+json; charset=UTF-8";
    let event = a_cloud_event("1", "20.00").to_string();
    let answer = service.post_text("/v1/events", content_type, event).await;
    assert_eq!((answer.status, &answer.body["accepted"]), (200, &json!(1)), "{}", answer.body);
    let stored = "select count(*) from raw_events where event_id = '1-placed' and till_id = 'till-7' \
                  and event_time = '2026-10-01T09:05:00Z' and order_id = '1'";
    assert_eq!(database.number(stored).await, 1);
    let mut sale = a_sale("1", "09:05:00", "20.00");
    sale["till_id"] = "till-7".into();
    let again = service.post("/v1/events", sale).await;
    assert_eq!(again.body["duplicates"], 1, "the same event in plain JSON: {}", again.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_at_the_edge_are_kept_exactly() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let event = r#""status":"placed","event_time":"2026-10-01T09:05:00Z""#;
    let lines = format!(
        "{{\"order_id\":9007199254740993,\"amount\":90071992547409.93,{event}}}\n\
         {{\"order_id\":\"zero\",\"amount\":-0,{event}}}\n"
    );
    let answer = service.post_text("/v1/events", NDJSON, lines).await;
    assert_eq!((answer.status, &answer.body["accepted"]), (200, &json!(2)), "{}", answer.body);
    let exact = "select count(*) from raw_events where order_id = '9007199254740993' \
                 and amount = 90071992547409.93 or order_id = 'zero' and amount = 0";
    assert_eq!(database.number(exact).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compressed_body_is_the_body() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let lines: String = (0..2_000)
        .map(|number| format!("{}\n", a_sale(&number.to_string(), "09:05:00", "20.00")))
        .collect();
    let first = service.post_compressed(NDJSON, "gzip", gzip(lines.as_bytes())).await;
    assert_eq!((first.status, &first.body["accepted"]), (200, &json!(2_000)), "{}", first.body);
    for (encoding, body) in [
        ("zstd", zstd(lines.as_bytes())),
        ("X-GZIP", gzip(lines.as_bytes())),
        ("identity", lines.into_bytes()),
    ] {
        let again = service.post_compressed(NDJSON, encoding, body).await;
        assert_eq!(again.body["duplicates"], 2_000, "{encoding}: {}", again.status);
    }
    let one = gzip(a_cloud_event("one", "1.00").to_string().as_bytes());
    assert_eq!(service.post_compressed(CLOUD_EVENT, "gzip", one).await.status, 200);
}
