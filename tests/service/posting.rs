//! Truthful answers to posts, and to posts that are wrong.

use serde_json::{Value, json};

use crate::support::{TestDatabase, TestService, a_sale};

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_is_a_duplicate_and_other_content_is_a_conflict_also_after_a_restart() {
    let database = TestDatabase::create().await;
    let mut service = TestService::start(&database).await;
    let sale = a_sale("1001", "09:05:00", "20.00");
    service.post_events(std::slice::from_ref(&sale)).await;
    service.kill_and_restart().await;
    let retry = service.post("/v1/events", sale).await;
    assert_eq!((retry.status, &retry.body["duplicates"]), (200, &json!(1)), "{}", retry.body);
    let conflict = service.post("/v1/events", a_sale("1001", "09:05:00", "21.00")).await;
    assert_eq!(
        (conflict.status, &conflict.body["conflicts"]),
        (409, &json!(1)),
        "{}",
        conflict.body
    );
    assert_eq!(conflict.header("content-type"), "application/problem+json");
    assert_eq!(database.number("select count(*) from raw_events").await, 1);
    assert_eq!(database.number("select count(*) from event_conflicts").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_event_posted_twice_at_the_same_instant_is_stored_once() {
    let database = TestDatabase::create().await;
    let (one, other) = tokio::join!(TestService::start(&database), TestService::start(&database));
    for number in 0..20 {
        let sale = a_sale(&number.to_string(), "09:05:00", "20.00");
        let (first, second) = tokio::join!(
            one.post("/v1/events", sale.clone()),
            other.post("/v1/events", sale.clone())
        );
        let accepted = [&first, &second].map(|answer| answer.body["accepted"].as_i64().unwrap());
        assert_eq!(accepted.iter().sum::<i64>(), 1, "{} {}", first.body, second.body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mixture_stores_the_good_events_unless_it_is_atomic() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let body = || json!([a_sale("1", "09:05:00", "20.00"), {"event_id": "bad"}]);
    let atomic = service.post("/v1/events?atomic=true", body()).await;
    assert_eq!((atomic.status, database.number("select count(*) from raw_events").await), (422, 0));
    let mixed = service.post("/v1/events?results=all", body()).await;
    assert_eq!(mixed.status, 207);
    let statuses: Vec<&Value> =
        mixed.body["results"].as_array().unwrap().iter().map(|one| &one["status"]).collect();
    assert_eq!(statuses, ["accepted", "rejected"]);
    let empty = service.post("/v1/events", json!([])).await;
    assert_eq!((empty.status, &empty.body["accepted"]), (200, &json!(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_bad_input_gets_its_status_and_place() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let with = |field: &str, value: &str| {
        let mut event = a_sale("1", "09:05:00", "20.00");
        event[field] = "<value>".into();
        // As text, so that what is posted is what stands here.
        event.to_string().replace("\"<value>\"", value)
    };
    for (case, body, status, pointer) in [
        ("not JSON", "{".to_owned(), 400, ""),
        ("two objects", "{} {}".to_owned(), 400, ""),
        ("trailing comma", "[1,]".to_owned(), 400, ""),
        ("byte order mark", "\u{feff}[]".to_owned(), 400, ""),
        ("too deep", "[".repeat(200) + &"]".repeat(200), 400, ""),
        ("a string", "\"x\"".to_owned(), 422, ""),
        ("events is no array", r#"{"events":1}"#.to_owned(), 422, ""),
        ("10,001 events", format!("[{}]", vec!["1"; 10_001].join(",")), 413, ""),
        ("amount is no number", with("amount", r#""a lot""#), 422, "/amount"),
        ("amount has an exponent", with("amount", "1e3"), 422, "/amount"),
        ("amount has 5 decimals", with("amount", r#""1.00001""#), 422, "/amount"),
        ("amount is too large", with("amount", r#""100000000000000""#), 422, "/amount"),
        ("amount is NaN", with("amount", r#""NaN""#), 422, "/amount"),
        ("amount is null", with("amount", "null"), 422, "/amount"),
        ("amount is a list", with("amount", "[]"), 422, "/amount"),
        ("time is a number", with("event_time", "1790845500"), 422, "/event_time"),
        ("time has no offset", with("event_time", r#""2026-10-01T09:05:00""#), 422, "/event_time"),
        ("time has a space", with("event_time", r#""2026-10-01 09:05:00Z""#), 422, "/event_time"),
        ("hour 24", with("event_time", r#""2026-10-01T24:00:00Z""#), 422, "/event_time"),
        ("leap second", with("event_time", r#""2026-12-31T23:59:60Z""#), 422, "/event_time"),
        ("30 February", with("event_time", r#""2026-02-30T09:05:00Z""#), 422, "/event_time"),
        ("year 1899", with("event_time", r#""1899-12-31T09:05:00Z""#), 422, "/event_time"),
        ("status is empty", with("status", r#""""#), 422, "/status"),
        ("status is too long", with("status", &format!("\"{}\"", "x".repeat(65))), 422, "/status"),
        ("order_id is null", with("order_id", "null"), 422, "/order_id"),
        ("order_id is a fraction", with("order_id", "1.5"), 422, "/order_id"),
        (
            "event_id is too long",
            with("event_id", &format!("\"{}\"", "x".repeat(201))),
            422,
            "/event_id",
        ),
        ("event_id holds NUL", with("event_id", r#""a\u0000b""#), 422, "/event_id"),
        ("currency is lower-case", with("currency", r#""usd""#), 422, "/currency"),
        ("currency is unknown", with("currency", r#""XYZ""#), 422, "/currency"),
        ("item_count is negative", with("item_count", "-1"), 422, "/item_count"),
        ("attribute is a number", with("attributes", r#"{"a":1}"#), 422, "/attributes/a"),
        ("amount and total", with("total", r#""20.00""#), 422, "/total"),
        ("an unknown field", with("colour", r#""red""#), 422, "/colour"),
    ] {
        let answer = service.post_text("/v1/events", "application/json", body).await;
        assert_eq!(answer.status, status, "{case}: {}", answer.body);
        assert_eq!(answer.header("content-type"), "application/problem+json", "{case}");
        assert_eq!(answer.body["status"], status, "{case}");
        if !pointer.is_empty() {
            let errors = answer.body["results"][0]["errors"].as_array().unwrap();
            assert!(errors.iter().any(|error| error["pointer"] == pointer), "{case}: {errors:?}");
        }
    }
    let plain = service.post_text("/v1/events", "text/plain", "x").await;
    assert_eq!(plain.status, 415);
    assert_eq!(database.number("select count(*) from raw_events").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_a_problem_too() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    for (path, status) in [
        ("/nothing", 404),
        ("/v1/queries/none", 404),
        ("/v1/hourly-sales?colour=red", 400),
        ("/v1/queries?limit=0", 400),
    ] {
        let answer = service.get(path).await;
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (status, "application/problem+json"),
            "{path}"
        );
    }
    let not_allowed = service.delete("/v1/events").await;
    assert_eq!((not_allowed.status, not_allowed.header("allow")), (405, "POST"));
}
