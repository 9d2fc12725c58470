//! Lists: what filters pick, how pages follow each other, and what the output modes show.

use serde_json::{Value, json};

use crate::support::{Answer, TestDatabase, TestService, a_sale};

fn by_store(output_mode: &str, trigger: &Value) -> Value {
    json!({
        "window": {"kind": "tumbling", "size": "1 hour"}, "watermark_delay": "1 hour",
        "group_by": ["store_id"], "output_mode": output_mode, "trigger": trigger,
    })
}

fn sale(id: &str, clock: &str, amount: &str, store: Option<&str>, currency: &str) -> Value {
    let mut sale = a_sale(id, clock, amount);
    sale["currency"] = currency.into();
    if let Some(store) = store {
        sale["store_id"] = store.into();
    }
    sale
}

/// Three final rows of 09:00, two of 10:00 that are open in update mode, and one late event.
async fn a_morning_in_two_stores(service: &TestService, queries: &[&str]) {
    service
        .post_events(&[
            sale("1", "09:05:00", "1.00", Some("S1"), "USD"),
            sale("2", "09:10:00", "2.00", Some("S2"), "USD"),
            sale("3", "09:15:00", "4.00", Some("S2"), "EUR"),
            sale("4", "09:20:00", "8.00", None, "USD"),
        ])
        .await;
    run_all(service, queries).await;
    service
        .post_events(&[
            sale("5", "11:10:00", "16.00", Some("S1"), "USD"),
            sale("6", "11:30:00", "32.00", Some("S2"), "USD"),
        ])
        .await;
    run_all(service, queries).await;
    service.post_events(&[sale("7", "09:30:00", "64.00", Some("S2"), "USD")]).await;
    run_all(service, queries).await;
}

async fn run_all(service: &TestService, queries: &[&str]) {
    for query in queries {
        service.run(query).await;
    }
}

