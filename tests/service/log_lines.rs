//! What stands on a log line, as text and as JSON.

use serde_json::{Value, json};

use crate::support::{Answer, TestDatabase, TestService, a_sale};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// A service with this format of log, in which a traced post was answered and counted, and a request
/// refused.
async fn service_that_logged(format: &str, filter: &str) -> (TestDatabase, TestService) {
    let database = TestDatabase::create().await;
    let service = TestService::start_with(&[
        ("DATABASE_URL", &database.url),
        ("TILLMARK_LOG", filter),
        ("TILLMARK_LOG_FORMAT", format),
    ])
    .await;
    let post =
        service.client.post(service.url("/v1/events")).json(&a_sale("1", "09:05:00", "1.00"));
    let post = post.header("x-request-id", "post-1");
    let answer = Answer::of(post.header("traceparent", format!("00-{TRACE}-{PARENT}-01"))).await;
    assert_eq!(answer.status, 200);
    let passed_on: Vec<&str> = answer.header("traceparent").split('-').collect();
    assert_eq!((passed_on[0], passed_on[1], passed_on[3]), ("00", TRACE, "01"));
    assert!(passed_on[2].len() == 16 && passed_on[2] != PARENT, "{passed_on:?}");

    let refused = service.client.get(service.url("/nowhere")).header("x-request-id", "get-2");
    let refused = Answer::of(refused.header("traceparent", "nonsense")).await;
    assert_eq!((refused.status, refused.header("traceparent")), (404, ""));
    service.wait_until_idle("hourly_sales").await;
    (database, service)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_line_in_json_is_an_object_with_its_request_or_its_query_and_batch() {
    let (_database, service) = service_that_logged("json", "info,tillmark=debug").await;
    let lines: Vec<Value> = service
        .log()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let find = |begin: &str, at: &str, value: Value| {
        let found = lines.iter().find(|line| {
            let says = line["message"].as_str().is_some_and(|message| message.starts_with(begin));
            says && line.pointer(at) == Some(&value)
        });
        found.unwrap_or_else(|| panic!("no line `{begin}` with {at}={value}: {lines:#?}"))
    };
    let answered = find("Answered POST /v1/events with 200", "/request.id", json!("post-1"));
    assert_eq!(answered["trace.id"], TRACE);
    assert_eq!(answered["trace.parent_id"], PARENT);
    assert_eq!(answered["trace.span_id"].as_str().map(str::len), Some(16));
    assert_eq!(answered["http.status"], 200);
    let refused = find("Answered GET no route with 404", "/request.id", json!("get-2"));
    assert_eq!(refused["trace.id"], Value::Null);
    let batch =
        find("Committed a micro-batch of 1 events", "/span/query.name", json!("hourly_sales"));
    assert_eq!((&batch["span"]["batch.id"], &batch["batch.n_events_in"]), (&json!("0"), &json!(1)));
    for line in &lines {
        let is_of_request =
            line["message"].as_str().is_some_and(|text| text.starts_with("Answered"));
        assert!(!is_of_request || line["request.id"].is_string(), "{line}");
        assert!(line["timestamp"].is_string() && line["level"].is_string(), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_of_text_says_the_same() {
    let (_database, service) = service_that_logged("text", "info,tillmark=debug").await;
    let log = service.log();
    for parts in [
        vec![
            "request.id=\"post-1\" trace.id=\"",
            TRACE,
            PARENT,
            "Answered POST /v1/events with 200",
        ],
        vec!["request.id=\"get-2\"", "Answered GET no route with 404"],
        vec!["batch{query.name=hourly_sales batch.id=0}", "Committed a micro-batch of 1 events"],
    ] {
        let found = log.lines().any(|line| parts.iter().all(|part| line.contains(part)));
        assert!(found, "{parts:?} are on no line of\n{log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_warning_has_its_request_and_its_query_also_where_nothing_else_is_logged() {
    let (database, service) = service_that_logged("json", "warn").await;
    database.execute("alter table window_state rename column revenue to gone").await;
    let run = service.client.post(service.url("/v1/queries/hourly_sales/run"));
    service
        .client
        .post(service.url("/v1/events"))
        .json(&a_sale("2", "09:06:00", "1.00"))
        .send()
        .await
        .unwrap();
    let answer = Answer::of(run.header("x-request-id", "run-3")).await;
    assert_eq!(answer.status, 503, "{}", answer.body);
    let lines: Vec<Value> =
        service.log().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().any(|line| line["request.id"] == "run-3"), "{lines:#?}");
    let failed = lines.iter().find(|line| line["query.name"] == "hourly_sales");
    let failed = failed.unwrap_or_else(|| panic!("{lines:#?}"));
    assert!(failed["batch.id"].is_number(), "{failed}");
    assert!(lines.iter().all(|line| line["level"] == "WARN" || line["level"] == "ERROR"));
}
