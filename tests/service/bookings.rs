//! Bookings under way: at the same instant, while late events keep coming, and seen from any moment.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::{TestDatabase, TestService, a_sale};

const CORRECTIONS: &str = "/v1/queries/hourly_sales/corrections";

async fn book(service: &TestService) -> Value {
    let all = json!({"windows": "all", "note": "late tills", "booked_by": "finance"});
    let answer = service.post(CORRECTIONS, all).await;
    assert!(matches!(answer.status, 200 | 201), "{}", answer.body);
    answer.body
}

/// Every correction, page by page.
async fn corrections(service: &TestService) -> Vec<Value> {
    let (mut all, mut path) = (Vec::new(), format!("{CORRECTIONS}?limit=100"));
    loop {
        let page = service.get(&path).await.body;
        all.extend(page["corrections"].as_array().unwrap().iter().cloned());
        let Some(cursor) = page["next_cursor"].as_str() else { return all };
        path = format!("{CORRECTIONS}?limit=100&cursor={cursor}");
    }
}

/// A service whose hours up to 21:00 are final.
async fn an_evening() -> (TestDatabase, TestService) {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    service.post_events(&[a_sale("evening", "22:30:00", "1.00")]).await;
    service.wait_until_idle("hourly_sales").await;
    (database, service)
}

