//! What the service counts of itself.

use serde_json::json;

use crate::support::{TestDatabase, TestService, a_sale};

async fn scrape(service: &TestService) -> String {
    let answer = service.get("/metrics").await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(answer.header("content-type").starts_with("text/plain; version=0.0.4"));
    answer.body.as_str().unwrap().to_owned()
}

/// The value of the line that begins so.
fn value(text: &str, line: &str) -> f64 {
    let rest = text.lines().find_map(|found| found.strip_prefix(line));
    rest.unwrap_or_else(|| panic!("{line} is not in\n{text}")).trim().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_done_and_where_queries_stand_can_be_scraped() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let early = [
        a_sale("1001", "09:05:00", "20.00"),
        a_sale("1002", "09:20:00", "30.50"),
        a_sale("1003", "09:40:00", "18.00"),
        a_sale("1004", "10:20:00", "40.00"),
    ];
    service.post_events(&early).await;
    service.post_events(&[a_sale("1005", "11:30:00", "18.25")]).await;
    service.post("/v1/events", json!([early[0], {"event_id": "bad"}])).await;
    service.run("hourly_sales").await;
    service.wait_until_idle("hourly_sales").await;
    let text = scrape(&service).await;
    for (line, expected) in [
        (r#"tillmark_events_total{outcome="accepted"}"#, 5.0),
        (r#"tillmark_events_total{outcome="duplicate"}"#, 1.0),
        (r#"tillmark_events_total{outcome="rejected"}"#, 1.0),
        ("tillmark_queue_events", 0.0),
        ("tillmark_queue_bytes", 0.0),
        ("tillmark_leads", 1.0),
        (r#"tillmark_query_lag_events{query="hourly_sales"}"#, 0.0),
        (r#"tillmark_query_open_windows{query="hourly_sales"}"#, 2.0),
        (r#"tillmark_query_poison_events{query="hourly_sales"}"#, 0.0),
        // 2026-10-01T10:30:00Z
        (r#"tillmark_query_watermark_timestamp_seconds{query="hourly_sales"}"#, 1_790_850_600.0),
        (
            "http_server_request_duration_seconds_count{http_route=\"/v1/events\",\
             http_request_method=\"POST\",http_response_status_code=\"200\"}",
            2.0,
        ),
        (r#"tillmark_database_connections{pool="ingest",state="max"}"#, 2.0),
    ] {
        assert!((value(&text, line) - expected).abs() < 1e-6, "{line} is not {expected}\n{text}");
    }
    assert!(value(&text, "http_server_active_requests") >= 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_requests_make_no_new_series_and_a_deleted_query_has_none() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    for number in 0..20 {
        service.get(&format!("/nowhere/{number}")).await;
        service.get(&format!("/v1/queries/none-{number}")).await;
        let odd = format!("ODD{number}").parse().unwrap();
        service.client.request(odd, service.url("/livez")).send().await.unwrap();
    }
    let text = scrape(&service).await;
    let counts = text.lines().filter(|line| line.contains("_seconds_count{")).count();
    assert!(counts <= 6, "{text}");
    assert!(text.contains(r#"query="hourly_sales_live""#));
    assert_eq!(service.delete("/v1/queries/hourly_sales_live").await.status, 204);
    assert!(!scrape(&service).await.contains(r#"query="hourly_sales_live""#));
}
