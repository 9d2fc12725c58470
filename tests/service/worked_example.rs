//! The worked examples of the event-time rules, every number of their tables.

use serde_json::{Value, json};

use crate::support::{TestDatabase, TestService, a_sale};

const EPOCH: &str = "1970-01-01T00:00:00.000Z";

fn hourly(window: &str, delay: &str) -> Value {
    json!({
        "filter": {"status": ["placed"]}, "window": {"kind": "tumbling", "size": window},
        "watermark_delay": delay, "output_mode": "append", "trigger": {"kind": "manual"},
    })
}

/// (batch, events in, late, watermark, rows written) of each entry.
fn summary(progress: &[Value]) -> Vec<(i64, i64, i64, String, i64)> {
    let number = |entry: &Value, field: &str| entry[field].as_i64().unwrap();
    progress
        .iter()
        .map(|entry| {
            (
                number(entry, "batch_id"),
                number(entry, "events_in"),
                number(entry, "late_events"),
                entry["watermark"].as_str().unwrap().to_owned(),
                number(entry, "rows_written"),
            )
        })
        .collect()
}

/// (start, orders, revenue, batch) of each row.
fn rows(rows: &[Value]) -> Vec<(&str, i64, &str, i64)> {
    rows.iter()
        .map(|row| {
            let text = |field: &str| row[field].as_str().unwrap();
            (
                text("start"),
                row["orders"].as_i64().unwrap(),
                text("revenue"),
                row["batch_id"].as_i64().unwrap(),
            )
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_worked_example_comes_out_exactly() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    service.put("/v1/queries/example", hourly("1 hour", "1 hour")).await;

    let paid = json!({
        "event_id": "1001-paid", "order_id": 1001, "status": "paid", "amount": "20.00",
        "event_time": "2026-10-01T09:06:00Z",
    });
    service
        .post_events(&[
            a_sale("1001", "09:05:00", "20.00"),
            a_sale("1002", "09:20:00", "30.50"),
            a_sale("1003", "09:40:00", "18.00"),
            paid,
            a_sale("1004", "10:20:00", "40.00"),
        ])
        .await;
    assert_eq!(
        summary(&service.run("example").await),
        [(0, 4, 0, EPOCH.to_owned(), 0), (1, 0, 0, "2026-10-01T09:20:00.000Z".to_owned(), 0)]
    );
    assert_eq!(service.rows("example").await, Vec::<Value>::new());

    service.post_events(&[a_sale("1005", "11:30:00", "18.25")]).await;
    assert_eq!(
        summary(&service.run("example").await),
        [
            (2, 1, 0, "2026-10-01T09:20:00.000Z".to_owned(), 0),
            (3, 0, 0, "2026-10-01T10:30:00.000Z".to_owned(), 1)
        ]
    );
    assert_eq!(rows(&service.rows("example").await), [("2026-10-01T09:00:00Z", 3, "68.50", 3)]);

    service
        .post_events(&[
            a_sale("1006", "09:50:00", "22.00"),
            a_sale("1007", "10:45:00", "15.00"),
            a_sale("1008", "12:40:00", "12.00"),
        ])
        .await;
    assert_eq!(
        summary(&service.run("example").await),
        [
            (4, 3, 1, "2026-10-01T10:30:00.000Z".to_owned(), 0),
            (5, 0, 0, "2026-10-01T11:40:00.000Z".to_owned(), 1)
        ]
    );
    let written = service.rows("example").await;
    assert_eq!(
        rows(&written),
        [("2026-10-01T09:00:00Z", 3, "68.50", 3), ("2026-10-01T10:00:00Z", 2, "55.00", 5)]
    );
    assert_eq!(written[0]["late_since"], json!({"orders": 1, "revenue": "22.00"}));

    let ledger = service.get("/v1/queries/example/dropped-events").await.body;
    let late = &ledger["dropped_events"][0];
    assert_eq!(late["event"]["event_id"], "1006-placed");
    assert_eq!(late["late_by"], "100 minutes");
    assert_eq!(late["watermark"], "2026-10-01T10:30:00.000Z");
    assert_eq!(
        late["windows"],
        json!([{"start": "2026-10-01T09:00:00Z", "end": "2026-10-01T10:00:00Z"}])
    );

    let report = service.get("/v1/queries/example/reconciliation").await.body;
    assert_eq!(report["unexplained"], 0);
    let lines: Vec<(&str, i64, &str, &str)> = report["windows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| {
            let recount = &line["recount"];
            let text = |value: &'static str| line[value].as_str().unwrap();
            (
                text("start"),
                recount["orders"].as_i64().unwrap(),
                recount["revenue"].as_str().unwrap(),
                text("status"),
            )
        })
        .collect();
    assert_eq!(
        lines,
        [
            ("2026-10-01T09:00:00Z", 4, "90.50", "late"),
            ("2026-10-01T10:00:00Z", 2, "55.00", "match"),
            ("2026-10-01T11:00:00Z", 1, "18.25", "open"),
            ("2026-10-01T12:00:00Z", 1, "12.00", "open")
        ]
    );
    let nine = &report["windows"][0];
    assert_eq!(nine["difference"], json!({"orders": 1, "revenue": "22.00"}));
    assert_eq!(
        nine["late"],
        json!({"orders": 1, "revenue": "22.00", "event_ids": ["1006-placed"]})
    );
}

fn at(clock: &str) -> Value {
    a_sale(&format!("order-{clock}"), clock, "1.00")
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_minute_windows_count_three_orders_each() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    service.put("/v1/queries/example", hourly("10 minutes", "10 minutes")).await;
    let six = ["00:00:00", "00:05:00", "00:09:59", "00:10:00", "00:15:00", "00:19:00"];
    service.post_events(&six.map(at)).await;
    service.run("example").await;
    for clock in ["01:00:00", "01:10:00"] {
        service.post_events(&[at(clock)]).await;
        service.run("example").await;
    }
    let written = service.rows("example").await;
    let counts: Vec<(&str, i64)> =
        rows(&written).iter().map(|row| (row.0, row.1)).take(2).collect();
    assert_eq!(counts, [("2026-10-01T00:00:00Z", 3), ("2026-10-01T00:10:00Z", 3)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_out_of_order_inside_the_delay_is_counted() {
    for (clock, start, orders) in
        [("00:12:00", "2026-10-01T00:10:00Z", 2), ("00:17:00", "2026-10-01T00:15:00Z", 3)]
    {
        let database = TestDatabase::create().await;
        let service = TestService::start(&database).await;
        service.put("/v1/queries/example", hourly("5 minutes", "10 minutes")).await;
        let six = ["00:00:00", "00:05:00", "00:09:59", "00:10:00", "00:15:00", "00:19:00"];
        service.post_events(&six.map(at)).await;
        service.run("example").await;
        service.post_events(&[at(clock)]).await;
        assert_eq!(service.run("example").await[0]["late_events"], 0, "{clock}");
        service.post_events(&[at("01:00:00")]).await;
        service.run("example").await;
        let written = service.rows("example").await;
        let row = rows(&written).into_iter().find(|row| row.0 == start).unwrap();
        assert_eq!(row.1, orders, "{clock}");
    }
}
