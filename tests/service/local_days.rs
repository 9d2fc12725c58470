//! Windows folded into the days that a shop closes its books by.

use serde_json::{Value, json};

use crate::support::{Answer, TestDatabase, TestService};

fn sale(id: &str, time: &str, amount: &str, store: &str) -> Value {
    json!({
        "event_id": id, "order_id": id, "status": "placed", "amount": amount, "currency": "EUR",
        "event_time": time, "store_id": store,
    })
}

fn rule(window: &Value, output_mode: &str) -> Value {
    json!({
        "window": window, "watermark_delay": "1 hour", "group_by": ["store_id"],
        "output_mode": output_mode, "trigger": {"kind": "manual"},
    })
}

fn hours() -> Value {
    json!({"kind": "tumbling", "size": "1 hour"})
}

/// Sales around the end of summer time in Lisbon; the watermark stands on 2026-10-26T00:30Z.
async fn a_weekend_in_lisbon(service: &TestService, output_mode: &str) {
    service.put("/v1/queries/q", rule(&hours(), output_mode)).await;
    let sales = [
        sale("1", "2026-10-24T22:59:59Z", "1.00", "S1"),
        sale("2", "2026-10-24T23:00:00Z", "2.00", "S1"),
        sale("3", "2026-10-25T00:30:00Z", "4.00", "S2"),
        sale("4", "2026-10-25T01:30:00Z", "8.00", "S1"),
        sale("5", "2026-10-25T23:59:59Z", "16.00", "S1"),
        sale("6", "2026-10-26T00:00:00Z", "32.00", "S1"),
        sale("7", "2026-10-26T01:30:00Z", "64.00", "S1"),
    ];
    service.post_events(&sales).await;
    service.run("q").await;
}

/// (date, store, revenue, final, partial) of each row.
fn folds_of(answer: &Answer) -> Vec<(String, String, String, bool, bool)> {
    assert_eq!(answer.status, 200, "{}", answer.body);
    let text = |row: &Value, field: &str| row[field].as_str().unwrap().to_owned();
    let flag = |row: &Value, field: &str| row[field].as_bool().unwrap();
    let fold = |row: &Value| {
        let (date, store) = (text(row, "date"), text(row, "store_id"));
        (date, store, text(row, "revenue"), flag(row, "final"), flag(row, "partial"))
    };
    answer.body["rows"].as_array().unwrap().iter().map(fold).collect()
}

