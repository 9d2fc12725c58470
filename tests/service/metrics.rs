//! What the service counts of itself.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Scrape, TestDatabase, TestService, a_sale};

async fn scrape(service: &TestService) -> Scrape {
    let answer = service.get("/metrics").await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(answer.header("content-type").starts_with("text/plain; version=0.0.4"));
    Scrape::read(answer.body.as_str().unwrap())
}

/// Scrapes until a series has a value.
async fn wait_for(service: &TestService, series: &str, expected: f64) -> Scrape {
    let mut last = scrape(service).await;
    for _ in 0..600 {
        if last.has(series) && last.value(series) == expected {
            return last;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        last = scrape(service).await;
    }
    panic!("{series} does not become {expected}: {last:#?}");
}

/// A sale or a refund in a currency of its own.
fn in_currency(id: &str, clock: &str, amount: &str, currency: &str) -> Value {
    let mut sale = a_sale(id, clock, amount);
    sale["currency"] = currency.into();
    sale
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
    for (series, expected) in [
        (r#"tillmark_events_total{outcome="accepted"}"#, 5.0),
        (r#"tillmark_events_total{outcome="duplicate"}"#, 1.0),
        (r#"tillmark_events_total{outcome="rejected"}"#, 1.0),
        ("tillmark_queue_events", 0.0),
        ("tillmark_queue_bytes", 0.0),
        ("tillmark_leads", 1.0),
        (r#"tillmark_query_lag_events{query="hourly_sales"}"#, 0.0),
        (r#"tillmark_query_open_windows{query="hourly_sales"}"#, 2.0),
        (r#"tillmark_query_poison_events{query="hourly_sales"}"#, 0.0),
        (r#"tillmark_query_paused{query="hourly_sales"}"#, 0.0),
        (r#"tillmark_query_failed{query="hourly_sales"}"#, 0.0),
        (r#"tillmark_query_events_total{query="hourly_sales"}"#, 5.0),
        (r#"tillmark_degraded{reason="fsync_off"}"#, 0.0),
        // 2026-10-01T10:30:00Z
        (r#"tillmark_query_watermark_timestamp_seconds{query="hourly_sales"}"#, 1_790_850_600.0),
        (
            "http_server_request_duration_seconds_count{http_route=\"/v1/events\",\
             http_request_method=\"POST\",http_response_status_code=\"200\"}",
            2.0,
        ),
        (r#"tillmark_database_connections{pool="ingest",state="max"}"#, 2.0),
        (r#"tillmark_connections{state="max"}"#, 4096.0),
        // The posts came one after the other: 4, 1, and a duplicate.
        ("tillmark_ingest_commit_events_count", 3.0),
        ("tillmark_ingest_commit_events_sum", 6.0),
        (r#"tillmark_ingest_commit_events_bucket{le="1"}"#, 2.0),
        (r#"tillmark_ingest_commit_events_bucket{le="5"}"#, 3.0),
        ("tillmark_ingest_commit_duration_seconds_count", 3.0),
    ] {
        assert!(
            (text.value(series) - expected).abs() < 1e-6,
            "{series} is not {expected}: {text:#?}"
        );
    }
    let version = format!("tillmark_build_info{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"));
    for series in [
        "http_server_active_requests",
        r#"tillmark_connections{state="open"}"#,
        r#"tillmark_query_watermark_lag_seconds{query="hourly_sales"}"#,
        "tillmark_ingest_commit_duration_seconds_sum",
        &version,
    ] {
        assert!(text.value(series).abs() > 0.0, "{series} is 0: {text:#?}");
    }
    let progress = service.get("/v1/queries/hourly_sales/progress").await;
    let batches = progress.body["progress"].as_array().unwrap().len();
    let mut of_all_queries = 0.0;
    for phase in ["read", "compute", "commit"] {
        let name = "tillmark_query_batch_duration_seconds";
        let labels = format!("query=\"hourly_sales\",phase=\"{phase}\"");
        assert_eq!(text.value(&format!("{name}_count{{{labels}}}")), batches as f64, "{phase}");
        assert!(text.value(&format!("{name}_sum{{{labels}}}")) > 0.0, "{phase}");
        let labels = format!("phase=\"{phase}\"");
        let count = text.value(&format!("tillmark_batch_duration_seconds_count{{{labels}}}"));
        of_all_queries += count;
    }
    assert!(of_all_queries >= 6.0 * batches as f64 / 2.0, "{of_all_queries}");
}

#[tokio::test(flavor = "multi_thread")]
async fn late_events_and_their_money_are_counted_once_by_currency_and_duplicates_apart() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let rule = json!({
        "window": {"kind": "sliding", "size": "1 hour", "slide": "15 minutes"},
        "watermark_delay": "10 minutes", "deduplicate": {"keys": ["order_id"]},
        "output_mode": "append", "trigger": {"kind": "manual"},
    });
    assert_eq!(service.put("/v1/queries/sliding", rule).await.status, 201);
    service.post_events(&[a_sale("1", "12:00:00", "1.00"), a_sale("2", "12:01:00", "1.00")]).await;
    service.run("sliding").await;
    let mut again = a_sale("2", "12:01:30", "1.00");
    again["event_id"] = "again".into();
    let late = [
        // Each misses four windows.
        a_sale("3", "09:05:00", "20.05"),
        a_sale("4", "09:06:00", "1.10"),
        in_currency("5", "09:07:00", "700", "JPY"),
        in_currency("6", "09:08:00", "-12.3456", "EUR"),
        in_currency("7", "09:09:00", "2", "EUR"),
        again,
    ];
    service.post_events(&late).await;
    service.run("sliding").await;
    let text = scrape(&service).await;
    for (series, expected) in [
        (r#"dropped_events_total{query="sliding",reason="late"}"#, 5.0),
        (r#"dropped_events_total{query="sliding",reason="duplicate"}"#, 1.0),
        (r#"late_revenue_total{query="sliding",currency="USD",kind="sale"}"#, 21.15),
        (r#"late_revenue_total{query="sliding",currency="USD",kind="refund"}"#, 0.0),
        (r#"late_revenue_total{query="sliding",currency="JPY",kind="sale"}"#, 700.0),
        (r#"late_revenue_total{query="sliding",currency="EUR",kind="refund"}"#, 12.3456),
        (r#"late_revenue_total{query="sliding",currency="EUR",kind="sale"}"#, 2.0),
    ] {
        let found = text.value(&format!("tillmark_query_{series}"));
        assert!((found - expected).abs() < 1e-9, "{series} is {found}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_somebody_changed_shows_as_a_remainder_of_the_reconciliation() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    service.post_events(&[a_sale("1", "09:05:00", "1.00"), a_sale("2", "11:05:00", "1.00")]).await;
    service.run("hourly_sales").await;
    service.wait_until_idle("hourly_sales").await;
    let unexplained = r#"tillmark_query_unexplained_windows{query="hourly_sales"}"#;
    let checked = r#"tillmark_query_checked_timestamp_seconds{query="hourly_sales"}"#;
    let text = wait_for(&service, unexplained, 0.0).await;
    let status = service.get("/v1/queries/hourly_sales").await.body;
    let state_bytes = r#"tillmark_query_state_bytes{query="hourly_sales"}"#;
    assert_eq!(text.value(state_bytes), status["state_bytes"].as_f64().unwrap());
    let before = text.value(checked);
    let now = database.number("select extract(epoch from now())::bigint").await;
    assert!(before > 0.0 && before <= now as f64, "{before}");

    database.execute("update window_rows set revenue = revenue + 1").await;
    let text = wait_for(&service, unexplained, 1.0).await;
    assert!(text.value(checked) >= before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lag_is_counted_while_it_is_short_and_taken_from_positions_when_it_is_long() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    for query in ["hourly_sales", "hourly_sales_live"] {
        assert_eq!(
            service.post(&format!("/v1/queries/{query}/pause"), json!({})).await.status,
            200
        );
    }
    let lag = r#"tillmark_query_lag_events{query="hourly_sales"}"#;
    let insert = |from: u32, to: u32| {
        format!(
            "insert into raw_events (seq, received_at, event_id, order_id, status, amount, currency, event_time)
             select n, now(), n::text, n::text, 'placed', 1, 'USD', '2026-10-01T09:00Z'
             from generate_series({from}, {to}, 2) n"
        )
    };
    // Every second number is used, as if the appends between had failed.
    database.execute(&insert(2, 10_000)).await;
    assert_eq!(scrape(&service).await.value(lag), 5_000.0);
    database.execute(&insert(10_002, 20_000)).await;
    assert_eq!(scrape(&service).await.value(lag), 20_000.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_requests_make_no_new_series_and_a_deleted_query_has_none() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    service.post_events(&[a_sale("1", "09:05:00", "1.00"), a_sale("2", "11:05:00", "1.00")]).await;
    for query in ["hourly_sales", "hourly_sales_live"] {
        service.wait_until_idle(query).await;
        wait_for(
            &service,
            &format!("tillmark_query_unexplained_windows{{query=\"{query}\"}}"),
            0.0,
        )
        .await;
    }
    let count = async || scrape(&service).await.series().count();
    service.get("/nowhere/0").await;
    service.get("/v1/queries/none-0").await;
    let odd = |number: u32| {
        service.client.request(format!("ODD{number}").parse().unwrap(), service.url("/livez"))
    };
    odd(0).send().await.unwrap();
    let before = count().await;
    for number in 1..20 {
        service.get(&format!("/nowhere/{number}?a={number}")).await;
        service.get(&format!("/v1/queries/none-{number}")).await;
        odd(number).send().await.unwrap();
    }
    assert_eq!(count().await, before);

    let of_live = |text: &Scrape| {
        text.series().filter(|series| series.contains(r#"query="hourly_sales_live""#)).count()
    };
    assert!(of_live(&scrape(&service).await) > 15);
    assert_eq!(service.delete("/v1/queries/hourly_sales_live").await.status, 204);
    assert_eq!(of_live(&scrape(&service).await), 0);
}
