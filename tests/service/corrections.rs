//! What finance does about late events: Monday's number and Thursday's, booked, explained, on record.

use serde_json::{Value, json};

use crate::support::{TestDatabase, TestService, a_sale};

const MONDAY: [(&str, &str, &str); 4] = [
    ("1001", "09:05:00", "20.00"),
    ("1002", "09:20:00", "30.50"),
    ("1004", "10:20:00", "40.00"),
    ("1005", "12:30:00", "18.25"),
];

async fn monday_night() -> (TestDatabase, TestService, String) {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    service.post_events(&MONDAY.map(|(id, clock, amount)| a_sale(id, clock, amount))).await;
    idle(&service).await;
    let moment = service.get("/v1/reconciliation").await.body["as_of"].as_str().unwrap().to_owned();
    (database, service, moment)
}

async fn idle(service: &TestService) {
    service.wait_until_idle("hourly_sales").await;
    service.wait_until_idle("hourly_sales_live").await;
}

async fn thursday(service: &TestService) {
    // Till 7 was offline on Monday morning; the shop went on selling.
    service
        .post_events(&[
            a_sale("1006", "09:50:00", "22.00"),
            a_sale("1007", "08:10:00", "5.00"),
            a_sale("1008", "12:40:00", "12.00"),
            a_sale("1009", "15:00:00", "3.00"),
        ])
        .await;
    idle(service).await;
}

async fn get(service: &TestService, path: &str) -> Value {
    let answer = service.get(path).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    answer.body
}

fn without_moment(mut body: Value) -> Value {
    body.as_object_mut().unwrap().remove("as_of");
    body
}

async fn book(service: &TestService, windows: Value) -> (u16, Value) {
    let body = json!({"windows": windows, "note": "till 7 was offline", "booked_by": "finance"});
    let answer = service.post("/v1/queries/hourly_sales/corrections", body).await;
    (answer.status, answer.body)
}