#[tokio::test(flavor = "multi_thread")]
async fn bookings_at_the_same_instant_book_each_event_once_while_late_ones_keep_coming() {
    let (_database, service) = an_evening().await;
    let post = async |client: &str| {
        for number in 0..40 {
            let clock = format!("{:02}:{:02}:00", number % 21, number);
            service.post_events(&[a_sale(&format!("{client}-{number}"), &clock, "1.25")]).await;
        }
    };
    let book_often = async || {
        let mut booked = 0;
        for _ in 0..25 {
            booked += book(&service).await["booked"].as_i64().unwrap();
            let report = service.get("/v1/reconciliation").await.body;
            assert_eq!(report["unexplained"], 0, "{report}");
        }
        booked
    };
    let (.., first, second, third) =
        tokio::join!(post("a"), post("b"), book_often(), book_often(), book_often());
    service.wait_until_idle("hourly_sales").await;
    let last = book(&service).await["booked"].as_i64().unwrap();
    let corrections = corrections(&service).await;
    let numbers: Vec<i64> = corrections.iter().map(|one| one["number"].as_i64().unwrap()).collect();
    let count = i64::try_from(corrections.len()).unwrap();
    assert_eq!(numbers, (1..=count).collect::<Vec<_>>());
    assert_eq!(first + second + third + last, count);
    let events: Vec<&str> = corrections
        .iter()
        .flat_map(|one| one["event_ids"].as_array().unwrap())
        .map(|id| id.as_str().unwrap())
        .collect();
    assert_eq!((events.len(), events.iter().collect::<BTreeSet<_>>().len()), (80, 80));
    let report = service.get("/v1/reconciliation").await.body;
    assert_eq!(report["totals"]["USD"]["corrections"], json!({"orders": 80, "revenue": "100.00"}));
    assert_eq!(
        (&report["unexplained"], &report["totals"]["USD"]["late"]["orders"]),
        (&json!(0), &json!(0))
    );
    assert_eq!(book(&service).await["booked"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_booking_is_seen_whole_or_not_at_all() {
    let (database, service) = an_evening().await;
    let late: Vec<Value> = (1..20)
        .map(|hour| a_sale(&hour.to_string(), &format!("{hour:02}:10:00"), "1.00"))
        .collect();
    service.post_events(&late).await;
    service.wait_until_idle("hourly_sales").await;
    book(&service).await;
    assert_eq!(database.number("select count(distinct booked_at) from corrections").await, 1);
    let corrections = corrections(&service).await;
    let moment = corrections[0]["booked_at"].as_str().unwrap();
    let before: String = sqlx::query_scalar(
        "select to_char(min(booked_at) at time zone 'UTC' - interval '1 microsecond',
             'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') from corrections",
    )
    .fetch_one(&database.pool)
    .await
    .unwrap();
    for (moment, booked, late) in [(moment, 19, 0), (&before, 0, 19)] {
        let report = service.get(&format!("/v1/reconciliation?as_of={moment}")).await.body;
        let sums = &report["totals"]["USD"];
        assert_eq!(
            (&sums["corrections"]["orders"], &sums["late"]["orders"], &report["unexplained"]),
            (&json!(booked), &json!(late), &json!(0)),
            "{moment}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_counts_anew_what_was_booked_and_gives_no_number_twice() {
    let (_database, service) = an_evening().await;
    service.post_events(&[a_sale("late", "09:10:00", "1.00")]).await;
    service.wait_until_idle("hourly_sales").await;
    assert_eq!(book(&service).await["first_number"], 1);
    assert_eq!(service.post("/v1/queries/hourly_sales/reset", json!({})).await.status, 200);
    service.wait_until_idle("hourly_sales").await;
    assert_eq!(corrections(&service).await, Vec::<Value>::new());
    // Read in one go, nothing is late any more.
    let report = service.get("/v1/reconciliation").await.body;
    assert_eq!(
        (&report["windows"][0]["status"], &report["unexplained"]),
        (&json!("match"), &json!(0))
    );
    service.post_events(&[a_sale("later", "09:20:00", "1.00")]).await;
    service.wait_until_idle("hourly_sales").await;
    assert_eq!(book(&service).await["first_number"], 2);
    assert_eq!(service.delete("/v1/queries/hourly_sales").await.status, 204);
    assert_eq!(service.get(CORRECTIONS).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_set_aside_stands_beside_the_report_until_somebody_decides() {
    let (_database, service) = an_evening().await;
    let mut early = a_sale("early", "09:00:00", "5.00");
    early["event_time"] = "2190-01-01T00:10:00Z".into();
    assert_eq!(service.post("/v1/events", early).await.body["quarantined"], 1);
    let report = async |as_of: &str| {
        let report = service.get(&format!("/v1/reconciliation?{as_of}")).await.body;
        assert_eq!(report["unexplained"], 0, "{report}");
        report
    };
    let before = report("").await;
    let aside = before["windows"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&aside["start"], &aside["quarantined"], &aside["recount"], &aside["status"]),
        (
            &json!("2190-01-01T00:00:00Z"),
            &json!({"orders": 1, "revenue": "5.00"}),
            &Value::Null,
            &json!("match")
        )
    );
    let release = json!({
        "action": "release", "event_time": "2026-10-01T09:30:00Z", "note": "the till's clock",
    });
    assert_eq!(service.post("/v1/quarantine/early-placed", release).await.status, 200);
    let trail = service.get("/v1/audit?limit=1").await.body["audit"][0].clone();
    assert_eq!(
        (&trail["action"], &trail["event_id"], &trail["note"]),
        (&json!("quarantine_released"), &json!("early-placed"), &json!("the till's clock"))
    );
    service.wait_until_idle("hourly_sales").await;
    let after = report("").await;
    assert_eq!(after["totals"]["USD"]["quarantined"]["orders"], 0);
    assert_eq!(
        (&after["windows"][0]["start"], &after["windows"][0]["late"]["event_ids"]),
        (&json!("2026-10-01T09:00:00Z"), &json!(["early-placed"]))
    );
    assert_eq!(book(&service).await["booked"], 1);
    let moment = before["as_of"].as_str().unwrap();
    assert_eq!(report(&format!("as_of={moment}")).await["windows"], before["windows"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_comes_again_after_it_was_forgotten_is_another_event_to_finance() {
    let (database, service) = an_evening().await;
    service.post_events(&[a_sale("again", "09:10:00", "1.00")]).await;
    service.wait_until_idle("hourly_sales").await;
    database.execute("delete from event_keys where event_id = 'again-placed'").await;
    service.post_events(&[a_sale("again", "09:10:00", "1.00")]).await;
    service.wait_until_idle("hourly_sales").await;
    let line = service.get("/v1/reconciliation").await.body["windows"][0].clone();
    assert_eq!(line["late"]["event_ids"], json!(["again-placed", "again-placed"]));
    assert_eq!(book(&service).await["totals"]["USD"], json!({"orders": 2, "revenue": "2.00"}));
    assert_eq!(book(&service).await["booked"], 0);
    assert_eq!(service.get("/v1/reconciliation").await.body["unexplained"], 0);
}
