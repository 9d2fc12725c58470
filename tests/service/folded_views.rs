//! Local days as of a moment and with corrections, in every form: the windows of that view, added up.

use serde_json::{Value, json};

use crate::support::{Answer, TestDatabase, TestService, a_sale};

const PERIODS: [&str; 4] = ["PT1H", "P1D", "P1W", "P1M"];

fn sale(id: &str, time: &str, amount: &str, store: &str) -> Value {
    let mut sale = a_sale(id, "00:00:00", amount);
    (sale["event_time"], sale["store_id"]) = (time.into(), store.into());
    sale
}

async fn get(service: &TestService, path: &str) -> Answer {
    let answer = service.get(path).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    answer
}

async fn by_store(service: &TestService, mode: &str) {
    let rule = json!({
        "window": {"kind": "tumbling", "size": "30 minutes"}, "watermark_delay": "1 hour",
        "group_by": ["store_id"], "output_mode": mode, "trigger": {"kind": "manual"},
    });
    service.put("/v1/queries/q", rule).await;
}

async fn post_and_run(service: &TestService, sales: &[Value]) {
    service.post_events(sales).await;
    service.run("q").await;
}

/// Orders and hundredths per store and currency.
fn sums(rows: &Value, part: Option<&str>) -> Vec<(String, i64, i64)> {
    let mut sums: Vec<(String, i64, i64)> = Vec::new();
    for row in rows.as_array().unwrap() {
        let figures = part.map_or(row, |part| &row[part]);
        let cents = figures["revenue"].as_str().unwrap().replace('.', "").parse::<i64>().unwrap();
        let key = format!("{} {}", row["store_id"], row["currency"]);
        match sums.iter_mut().find(|sum| sum.0 == key) {
            Some(sum) => {
                (sum.1, sum.2) = (sum.1 + figures["orders"].as_i64().unwrap(), sum.2 + cents)
            }
            None => sums.push((key, figures["orders"].as_i64().unwrap(), cents)),
        }
    }
    sums.sort();
    sums
}

/// What every view of the windows said at a moment.
async fn views(service: &TestService) -> (String, Vec<(String, Value)>) {
    let report = get(service, "/v1/queries/q/reconciliation").await.body;
    let moment = report["as_of"].as_str().unwrap().to_owned();
    let mut seen = Vec::new();
    for view in ["stream", "corrected"] {
        let plain = format!("/v1/queries/q/windows?limit=1000&view={view}");
        let windows = get(service, &plain).await.body["rows"].clone();
        for period in PERIODS {
            let path = format!("{plain}&granularity={period}&time_zone=Asia/Kolkata");
            let folds = get(service, &path).await.body;
            for part in [None, Some("late_since")] {
                assert_eq!(sums(&folds["rows"], part), sums(&windows, part), "{path}");
            }
            if view == "corrected" {
                let part = Some("corrections");
                assert_eq!(sums(&folds["rows"], part), sums(&windows, part), "{path}");
            }
            for form in ["csv", "ndjson"] {
                let path = format!("{path}&format={form}");
                seen.push((path.clone(), get(service, &path).await.body));
            }
            let lines = match &seen.last().unwrap().1 {
                Value::String(text) => {
                    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
                }
                one => vec![one.clone()],
            };
            assert_eq!(Value::from(lines), folds["rows"], "{path}");
            seen.push((path, folds));
        }
        seen.push((plain, Value::Null));
    }
    (moment, seen)
}