#[tokio::test(flavor = "multi_thread")]
async fn mondays_number_can_be_fetched_again_on_thursday_and_both_are_explained() {
    let (_database, service, monday) = monday_night().await;
    let paths = [
        "/v1/queries/hourly_sales/reconciliation?",
        "/v1/queries/hourly_sales_live/reconciliation?",
        "/v1/queries/hourly_sales/windows?",
        "/v1/queries/hourly_sales_live/windows?",
        "/v1/hourly-sales?",
    ];
    let mut then = Vec::new();
    for path in paths {
        then.push(get(&service, path).await);
    }
    assert_eq!(then[0]["totals"]["USD"]["recount"]["revenue"], "108.75");
    thursday(&service).await;
    book(&service, json!("all")).await;
    for (path, then) in paths.iter().zip(then) {
        assert_ne!(
            without_moment(get(&service, path).await),
            without_moment(then.clone()),
            "{path}"
        );
        let again = get(&service, &format!("{path}as_of={monday}")).await;
        assert_eq!(without_moment(again), without_moment(then), "{path}");
    }
    let now = get(&service, "/v1/reconciliation").await;
    assert_eq!(
        (&now["unexplained"], &now["totals"]["USD"]["recount"]["revenue"]),
        (&json!(0), &json!("150.75"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_mode_and_window_can_be_read_as_of_any_moment() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let rule = |mode: &str, window: Value| json!({"window": window, "watermark_delay": "30 minutes", "output_mode": mode});
    let hour = json!({"kind": "tumbling", "size": "1 hour"});
    let session = json!({"kind": "session", "gap": "20 minutes"});
    let sliding = json!({"kind": "sliding", "size": "1 hour", "slide": "20 minutes"});
    let mut deduplicated = rule("update", hour.clone());
    deduplicated["deduplicate"] = json!({"keys": ["order_id"]});
    let rules = [
        ("append", rule("append", hour.clone())),
        ("update", rule("update", hour.clone())),
        ("complete", rule("complete", hour)),
        ("session", rule("append", session)),
        ("sliding", rule("append", sliding)),
        ("deduplicated", deduplicated),
    ];
    for (name, rule) in &rules {
        service.put(&format!("/v1/queries/{name}"), rule.clone()).await;
    }
    let clocks = [
        "09:05:00", "09:15:00", "10:20:00", "08:10:00", "09:10:00", "11:30:00", "10:35:00",
        "10:00:00", "13:00:00",
    ];
    let mut seen = Vec::new();
    for (number, clock) in clocks.iter().enumerate() {
        let mut sale = a_sale(&number.to_string(), clock, "2.50");
        sale["order_id"] = json!(number % 5);
        service.post_events(&[sale]).await;
        for (name, _) in &rules {
            service.wait_until_idle(name).await;
        }
        for (name, _) in &rules {
            let report = get(&service, &format!("/v1/queries/{name}/reconciliation")).await;
            assert_eq!(report["unexplained"], 0, "{name} {report}");
            let rows = get(&service, &format!("/v1/queries/{name}/windows")).await;
            seen.push((*name, report, rows));
        }
    }
    for (name, report, rows) in seen {
        let moment = report["as_of"].as_str().unwrap();
        let path = format!("/v1/queries/{name}/reconciliation?as_of={moment}");
        assert_eq!(
            without_moment(get(&service, &path).await),
            without_moment(report.clone()),
            "{name}"
        );
        let path = format!("/v1/queries/{name}/windows?as_of={moment}");
        assert_eq!(get(&service, &path).await, rows, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_moment_to_come_or_before_the_query_is_refused_in_a_sentence() {
    let (_database, service, _) = monday_night().await;
    for (moment, sentence) in [
        ("2199-01-01T00:00:00Z", "in the future"),
        ("2001-01-01T00:00:00Z", "was created or reset"),
    ] {
        for path in ["/v1/reconciliation", "/v1/hourly-sales"] {
            let answer = service.get(&format!("{path}?as_of={moment}")).await;
            assert_eq!(answer.status, 400, "{}", answer.body);
            assert_eq!(answer.body["errors"][0]["pointer"], "/as_of");
            assert!(answer.body["detail"].as_str().unwrap().contains(sentence), "{}", answer.body);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn late_events_are_booked_once_and_the_rows_stay() {
    let (_database, service, _) = monday_night().await;
    thursday(&service).await;
    let rows = get(&service, "/v1/hourly-sales").await;
    let nine = json!([{"start": "2026-10-01T09:00:00Z", "end": "2026-10-01T10:00:00Z"}]);
    let (status, booked) = book(&service, nine.clone()).await;
    assert_eq!((status, &booked["booked"], &booked["first_number"]), (201, &json!(1), &json!(1)));
    assert_eq!(booked["totals"]["USD"], json!({"orders": 1, "revenue": "22.00"}));
    assert_eq!(book(&service, nine).await.1["booked"], 0);
    let (status, rest) = book(&service, json!("all")).await;
    assert_eq!((status, &rest["first_number"], &rest["last_number"]), (201, &json!(2), &json!(2)));
    assert_eq!(book(&service, json!("all")).await.0, 200);

    let listed = get(&service, "/v1/queries/hourly_sales/corrections?limit=1").await;
    let first = &listed["corrections"][0];
    assert_eq!(first["before"], json!({"orders": 2, "revenue": "50.50"}));
    assert_eq!(first["after"], json!({"orders": 3, "revenue": "72.50"}));
    assert_eq!(
        (&first["event_ids"], &first["booked_by"]),
        (&json!(["1006-placed"]), &json!("finance"))
    );
    assert_eq!(
        (&first["difference"], &first["note"]),
        (&json!({"orders": 1, "revenue": "22.00"}), &json!("till 7 was offline"))
    );
    let cursor = listed["next_cursor"].as_str().unwrap();
    let path = format!("/v1/queries/hourly_sales/corrections?limit=1&cursor={cursor}");
    assert_eq!(get(&service, &path).await["corrections"][0]["number"], 2);

    assert_eq!(get(&service, "/v1/hourly-sales").await, rows, "nothing is overwritten");
    let corrected = get(&service, "/v1/hourly-sales?view=corrected").await;
    let eight = &corrected["rows"][0];
    assert_eq!(
        (&eight["orders"], &eight["batch_id"], &eight["final"]),
        (&json!(1), &Value::Null, &json!(true))
    );
    let nine = &corrected["rows"][1];
    assert_eq!((&nine["revenue"], &nine["late_since"]["orders"]), (&json!("72.50"), &json!(0)));
    assert_eq!(nine["corrections"], json!({"orders": 1, "revenue": "22.00"}));
    let report = get(&service, "/v1/reconciliation").await;
    assert_eq!(
        (&report["unexplained"], &report["windows"][1]["status"]),
        (&json!(0), &json!("corrected"))
    );
    assert_eq!(report["windows"][1]["corrections"], json!({"orders": 1, "revenue": "22.00"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_booking_that_cannot_be_says_why_and_books_nothing() {
    let (_database, service, _) = monday_night().await;
    thursday(&service).await;
    for (windows, status, pointer) in [
        (
            json!([{"start": "2026-10-01T15:00:00Z", "end": "2026-10-01T16:00:00Z"}]),
            409,
            "/windows/0",
        ),
        (
            json!([{"start": "2026-10-01T09:30:00Z", "end": "2026-10-01T10:30:00Z"}]),
            422,
            "/windows/0",
        ),
        (json!([{"start": "2026-10-01T09:00:00Z"}]), 422, "/windows/0/end"),
        (
            json!([{"start": "2026-10-01T09:00:00Z", "end": "2026-10-01T10:00:00Z", "shop": "A"}]),
            422,
            "/windows/0/shop",
        ),
        (json!("some"), 422, "/windows"),
    ] {
        let (got, body) = book(&service, windows.clone()).await;
        assert_eq!((got, &body["errors"][0]["pointer"]), (status, &json!(pointer)), "{windows}");
    }
    assert_eq!(
        get(&service, "/v1/queries/hourly_sales/corrections").await["corrections"],
        json!([])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_trail_outlives_what_it_speaks_of() {
    let (_database, service, _) = monday_night().await;
    thursday(&service).await;
    book(&service, json!("all")).await;
    service.post("/v1/queries/hourly_sales/reset", json!({})).await;
    service.delete("/v1/queries/hourly_sales_live").await;
    let mut early = a_sale("1", "00:00:00", "9.00");
    early["event_time"] = "2190-01-01T00:00:00Z".into();
    service.post("/v1/events", early).await;
    service.post("/v1/quarantine/1-placed", json!({"action": "reject", "note": "a test"})).await;
    let trail = get(&service, "/v1/audit?limit=3").await;
    let cursor = trail["next_cursor"].as_str().unwrap();
    let last = get(&service, &format!("/v1/audit?cursor={cursor}")).await;
    let entries: Vec<&Value> = trail["audit"]
        .as_array()
        .unwrap()
        .iter()
        .chain(last["audit"].as_array().unwrap())
        .collect();
    let actions: Vec<&str> =
        entries.iter().map(|entry| entry["action"].as_str().unwrap()).collect();
    assert_eq!(
        actions,
        ["quarantine_rejected", "query_deleted", "query_reset", "corrections_booked"]
    );
    assert_eq!(
        (&entries[0]["event_id"], &entries[0]["note"]),
        (&json!("1-placed"), &json!("a test"))
    );
    assert_eq!(entries[2]["details"]["removed"]["corrections"], 2);
    assert_eq!(
        (&entries[3]["done_by"], &entries[3]["details"]["numbers"]["last"]),
        (&json!("finance"), &json!(2))
    );
}
