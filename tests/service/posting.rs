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
async fn an_atomic_list_that_contradicts_itself_is_told_which_event_does() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    service.post_events(&[a_sale("0", "09:05:00", "1.00")]).await;
    let list = json!([
        a_sale("0", "09:05:00", "1.00"),
        a_sale("1", "09:05:00", "1.00"),
        a_sale("2", "09:05:00", "1.00"),
        a_sale("1", "09:05:00", "1.00"),
        a_sale("1", "09:05:00", "2.00"),
    ]);
    let refused = service.post("/v1/events?atomic=true", list).await;
    assert_eq!(refused.status, 422, "{}", refused.body);
    assert_eq!((&refused.body["conflicts"], &refused.body["rejected"]), (&json!(1), &json!(3)));
    let results = refused.body["results"].as_array().unwrap();
    let statuses: Vec<&Value> = results.iter().map(|one| &one["status"]).collect();
    assert_eq!(statuses, ["duplicate", "rejected", "rejected", "rejected", "conflict"]);
    let begins = |index: usize, with: &str| {
        let detail = results[index]["detail"].as_str().unwrap();
        assert!(detail.starts_with(with), "{index}: {detail}");
    };
    begins(1, "Good in itself, but not stored");
    begins(3, "Good in itself, but not stored");
    begins(4, "An event before it in this atomic request has its id and other content: the hash");
    assert_eq!(results[4]["seq"], Value::Null);
    assert_eq!(database.number("select count(*) from raw_events").await, 1);
    assert_eq!(database.number("select count(*) from event_conflicts").await, 0);
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
    for (case, body, status, pointer, sentence) in [
        (
            "not JSON",
            "{".to_owned(),
            400,
            "",
            "The body is not JSON: EOF while parsing an object at line 1 column 1.",
        ),
        (
            "two objects",
            "{} {}".to_owned(),
            400,
            "",
            "The body is not JSON: trailing characters at line 1 column 4.",
        ),
        (
            "trailing comma",
            "[1,]".to_owned(),
            400,
            "",
            "The body is not JSON: trailing comma at line 1 column 4.",
        ),
        (
            "byte order mark",
            "\u{feff}[]".to_owned(),
            400,
            "",
            "The body begins with a byte order mark; JSON is sent without one (RFC 8259).",
        ),
        (
            "too deep",
            "[".repeat(200) + &"]".repeat(200),
            400,
            "",
            "The body is nested deeper than 128 levels; an event needs two.",
        ),
        (
            "a string",
            "\"x\"".to_owned(),
            422,
            "",
            r#"The body is a string; send an event, an array of events or {"events": […]}."#,
        ),
        (
            "events is no array",
            r#"{"events":1}"#.to_owned(),
            422,
            "",
            "`events` must be an array of events.",
        ),
        (
            "10,001 events",
            format!("[{}]", vec!["1"; 10_001].join(",")),
            413,
            "",
            "The body has 10001 events; at most 10000 are allowed, so send them in parts.",
        ),
        (
            "amount is no number",
            with("amount", r#""a lot""#),
            422,
            "/amount",
            "`amount` `a lot` is not a plain decimal such as `68.50` or `-4.50`",
        ),
        (
            "amount has an exponent",
            with("amount", "1e3"),
            422,
            "/amount",
            "`amount` `1e3` has an exponent; write the digits out, as in `1000.00`",
        ),
        (
            "amount has 5 decimals",
            with("amount", r#""1.00001""#),
            422,
            "/amount",
            "`amount` `1.00001` has more than 4 decimals",
        ),
        (
            "amount is too large",
            with("amount", r#""100000000000000""#),
            422,
            "/amount",
            "`amount` `100000000000000` is out of bounds; its magnitude must be below 100000000000000",
        ),
        (
            "amount is NaN",
            with("amount", r#""NaN""#),
            422,
            "/amount",
            "`amount` `NaN` is not a plain decimal such as `68.50` or `-4.50`",
        ),
        (
            "amount is null",
            with("amount", "null"),
            422,
            "/amount",
            "`amount` is null, but it is required: a decimal such as 68.50, as a number or a string",
        ),
        (
            "amount is a list",
            with("amount", "[]"),
            422,
            "/amount",
            "`amount` is an array; it must be a decimal such as 68.50, as a number or a string",
        ),
        (
            "time is a number",
            with("event_time", "1790845500"),
            422,
            "/event_time",
            "`event_time` is a number; epoch numbers are refused, write an RFC 3339 time with an offset in a string, such as `2026-10-01T09:05:00Z`",
        ),
        (
            "time has no offset",
            with("event_time", r#""2026-10-01T09:05:00""#),
            422,
            "/event_time",
            "`event_time` `2026-10-01T09:05:00` has no UTC offset; end it with `Z` or an offset such as `+02:00`",
        ),
        (
            "time has a space",
            with("event_time", r#""2026-10-01 09:05:00Z""#),
            422,
            "/event_time",
            "`event_time` `2026-10-01 09:05:00Z` has a space between date and time; write a `T` there, as in `2026-10-01T09:05:00Z`",
        ),
        (
            "hour 24",
            with("event_time", r#""2026-10-01T24:00:00Z""#),
            422,
            "/event_time",
            "`event_time` `2026-10-01T24:00:00Z` has hour 24; write 00:00 of the next day",
        ),
        (
            "leap second",
            with("event_time", r#""2026-12-31T23:59:60Z""#),
            422,
            "/event_time",
            "`event_time` `2026-12-31T23:59:60Z` has second 60; use 59 or the next minute",
        ),
        (
            "30 February",
            with("event_time", r#""2026-02-30T09:05:00Z""#),
            422,
            "/event_time",
            "`event_time` `2026-02-30T09:05:00Z` is not an RFC 3339 time such as `2026-10-01T09:05:00Z`",
        ),
        (
            "year 1899",
            with("event_time", r#""1899-12-31T09:05:00Z""#),
            422,
            "/event_time",
            "`event_time` `1899-12-31T09:05:00Z` is outside the years 1900 to 2199",
        ),
        (
            "status is empty",
            with("status", r#""""#),
            422,
            "/status",
            "`status` is empty; it needs 1 to 64 characters",
        ),
        (
            "status is too long",
            with("status", &format!("\"{}\"", "x".repeat(65))),
            422,
            "/status",
            "`status` has 65 characters; at most 64 are allowed",
        ),
        (
            "order_id is null",
            with("order_id", "null"),
            422,
            "/order_id",
            "`order_id` is null, but it is required: a string of 1 to 200 characters, or an integer",
        ),
        (
            "order_id is a fraction",
            with("order_id", "1.5"),
            422,
            "/order_id",
            "`order_id` is `1.5`; as a number it must be a plain integer; else write it as a string",
        ),
        (
            "event_id is too long",
            with("event_id", &format!("\"{}\"", "x".repeat(201))),
            422,
            "/event_id",
            "`event_id` has 201 characters; at most 200 are allowed",
        ),
        (
            "event_id holds NUL",
            with("event_id", r#""a\u0000b""#),
            422,
            "/event_id",
            r#"`event_id` holds a NUL character (\u0000), which cannot be stored"#,
        ),
        (
            "currency is lower-case",
            with("currency", r#""usd""#),
            422,
            "/currency",
            "`currency` `usd` is not an ISO 4217 currency code in capital letters, such as `USD`",
        ),
        (
            "currency is unknown",
            with("currency", r#""XYZ""#),
            422,
            "/currency",
            "`currency` `XYZ` is not an ISO 4217 currency code in capital letters, such as `USD`",
        ),
        (
            "item_count is negative",
            with("item_count", "-1"),
            422,
            "/item_count",
            "`item_count` is `-1`; it must be a plain whole number, 0 or more, below 2^63",
        ),
        (
            "attribute is a number",
            with("attributes", r#"{"a":1}"#),
            422,
            "/attributes/a",
            "Attribute `a` is a number; write a string, or leave it out",
        ),
        (
            "amount and total",
            with("total", r#""20.00""#),
            422,
            "/total",
            "`total` is another name of `amount`; write one of them",
        ),
        (
            "an unknown field",
            with("colour", r#""red""#),
            422,
            "/colour",
            "`colour` is no field of an event; the fields are event_id, order_id, status, amount, total, event_time, currency, customer_id, store_id, till_id, item_count, attributes",
        ),
    ] {
        let answer = service.post_text("/v1/events", "application/json", body).await;
        assert_eq!(answer.status, status, "{case}: {}", answer.body);
        assert_eq!(answer.header("content-type"), "application/problem+json", "{case}");
        assert_eq!(answer.body["status"], status, "{case}");
        let (at, found) = match &answer.body["results"][0]["errors"][0] {
            Value::Null => ("", &answer.body["detail"]),
            error => (error["pointer"].as_str().unwrap(), &error["detail"]),
        };
        assert_eq!((at, found), (pointer, &json!(sentence)), "{case}");
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
