//! What finance fetches: damage behind the service's back is found and named.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::support::{TestDatabase, TestService, a_sale};

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_a_deleted_and_an_extra_row_are_each_found() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let clocks = ["09:05:00", "10:05:00", "11:05:00", "14:00:00"];
    service.post_events(&clocks.map(|clock| a_sale(clock, clock, "20.00"))).await;
    service.wait_until_idle("hourly_sales").await;
    let all = "/v1/reconciliation?from=1900-01-01T00:00:00Z&to=2200-01-01T00:00:00Z";
    assert_eq!(service.get(all).await.body["windows"].as_array().unwrap().len(), 4);
    let unexplained = async || service.get("/v1/reconciliation").await.body["unexplained"].clone();
    assert_eq!(unexplained().await, 0);
    database.execute("update window_rows set revenue = revenue + 1 where closed_by is not null and window_start = '2026-10-01T09:00Z'").await;
    assert_eq!(unexplained().await, 1);
    database.execute("delete from window_rows using queries where queries.query_id = window_rows.query_id and name = 'hourly_sales' and window_start = '2026-10-01T10:00Z'").await;
    assert_eq!(unexplained().await, 2);
    database
        .execute("insert into window_rows select query_id, window_start - interval '1 day', window_end - interval '1 day', currency, group_keys, orders, revenue, batch_id, written_at, closed_by from window_rows where window_start = '2026-10-01T11:00Z' and closed_by is not null")
        .await;
    assert_eq!(unexplained().await, 3);
    let report = service
        .get("/v1/reconciliation?from=2026-10-01T10:00:00Z&to=2026-10-01T11:00:00Z")
        .await
        .body;
    assert_eq!(report["windows"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&report["windows"][0]["stream"], &report["windows"][0]["status"]),
        (&json!(null), &json!("unexplained"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_fetched_while_clients_post_add_up_every_time() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let posts = async |client: &str| {
        for number in 0..150 {
            // Hours close on the way, and every seventh event comes too late.
            let hour = if number % 7 == 6 { 6 } else { 6 + number / 10 };
            let clock = format!("{hour:02}:{:02}:00", number % 60);
            service.post_events(&[a_sale(&format!("{client}-{number}"), &clock, "1.25")]).await;
        }
    };
    let posted = AtomicBool::new(false);
    let all_posts = async {
        tokio::join!(posts("one"), posts("two"), posts("three"));
        posted.store(true, Ordering::Relaxed);
    };
    let reports = async |query: &str| {
        let mut under_way = 0;
        while !posted.load(Ordering::Relaxed) {
            let report = service.get(&format!("/v1/queries/{query}/reconciliation")).await.body;
            assert_eq!(report["unexplained"], 0, "{report}");
            under_way += 1;
        }
        under_way
    };
    let (append, update, ()) =
        tokio::join!(reports("hourly_sales"), reports("hourly_sales_live"), all_posts);
    assert!(append >= 10 && update >= 10, "{append} and {update} reports were fetched");
    service.wait_until_idle("hourly_sales").await;
    let report = service.get("/v1/reconciliation").await.body;
    assert_eq!(
        (&report["unexplained"], &report["totals"]["USD"]["recount"]["orders"]),
        (&json!(0), &json!(450))
    );
}