fn expected(rows: &[(&str, &str, &str, bool, bool)]) -> Vec<(String, String, String, bool, bool)> {
    let row = |(date, store, revenue, is_final, partial): &(&str, &str, &str, bool, bool)| {
        ((*date).to_owned(), (*store).to_owned(), (*revenue).to_owned(), *is_final, *partial)
    };
    rows.iter().map(row).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_of_25_hours_is_final_when_its_last_hour_is() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    a_weekend_in_lisbon(&service, "update").await;
    let lisbon = "/v1/queries/q/windows?granularity=P1D&time_zone=Europe/Lisbon";
    let (saturday, sunday_1, sunday_2, monday) = (
        ("2026-10-24", "S1", "1.00", true, false),
        ("2026-10-25", "S1", "26.00", true, false),
        ("2026-10-25", "S2", "4.00", true, false),
        ("2026-10-26", "S1", "96.00", false, false),
    );
    for (parameters, folds) in [
        ("", vec![saturday, sunday_1, sunday_2, monday]),
        ("&final=true", vec![saturday, sunday_1, sunday_2]),
        ("&final=false", vec![monday]),
        ("&store_id=S2", vec![sunday_2]),
        ("&from=2026-10-25T00:00:00%2B01:00&to=2026-10-26T00:00:00Z", vec![sunday_1, sunday_2]),
        // Cut in the middle of an hour: the windows that start in the range count.
        (
            "&from=2026-10-25T00:45:00Z&to=2026-10-26T00:00:01Z",
            vec![
                ("2026-10-25", "S1", "24.00", true, true),
                ("2026-10-26", "S1", "32.00", false, true),
            ],
        ),
        ("&from=2026-10-28T00:00:00Z", vec![]),
        (
            "&business_day_start=02:00",
            vec![
                // Half past one of the long night comes twice; both are before two.
                ("2026-10-24", "S1", "11.00", true, false),
                ("2026-10-24", "S2", "4.00", true, false),
                ("2026-10-25", "S1", "112.00", false, false),
            ],
        ),
    ] {
        let answer = service.get(&format!("{lisbon}{parameters}")).await;
        assert_eq!(folds_of(&answer), expected(&folds), "{parameters}");
    }
    let cut = service
        .get(&format!("{lisbon}&from=2026-10-25T01:45:00%2B01:00&to=2026-10-26T00:00:00Z"))
        .await
        .body;
    assert_eq!(cut["range"], json!({"from": "2026-10-25T01:00:00Z", "to": "2026-10-26T00:00:00Z"}));
    let row = &cut["rows"][0];
    assert_eq!(
        [&row["start"], &row["end"], &row["from"], &row["to"]],
        [
            "2026-10-24T23:00:00Z",
            "2026-10-26T00:00:00Z",
            "2026-10-25T01:00:00Z",
            "2026-10-26T00:00:00Z"
        ]
    );
    let week =
        service.get("/v1/hourly-sales?query=q&granularity=P1W&time_zone=Europe/Lisbon").await;
    assert_eq!(
        folds_of(&week),
        expected(&[
            ("2026-10-19", "S1", "27.00", true, false),
            ("2026-10-19", "S2", "4.00", true, false),
            ("2026-10-26", "S1", "96.00", false, false),
        ])
    );
    let month = service.get("/v1/hourly-sales?query=q&granularity=P1M").await;
    assert_eq!(folds_of(&month)[0].2, "123.00");
    let hours = service.get("/v1/queries/q/windows?granularity=PT1H&time_zone=Europe/Lisbon").await;
    assert_eq!(folds_of(&hours).len(), 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_whose_last_hours_sold_nothing_is_final_all_the_same() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    service.put("/v1/queries/q", rule(&hours(), "append")).await;
    let days = "/v1/queries/q/windows?granularity=P1D&time_zone=Europe/Lisbon";
    service.post_events(&[sale("1", "2026-07-01T09:30:00Z", "1.00", "S1")]).await;
    for (id, next, is_final) in [
        ("2", "2026-07-01T12:00:00Z", false),
        ("3", "2026-07-01T23:59:59Z", false),
        ("4", "2026-07-02T00:00:00Z", true),
    ] {
        service.post_events(&[sale(id, next, "0.00", "S2")]).await;
        service.run("q").await;
        let answer = service.get(&format!("{days}&store_id=S1")).await;
        assert_eq!(answer.body["rows"][0]["final"], is_final, "{next}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fold_is_told_what_would() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    a_weekend_in_lisbon(&service, "update").await;
    let sliding = json!({"kind": "sliding", "size": "1 hour", "slide": "30 minutes"});
    service.put("/v1/queries/sliding", rule(&sliding, "update")).await;
    service
        .put("/v1/queries/sessions", rule(&json!({"kind": "session", "gap": "1 hour"}), "append"))
        .await;
    service.put("/v1/queries/empty", rule(&hours(), "append")).await;
    for (path, said) in [
        (
            "q/windows?granularity=P1D&time_zone=Asia/Kolkata",
            "a query with windows of size `30 minutes` and no offset would do, or one with windows of this \
             size and offset `30 minutes`",
        ),
        ("q/windows?granularity=P1D&time_zone=Asia/Kathmandu", "size `15 minutes`"),
        ("q/windows?granularity=P1D&business_day_start=04:15", "offset `15 minutes`"),
        ("empty/windows?granularity=P1D&time_zone=Asia/Kolkata", "size `30 minutes`"),
        (
            "empty/windows?granularity=P1D&time_zone=Asia/Kolkata&from=2026-10-01T00:00:00Z&to=2026-11-01T00:00:00Z",
            "size `30 minutes`",
        ),
        ("q/windows?granularity=P1D&time_zone=Asia/Kolkata&format=csv", "size `30 minutes`"),
        ("sliding/windows?granularity=P1D", "only tumbling windows fold"),
        ("sessions/windows?granularity=P1D", "only tumbling windows fold"),
    ] {
        let refused = service.get(&format!("/v1/queries/{path}")).await;
        assert_eq!(refused.status, 422, "{path}: {}", refused.body);
        assert_eq!(refused.body["type"], "/problems/does-not-fold");
        assert!(refused.body["detail"].as_str().unwrap().contains(said), "{}", refused.body);
    }
    for (parameters, detail) in [
        ("granularity=P1Y", "`granularity`: `P1Y` is not `PT1H`, `P1D`, `P1W` or `P1M`"),
        ("time_zone=Europe/Lisbon", "`time_zone`: means nothing without `granularity`"),
        (
            "granularity=P1D&time_zone=Lisbon",
            "`time_zone`: `Lisbon` is not a time zone of the IANA database, such as `Europe/Lisbon` or `UTC`",
        ),
        (
            "granularity=P1D&business_day_start=4:00",
            "`business_day_start`: `4:00` is not a time of the day from `00:00` to `23:59`, such as `04:00`",
        ),
        (
            "granularity=PT1H&business_day_start=04:00",
            "`business_day_start`: means nothing to hours; leave it out, or ask for days, weeks or months",
        ),
    ] {
        let refused = service.get(&format!("/v1/queries/q/windows?{parameters}")).await;
        assert_eq!(refused.status, 400, "{}", refused.body);
        assert_eq!(refused.body["errors"][0]["detail"], detail, "{parameters}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_folds_follow_each_other_without_a_gap_or_a_repeat() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    a_weekend_in_lisbon(&service, "update").await;
    for parameters in ["", "&final=true", "&from=2026-10-25T00:00:00Z", "&format=json"] {
        let list =
            format!("/v1/queries/q/windows?granularity=P1D&time_zone=Europe/Lisbon{parameters}");
        let whole = service.get(&list).await.body["rows"].as_array().unwrap().clone();
        let (mut paged, mut next) = (Vec::new(), Some(format!("{list}&limit=1")));
        while let Some(path) = next.take() {
            let page = service.get(&path).await.body;
            paged.extend(page["rows"].as_array().unwrap().iter().cloned());
            let cursor = page["next_cursor"].as_str();
            next = cursor.map(|cursor| format!("{list}&limit=1&cursor={cursor}"));
        }
        assert_eq!(paged, whole, "{parameters}");
    }
    let first = service.get("/v1/queries/q/windows?limit=1").await.body;
    let cursor = first["next_cursor"].as_str().unwrap();
    let foreign =
        service.get(&format!("/v1/queries/q/windows?granularity=P1D&cursor={cursor}")).await;
    assert_eq!((foreign.status, &foreign.body["errors"][0]["pointer"]), (400, &json!("/cursor")));
}
