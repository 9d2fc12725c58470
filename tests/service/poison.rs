//! A record that a query cannot process does not stop it, and is said to be left out.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{TestDatabase, TestService, a_sale};

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_record_is_found_alone_and_the_others_are_counted() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    // Created paused, so that the damage is there before anything is read.
    service.post("/v1/queries/hourly_sales/pause", json!({})).await;
    service.post("/v1/queries/hourly_sales_live/pause", json!({})).await;
    let sales: Vec<Value> = (0..40)
        .map(|number| a_sale(&number.to_string(), &format!("09:{number:02}:00"), "1.00"))
        .collect();
    service.post_events(&sales).await;
    database.execute("update raw_events set currency = 'ZZZ' where event_id = '17-placed'").await;
    service.post("/v1/queries/hourly_sales_live/resume", json!({})).await;
    service.wait_until_idle("hourly_sales_live").await;
    let rows = service.rows("hourly_sales_live").await;
    assert_eq!((rows.len(), &rows[0]["orders"]), (1, &json!(39)));
    let poison = "select count(*) from poison_events join raw_events using (seq) where event_id = '17-placed'";
    assert_eq!(database.number(poison).await, 1);
    assert_eq!(database.number("select count(*) from poison_events").await, 1);
    // Mended, it stays out of the query, and both sides agree on that.
    database.execute("update raw_events set currency = 'USD' where event_id = '17-placed'").await;
    let report = service.get("/v1/queries/hourly_sales_live/reconciliation").await.body;
    assert_eq!(report["unexplained"], 0, "{report}");
    assert_eq!(report["windows"][0]["quarantined"], json!({"orders": 1, "revenue": "1.00"}));
    assert_eq!(report["windows"][0]["recount"]["orders"], 39);
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_by_request_find_a_damaged_record_alone_too() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    for query in ["hourly_sales", "hourly_sales_live"] {
        service.delete(&format!("/v1/queries/{query}")).await;
    }
    let rule = json!({
        "window": {"kind": "tumbling", "size": "1 hour"}, "watermark_delay": "1 hour",
        "output_mode": "append", "trigger": {"kind": "manual"}, "max_events_per_batch": 8,
    });
    service.put("/v1/queries/q", rule).await;
    let sales: Vec<Value> = (0..20)
        .map(|number| a_sale(&number.to_string(), &format!("09:{number:02}:00"), "1.00"))
        .collect();
    service.post_events(&sales).await;
    database.execute("update raw_events set currency = 'ZZZ' where event_id = '5-placed'").await;
    let mut runs = 0;
    while service.post("/v1/queries/q/run", json!({})).await.status != 200 {
        runs += 1;
        assert!(runs < 30, "the query does not go on");
    }
    let poison = "select count(*) from poison_events join raw_events using (seq) where event_id = '5-placed'";
    assert_eq!(database.number(poison).await, 1);
    assert_eq!(database.number("select count(*) from poison_events").await, 1);
    let counted = "select sum(orders)::bigint from window_state";
    assert_eq!(database.number(counted).await, 19);
}

/// Text of `chars` characters of four bytes each that no compression makes smaller.
fn incompressible(chars: u32, seed: u32) -> String {
    let mut state = seed;
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from_u32(0x1_0000 + (state >> 12) % 0xF_0000).unwrap()
    };
    (0..chars).map(next).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_whose_group_does_not_fit_into_an_index_does_not_stop_the_query() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let rule = json!({
        "window": {"kind": "tumbling", "size": "1 hour"}, "watermark_delay": "1 hour",
        "group_by": ["store_id", "till_id", "customer_id", "attributes.note"],
        "output_mode": "append", "max_events_per_batch": 10,
    });
    service.put("/v1/queries/q", rule).await;
    let mut sales: Vec<Value> =
        (0..20).map(|number| a_sale(&number.to_string(), "09:05:00", "1.00")).collect();
    for (field, seed) in [("store_id", 1), ("till_id", 2), ("customer_id", 3)] {
        sales[7][field] = incompressible(200, seed).into();
    }
    sales[7]["attributes"] = json!({"note": incompressible(256, 4)});
    service.post_events(&sales).await;
    service.wait_until_idle("q").await;
    assert_eq!(database.number("select count(*) from poison_events").await, 1);
    assert_eq!(service.get("/v1/queries/q").await.body["open_windows"], 1);
    let report = service.get("/v1/queries/q/reconciliation").await.body;
    assert_eq!(report["unexplained"], 0, "{report}");
    let orders = |part: &str| -> i64 {
        report["windows"]
            .as_array()
            .unwrap()
            .iter()
            .map(|line| line[part]["orders"].as_i64().unwrap_or(0))
            .sum()
    };
    assert_eq!((orders("open"), orders("recount"), orders("quarantined")), (19, 19, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_whose_state_cannot_be_read_says_so_and_goes_on_once_it_is_mended() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let rule = json!({
        "window": {"kind": "tumbling", "size": "1 hour"}, "watermark_delay": "1 hour",
        "output_mode": "update", "deduplicate": {"keys": ["order_id"]},
    });
    service.put("/v1/queries/once", rule).await;
    service.post_events(&[a_sale("1", "09:05:00", "1.00")]).await;
    service.wait_until_idle("once").await;
    service.post("/v1/queries/once/pause", json!({})).await;
    database.execute("update duplicate_state set expires_at = 'infinity'").await;
    service.post("/v1/queries/once/resume", json!({})).await;
    service.post_events(&[a_sale("2", "09:06:00", "1.00")]).await;
    let told = async || service.get("/v1/queries/once").await.body["error"].clone();
    for _ in 0..400 {
        if told().await.is_string() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    assert!(told().await.as_str().is_some_and(|error| error.contains("panicked")));
    let run = service.post("/v1/queries/once/run", json!({})).await;
    assert_eq!((run.status, &run.body["type"]), (503, &json!("/problems/run-failed")));
    database.execute("update duplicate_state set expires_at = '2026-10-01T11:00Z'").await;
    service.wait_until_idle("once").await;
    assert_eq!(service.rows("once").await[0]["orders"], 2);
}
