//! CSV and NDJSON: one dialect, no formulas, and a year without a year's memory.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Answer, TestDatabase, TestService, a_sale};

async fn get_as(service: &TestService, path: &str, accept: &str) -> Answer {
    let request = reqwest::Client::new().get(service.url(path)).header("accept", accept);
    Answer::of(request).await
}

fn text(answer: &Answer) -> &str {
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.body.as_str().unwrap()
}

/// Header and rows of a CSV file.
fn table(text: &str) -> (Vec<String>, Vec<Vec<String>>) {
    assert!(text.ends_with("\r\n"), "{text}");
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let rows = reader.records().map(|row| row.unwrap().iter().map(str::to_owned).collect());
    (header, rows.collect())
}

/// The value that a column's name means in a row of JSON: `late_since_orders` is `orders` in `late_since`.
fn value_at(row: &Value, name: &str) -> Option<String> {
    let as_text = |value: &Value| match value {
        Value::Null => Some(String::new()),
        Value::String(text) => Some(text.clone()),
        Value::Object(_) | Value::Array(_) => None,
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
    };
    let object = row.as_object()?;
    if let Some(found) = object.get(name) {
        return as_text(found);
    }
    object.iter().find_map(|(member, inner)| {
        let rest = name.strip_prefix(member.as_str())?.strip_prefix('_')?;
        if inner.is_null() { Some(String::new()) } else { value_at(inner, rest) }
    })
}