#[tokio::test(flavor = "multi_thread")]
async fn days_can_be_fetched_again_as_of_every_moment_with_corrections_and_in_every_form() {
    for mode in ["append", "update", "complete"] {
        let database = TestDatabase::create().await;
        let service = TestService::start(&database).await;
        by_store(&service, mode).await;
        let mut history = Vec::new();
        let posts = [
            vec![
                sale("1", "2026-10-31T17:29:59Z", "1.00", "S1"),
                sale("2", "2026-10-31T18:30:00Z", "-2.50", "S2"),
                sale("3", "2026-10-31T18:45:00Z", "4.00", "S1"),
            ],
            vec![sale("4", "2026-11-01T09:00:00Z", "8.00", "S1")],
            vec![
                sale("5", "2026-10-31T18:50:00Z", "16.00", "S1"),
                sale("6", "2026-10-31T17:00:00Z", "32.00", "=S3"),
                sale("7", "2026-11-02T09:00:00Z", "64.00", "S2"),
            ],
        ];
        for sales in posts {
            post_and_run(&service, &sales).await;
            history.push(views(&service).await);
        }
        let all = json!({"windows": "all", "note": "late tills", "booked_by": "finance"});
        let booked = service.post("/v1/queries/q/corrections", all).await;
        let is_final = mode != "complete";
        assert_eq!(booked.body["booked"], if is_final { 2 } else { 0 }, "{}", booked.body);
        history.push(views(&service).await);
        for (moment, seen) in history {
            for (path, then) in seen.into_iter().filter(|(_, then)| !then.is_null()) {
                let again = get(&service, &format!("{path}&as_of={moment}")).await.body;
                assert_eq!(again, then, "{mode} {path} as of {moment}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_corrected_day_says_how_much_of_it_is_corrections() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    by_store(&service, "append").await;
    post_and_run(&service, &[sale("1", "2026-10-01T09:00:00Z", "1.00", "S1")]).await;
    post_and_run(&service, &[sale("2", "2026-10-02T09:00:00Z", "2.00", "S1")]).await;
    post_and_run(&service, &[sale("3", "2026-10-01T10:00:00Z", "-4.00", "S1")]).await;
    let all = json!({"windows": "all", "note": "a return", "booked_by": "finance"});
    service.post("/v1/queries/q/corrections", all).await;
    let path = "/v1/queries/q/windows?granularity=P1D&view=corrected";
    let day = get(&service, path).await.body["rows"][0].clone();
    assert_eq!(
        (&day["orders"], &day["revenue"], &day["corrections"], &day["final"]),
        (&json!(2), &json!("-3.00"), &json!({"orders": 1, "revenue": "-4.00"}), &json!(true))
    );
    let csv = get(&service, &format!("{path}&format=csv")).await.body;
    let mut lines = csv.as_str().unwrap().lines();
    assert!(lines.next().unwrap().ends_with(",corrections_orders,corrections_revenue"), "{csv}");
    assert!(lines.next().unwrap().ends_with(",0,0.00,1,-4.00"), "{csv}");
    let plain = get(&service, "/v1/queries/q/windows?granularity=P1D").await.body;
    assert_eq!(plain["rows"][0].get("corrections"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn whether_windows_fold_depends_on_what_is_shown_and_not_on_what_came_since() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let rule = json!({
        "window": {"kind": "tumbling", "size": "1 hour"}, "watermark_delay": "1 hour",
        "output_mode": "append", "trigger": {"kind": "manual"},
    });
    service.put("/v1/queries/q", rule).await;
    // From August 2015 to May 2018 Pyongyang was half an hour off.
    let days = "/v1/queries/q/windows?granularity=P1D&time_zone=Asia/Pyongyang";
    let at = |id: &str, time: &str| sale(id, time, "1.00", "S1");
    post_and_run(&service, &[at("1", "2019-06-01T09:00:00Z"), at("2", "2019-06-03T09:00:00Z")])
        .await;
    let first = get(&service, days).await.body;
    let report = get(&service, "/v1/queries/q/reconciliation").await.body;
    post_and_run(&service, &[at("3", "2017-06-01T09:00:00Z")]).await;
    let all = json!({"windows": "all", "note": "an old till", "booked_by": "finance"});
    service.post("/v1/queries/q/corrections", all).await;
    assert_eq!(get(&service, days).await.body, first);
    let corrected = service.get(&format!("{days}&view=corrected")).await;
    assert_eq!(
        (corrected.status, &corrected.body["type"]),
        (422, &json!("/problems/does-not-fold"))
    );
    let then = format!("{days}&view=corrected&as_of={}", report["as_of"].as_str().unwrap());
    assert_eq!(get(&service, &then).await.body["rows"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_short_day_ends_where_the_next_begins_and_a_date_that_was_skipped_has_no_row() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    by_store(&service, "update").await;
    let noons = [
        // Samoa went from the 29th to the 31st.
        "2011-12-29T22:00:00Z",
        "2011-12-30T22:00:00Z",
        "2026-03-29T12:00:00Z",
        "2026-03-30T12:00:00Z",
    ];
    post_and_run(&service, &noons.map(|noon| sale(noon, noon, "1.00", "S1"))).await;
    for (zone, from, days) in [
        (
            "Pacific/Apia",
            "2011-12-01T00:00:00Z",
            [
                ("2011-12-29", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"),
                ("2011-12-31", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"),
            ],
        ),
        (
            "Europe/Lisbon",
            "2026-03-01T00:00:00Z",
            [
                ("2026-03-29", "2026-03-29T00:00:00Z", "2026-03-29T23:00:00Z"),
                ("2026-03-30", "2026-03-29T23:00:00Z", "2026-03-30T23:00:00Z"),
            ],
        ),
    ] {
        let path =
            format!("/v1/queries/q/windows?granularity=P1D&time_zone={zone}&from={from}&limit=2");
        let rows = get(&service, &path).await.body["rows"].clone();
        let told: Vec<[&str; 3]> = rows
            .as_array()
            .unwrap()
            .iter()
            .map(|row| ["date", "start", "end"].map(|member| row[member].as_str().unwrap()))
            .collect();
        assert_eq!(told, days.map(|(date, start, end)| [date, start, end]), "{zone}");
    }
    // Where a page of days ended is no place in the list of hours, nor the other way round.
    let (plain, folded) = ("/v1/queries/q/windows?limit=1", "&granularity=P1D");
    let cursor = async |path: &str| get(&service, path).await.body["next_cursor"].clone();
    for (cursor, list) in [
        (cursor(&format!("{plain}{folded}")).await, plain.to_owned()),
        (cursor(plain).await, format!("{plain}{folded}")),
    ] {
        let refused = service.get(&format!("{list}&cursor={}", cursor.as_str().unwrap())).await;
        assert_eq!(refused.status, 400, "{list}: {}", refused.body);
        assert_eq!(refused.body["errors"][0]["pointer"], "/cursor", "{list}");
    }
}