/// (hour, store, currency, revenue) of each row.
fn rows_of(answer: &Answer) -> Vec<(String, String, String, String)> {
    assert_eq!(answer.status, 200, "{}", answer.body);
    let text = |row: &Value, field: &str| row[field].as_str().unwrap_or("-").to_owned();
    let row = |row: &Value| {
        let hour = text(row, "start")[11..13].to_owned();
        (hour, text(row, "store_id"), text(row, "currency"), text(row, "revenue"))
    };
    answer.body["rows"].as_array().unwrap().iter().map(row).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_picked_by_group_key_currency_finality_and_range() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    service.put("/v1/queries/q", by_store("update", &json!({"kind": "manual"}))).await;
    a_morning_in_two_stores(&service, &["q"]).await;
    for (parameters, revenues) in [
        ("", vec!["1.00", "4.00", "2.00", "8.00", "16.00", "32.00"]),
        ("?store_id=S2", vec!["4.00", "2.00", "32.00"]),
        ("?store_id=", vec!["8.00"]),
        ("?store_id=S3", vec![]),
        ("?currency=EUR", vec!["4.00"]),
        ("?final=true", vec!["1.00", "4.00", "2.00", "8.00"]),
        ("?final=false", vec!["16.00", "32.00"]),
        ("?from=2026-10-01T11:00:00Z", vec!["16.00", "32.00"]),
        ("?to=2026-10-01T11:00:00Z", vec!["1.00", "4.00", "2.00", "8.00"]),
        ("?from=1900-01-01T00:00:00Z&to=2200-01-01T00:00:00Z&final=false", vec!["16.00", "32.00"]),
        ("?from=2200-01-01T00:00:00Z", vec![]),
        ("?from=2026-10-01T09:00:00.000001Z&to=2026-10-01T11:00:00Z", vec![]),
        ("?from=2026-10-01T11:00:00%2B02:00&to=2026-10-01T10:00:00Z&store_id=S1", vec!["1.00"]),
        ("?final=true&store_id=S2&currency=USD", vec!["2.00"]),
    ] {
        let answer = service.get(&format!("/v1/queries/q/windows{parameters}")).await;
        let rows = rows_of(&answer);
        assert_eq!(rows.into_iter().map(|row| row.3).collect::<Vec<_>>(), revenues, "{parameters}");
    }
    let hours = service.get("/v1/hourly-sales?query=q&store_id=S1&limit=1").await.body;
    assert_eq!(hours["rows"][0]["hour"], "2026-10-01T09:00:00Z");
    for (parameters, detail) in [
        (
            "?till_id=T1",
            "`till_id`: not known here; known are `as_of`, `from`, `to`, `currency`, `final`, `view`, `store_id`, `limit`, `cursor`, \
             `granularity`, `time_zone`, `business_day_start`, `format`",
        ),
        (
            "?currency=usd",
            "`currency`: `usd` is not an ISO 4217 currency code in capital letters, such as `USD`",
        ),
        (
            "?cursor=AAAA",
            "`cursor`: is not a cursor of this list; take it from `next_cursor` as it is",
        ),
    ] {
        let refused = service.get(&format!("/v1/queries/q/windows{parameters}")).await;
        assert_eq!(refused.status, 400, "{}", refused.body);
        assert_eq!(refused.body["errors"][0]["detail"], detail, "{parameters}");
    }
    let refused = service.get("/v1/queries/q/windows?limit=1&store_id=S%FF1").await;
    let detail = "`store_id=S%FF1` is not UTF-8 when its `%` are read; escape UTF-8 bytes.";
    assert_eq!((refused.status, &refused.body["detail"]), (400, &json!(detail)));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_value_picks_the_rows_that_have_none_and_those_where_it_is_empty() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let mut rule = by_store("update", &json!({"kind": "manual"}));
    rule["group_by"] = json!(["attributes.ch"]);
    service.put("/v1/queries/q", rule).await;
    let in_channel = |id: &str, amount: &str, attributes: Value| {
        let mut sale = a_sale(id, "09:05:00", amount);
        sale["attributes"] = attributes;
        sale
    };
    service
        .post_events(&[
            in_channel("1", "1.00", json!({})),
            in_channel("2", "2.00", json!({"ch": ""})),
            in_channel("3", "4.00", json!({"ch": "web"})),
        ])
        .await;
    service.run("q").await;
    for (value, revenues) in [("", vec!["2.00", "1.00"]), ("web", vec!["4.00"])] {
        let answer = service.get(&format!("/v1/queries/q/windows?attributes.ch={value}")).await;
        let found: Vec<String> = rows_of(&answer).into_iter().map(|row| row.3).collect();
        assert_eq!(found, revenues, "{value:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_every_list_follow_each_other_without_a_gap_or_a_repeat() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    service.put("/v1/queries/q", by_store("update", &json!({"kind": "manual"}))).await;
    a_morning_in_two_stores(&service, &["q"]).await;
    service.post_events(&[sale("8", "08:30:00", "1.00", None, "USD")]).await;
    service.run("q").await;
    for (list, member, count) in [
        ("/v1/queries/q/windows?final=true", "rows", 4),
        ("/v1/hourly-sales?query=q", "rows", 6),
        ("/v1/queries/q/progress", "progress", 6),
        ("/v1/progress?query=q", "progress", 6),
        ("/v1/queries/q/dropped-events", "dropped_events", 2),
        ("/v1/queries", "queries", 3),
    ] {
        let whole = service.get(list).await.body;
        let whole = whole[member].as_array().unwrap().clone();
        assert_eq!(whole.len(), count, "{list}");
        let sign = if list.contains('?') { '&' } else { '?' };
        let (mut paged, mut next) = (Vec::new(), Some(format!("{list}{sign}limit=1")));
        while let Some(path) = next.take() {
            let page = service.get(&path).await;
            let entries = page.body[member].as_array().unwrap();
            assert_eq!(entries.len(), 1, "{path}");
            paged.extend(entries.iter().cloned());
            if let Some(cursor) = page.body["next_cursor"].as_str() {
                let link = page.header("link");
                let (address, rel) = link[1..].split_once(">; ").unwrap();
                assert_eq!(rel, r#"rel="next""#);
                assert!(address.ends_with(&format!("cursor={cursor}")), "{address}");
                next = Some(address.to_owned());
            } else {
                assert_eq!(page.header("link"), "");
            }
        }
        let steady = |list: Vec<Value>| -> Vec<Value> {
            list.into_iter()
                .map(|mut entry| {
                    // Of a query that runs meanwhile, these may move.
                    for moving in ["lag_events", "last_progress", "watermark", "batch_id"] {
                        if list_is_of_queries(&entry) {
                            entry[moving].take();
                        }
                    }
                    entry
                })
                .collect()
        };
        assert_eq!(steady(paged), steady(whole), "{list}");
    }
}

fn list_is_of_queries(entry: &Value) -> bool {
    entry.get("watermark_delay").is_some()
}

#[tokio::test(flavor = "multi_thread")]
async fn complete_through_follows_the_watermark_in_whole_windows() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    service.put("/v1/queries/q", by_store("append", &json!({"kind": "manual"}))).await;
    for (clock, watermark, complete_through) in [
        ("09:05:00", "2026-10-01T08:05:00.000Z", json!("2026-10-01T08:00:00Z")),
        ("10:59:59.999999", "2026-10-01T09:59:59.999Z", json!("2026-10-01T09:00:00Z")),
        ("11:00:00", "2026-10-01T10:00:00.000Z", json!("2026-10-01T10:00:00Z")),
        // Out of order: the watermark never goes back.
        ("09:00:00", "2026-10-01T10:00:00.000Z", json!("2026-10-01T10:00:00Z")),
    ] {
        let before = service.get("/v1/queries/q/windows").await.body;
        if before["watermark"] == "1970-01-01T00:00:00.000Z" {
            assert_eq!(before["complete_through"], Value::Null);
        }
        service.post_events(&[a_sale(clock, clock, "1.00")]).await;
        service.run("q").await;
        let after = service.get("/v1/queries/q/windows").await.body;
        assert_eq!(
            (&after["watermark"], &after["complete_through"]),
            (&json!(watermark), &complete_through),
            "{clock}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_came_too_late_stands_beside_its_own_row_only() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    for mode in ["append", "update", "complete"] {
        service
            .put(&format!("/v1/queries/{mode}"), by_store(mode, &json!({"kind": "manual"})))
            .await;
    }
    a_morning_in_two_stores(&service, &["append", "update", "complete"]).await;
    let nothing = json!({"orders": 0, "revenue": "0.00"});
    let late = json!({"orders": 1, "revenue": "64.00"});
    for (mode, expected) in [
        ("append", [&nothing, &nothing, &late, &nothing].as_slice()),
        ("update", [&nothing, &nothing, &late, &nothing, &nothing, &nothing].as_slice()),
        ("complete", [&nothing; 6].as_slice()),
    ] {
        let rows = service.rows(mode).await;
        let late_since: Vec<&Value> = rows.iter().map(|row| &row["late_since"]).collect();
        assert_eq!(late_since, expected, "{mode}");
    }
    // Complete mode drops nothing: the late event is in its row, and no row is ever final.
    let complete = service.rows("complete").await;
    assert_eq!(complete[2]["revenue"], "66.00");
    assert!(complete.iter().all(|row| row["final"] == false && row["closed_by"].is_null()));
    // Update mode says which rows may still change.
    let finals: Vec<Value> =
        service.rows("update").await.iter().map(|row| row["final"].clone()).collect();
    assert_eq!(finals, [true, true, true, true, false, false]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_by_interval_runs_by_itself_and_gathers_what_came_between() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let every = json!({"kind": "interval", "every": "400 milliseconds"});
    service.put("/v1/queries/q", by_store("update", &every)).await;
    for number in 0..30 {
        service.post_events(&[a_sale(&number.to_string(), "09:05:00", "1.00")]).await;
    }
    service.wait_until_idle("q").await;
    assert_eq!(service.rows("q").await[0]["orders"], 30);
    let progress = service.get("/v1/queries/q/progress").await.body;
    let batches = progress["progress"].as_array().unwrap();
    let with_events = batches.iter().filter(|entry| entry["events_in"] != 0).count();
    assert!(with_events < 30, "one batch for each post is no interval: {with_events}");
}