async fn a_hostile_store(service: &TestService) {
    let rule = json!({
        "window": {"kind": "tumbling", "size": "1 hour"}, "watermark_delay": "1 hour",
        "group_by": ["store_id"], "output_mode": "append", "trigger": {"kind": "manual"},
    });
    service.put("/v1/queries/q", rule).await;
    let sale = |id: &str, clock: &str, amount: &str, store: &str| {
        let mut sale = a_sale(id, clock, amount);
        sale["store_id"] = store.into();
        sale
    };
    service.post_events(&[sale("=1+1", "09:05:00", "-4.50", "=HYPERLINK(\"x\")")]).await;
    service.post_events(&[sale("2", "09:10:00", "3.00", "+49")]).await;
    service.post_events(&[sale("3", "11:30:00", "5.00", "S, \"1\"")]).await;
    service.run("q").await;
    service.post_events(&[sale("-late", "09:30:00", "64.00", "@S2")]).await;
    service.run("q").await;
    let all = json!({"windows": "all", "note": "a late till", "booked_by": "finance"});
    assert_eq!(service.post("/v1/queries/q/corrections", all).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_form_of_a_list_says_the_same() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    a_hostile_store(&service).await;
    for (path, member, columns, rows) in [
        ("/v1/queries/q/windows", "rows", 12, 2),
        ("/v1/hourly-sales?query=q", "rows", 13, 2),
        ("/v1/queries/q/windows?granularity=P1D", "rows", 16, 2),
        ("/v1/queries/q/windows?view=corrected", "rows", 14, 3),
        ("/v1/hourly-sales?query=q&view=corrected&granularity=P1D", "rows", 18, 3),
        ("/v1/queries/q/progress", "progress", 23, 3),
        ("/v1/progress?query=q", "progress", 23, 3),
        ("/v1/queries/q/dropped-events", "dropped_events", 18, 1),
        ("/v1/queries/q/reconciliation", "windows", 28, 4),
        ("/v1/reconciliation?query=q", "windows", 28, 4),
    ] {
        let listed = service.get(path).await;
        let listed = listed.body[member].as_array().unwrap();
        assert_eq!(listed.len(), rows, "{path}");

        let csv = get_as(&service, path, "text/csv").await;
        assert_eq!(csv.header("content-type"), "text/csv; charset=utf-8; header=present");
        assert!(csv.header("vary").starts_with("accept"));
        let (header, lines) = table(text(&csv));
        assert_eq!((header.len(), lines.len()), (columns, rows), "{path}: {header:?}");
        for (line, row) in lines.iter().zip(listed) {
            for (name, cell) in header.iter().zip(line) {
                let inner = if path.contains("dropped") { &row["event"] } else { row };
                let Some(value) = value_at(row, name).or_else(|| value_at(inner, name)) else {
                    continue;
                };
                let is_text = name.ends_with("_id") && name != "batch_id";
                let guard =
                    if is_text && value.starts_with(['=', '+', '-', '@']) { "'" } else { "" };
                assert_eq!(*cell, format!("{guard}{value}"), "{path} {name}");
            }
        }

        let lines = get_as(&service, path, "application/x-ndjson").await;
        assert_eq!(lines.header("content-type"), "application/x-ndjson");
        let body = match &lines.body {
            Value::String(text) => text.clone(),
            one => one.to_string(),
        };
        let rows: Vec<Value> =
            body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(&rows, listed, "{path}");
    }
    let csv = service.get("/v1/queries/q/windows?format=csv&final=true").await;
    let (_, lines) = table(text(&csv));
    let told: Vec<[&str; 2]> =
        lines.iter().map(|line| [line[2].as_str(), line[5].as_str()]).collect();
    assert_eq!(told, [["'+49", "3.00"], ["'=HYPERLINK(\"x\")", "-4.50"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_form_is_chosen_by_parameter_or_header_and_an_unknown_one_is_refused() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    a_hostile_store(&service).await;
    let windows = "/v1/queries/q/windows";
    let page = service.get(&format!("{windows}?format=csv&limit=1")).await;
    assert_eq!(table(text(&page)).1.len(), 1);
    let (address, _) = page.header("link")[1..].split_once(">; ").unwrap();
    let last = service.get(address).await;
    assert_eq!((table(text(&last)).1.len(), last.header("link")), (1, ""));
    let header_only = service.get(&format!("{windows}?format=csv&store_id=none")).await;
    assert_eq!(table(text(&header_only)).1.len(), 0);
    assert_eq!(service.get(&format!("{windows}?format=ndjson&store_id=none")).await.body, "");
    // The parameter comes before the header.
    let json = get_as(&service, &format!("{windows}?format=json"), "text/csv").await;
    assert_eq!(json.header("content-type"), "application/json");

    for path in [
        windows,
        "/v1/hourly-sales",
        "/v1/progress",
        "/v1/queries/q/progress",
        "/v1/queries/q/dropped-events",
        "/v1/reconciliation",
        "/v1/queries/q/reconciliation",
    ] {
        let refused = get_as(&service, path, "application/xml").await;
        assert_eq!(
            (refused.status, &refused.body["type"]),
            (406, &json!("/problems/not-acceptable"))
        );
        let refused = service.get(&format!("{path}?format=xml")).await;
        assert_eq!(refused.status, 400, "{path}");
        assert_eq!(
            refused.body["errors"][0]["detail"],
            "`format`: `xml` is not `json` nor `csv` nor `ndjson`"
        );
    }
}

/// Rows of 50 stores, an hour after the other.
async fn hourly_rows(database: &TestDatabase, hours: u32) {
    database
        .execute(&format!(
            "insert into window_rows (query_id, window_start, window_end, currency, group_keys, orders,
                 revenue, batch_id, closed_by)
             select query_id, hour, hour + interval '1 hour', 'EUR', format('[\"S%s\"]', store), 3, 68.5, 1,
                 'watermark'
             from queries, generate_series(timestamptz '2025-01-01T00:00Z',
                     timestamptz '2025-01-01T00:00Z' + interval '1 hour' * {}, interval '1 hour') hour,
                 generate_series(1, 50) store
             where name = 'q'",
            hours - 1
        ))
        .await;
}

/// What the service has in memory now, and the most it ever had (Linux tells).
#[cfg(target_os = "linux")]
fn memory_bytes(service: &TestService, which: &str) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", service.process_id())).unwrap();
    let line = status.lines().find(|line| line.starts_with(which)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_month_of_fifty_stores_costs_the_memory_of_a_page() {
    costs_the_memory_of_a_page(730).await;
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a minute; run it with `cargo test --test service -- --ignored a_year_of_fifty_stores`"]
async fn a_year_of_fifty_stores_costs_no_more() {
    costs_the_memory_of_a_page(8_760).await;
}

#[cfg(target_os = "linux")]
async fn costs_the_memory_of_a_page(hours: u32) {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let rule = json!({
        "window": {"kind": "tumbling", "size": "1 hour"}, "watermark_delay": "1 hour",
        "group_by": ["store_id"], "output_mode": "append", "trigger": {"kind": "manual"},
    });
    service.put("/v1/queries/q", rule).await;
    hourly_rows(&database, hours).await;
    service.get("/v1/queries/q/windows?limit=1000").await;
    fs::write(format!("/proc/{}/clear_refs", service.process_id()), "5").unwrap();
    let before = memory_bytes(&service, "VmRSS:");
    for (parameters, rows) in [
        ("format=csv", hours * 50 + 1),
        ("format=ndjson", hours * 50),
        ("format=csv&granularity=P1D&time_zone=Europe/Lisbon", hours.div_ceil(24) * 50 + 1),
    ] {
        let path = service.url(&format!("/v1/queries/q/windows?{parameters}"));
        let mut answer = reqwest::get(path).await.unwrap();
        assert_eq!(answer.status(), 200);
        let mut lines = 0;
        while let Some(chunk) = answer.chunk().await.unwrap() {
            lines += chunk.iter().filter(|byte| **byte == b'\n').count();
        }
        assert_eq!(lines, rows as usize, "{parameters}");
    }
    let grown = memory_bytes(&service, "VmHWM:").saturating_sub(before);
    println!("{hours} hours of 50 stores cost {grown} bytes");
    assert!(grown < 50 << 20, "{grown} bytes");
}
