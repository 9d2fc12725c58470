//! Reports on parts of a history: each says of its part what the report on all of it says.

use serde_json::{Value, json};

use crate::support::{TestDatabase, TestService};

const DAYS: [(&str, &str); 5] = [
    ("1900-01-01T00:00:00Z", "2026-10-01T00:00:00Z"),
    ("2026-10-01T00:00:00Z", "2026-10-02T00:00:00Z"),
    ("2026-10-02T00:00:00Z", "2026-10-02T12:30:00Z"),
    ("2026-10-02T12:30:00Z", "2026-10-03T00:00:00Z"),
    ("2026-10-03T00:00:00Z", "2200-01-01T00:00:00Z"),
];

/// A database whose server reads by indexes wherever it can, as it does where a log is long.
pub(crate) async fn database_read_by_indexes() -> TestDatabase {
    let database = TestDatabase::create().await;
    let by_index = "do $$ begin
        execute format('alter database %I set enable_seqscan = off', current_database());
    end $$";
    database.execute(by_index).await;
    database
}

fn rules() -> Vec<(&'static str, Value)> {
    let hours = json!({"kind": "tumbling", "size": "1 hour"});
    let rule = |window: &Value, mode: &str| {
        json!({
            "window": window, "watermark_delay": "1 hour", "output_mode": mode,
            "group_by": ["store_id"], "trigger": {"kind": "manual"},
        })
    };
    let mut first_only = rule(&hours, "append");
    first_only["deduplicate"] = json!({"keys": ["order_id"]});
    vec![
        ("append", rule(&hours, "append")),
        ("update", rule(&hours, "update")),
        ("complete", rule(&hours, "complete")),
        (
            "sliding",
            rule(&json!({"kind": "sliding", "size": "3 hours", "slide": "1 hour"}), "append"),
        ),
        ("sessions", rule(&json!({"kind": "session", "gap": "20 minutes"}), "append")),
        ("first-only", first_only),
    ]
}

/// Sales of two and a half days, over midnight too; some come late, some orders twice.
async fn play(service: &TestService) {
    for (name, rule) in rules() {
        service.put(&format!("/v1/queries/{name}"), rule).await;
    }
    let mut random = fastrand::Rng::with_seed(7);
    for post in 0..12 {
        let sale = |number: i64| {
            let minute = number * 10 - *random.choice(&[0, 0, 0, 15, 400]).unwrap();
            let minute = minute.max(0);
            let (day, hour, minute) = (1 + minute / 1440, minute / 60 % 24, minute % 60);
            json!({
                "event_id": format!("sale-{number}"), "status": "placed", "amount": "1.25",
                "order_id": format!("order-{}", number - random.i64(0..4)),
                "event_time": format!("2026-10-{day:02}T{hour:02}:{minute:02}:00Z"),
                "store_id": *random.choice(&["S1", "S2"]).unwrap(),
            })
        };
        let sales: Vec<Value> = (post * 30..post * 30 + 30).map(sale).collect();
        service.post_events(&sales).await;
        for (name, _) in rules() {
            service.run(name).await;
        }
        if post == 6 {
            book(service).await;
        }
    }
}

async fn book(service: &TestService) {
    for (name, _) in rules() {
        let all = json!({"windows": "all", "note": "late tills", "booked_by": "finance"});
        let answer = service.post(&format!("/v1/queries/{name}/corrections"), all).await;
        assert!(matches!(answer.status, 200 | 201), "{name}: {}", answer.body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reports_on_the_parts_are_the_report_on_all() {
    let database = database_read_by_indexes().await;
    let service = TestService::start(&database).await;
    play(&service).await;
    for (name, _) in rules() {
        let path = format!("/v1/queries/{name}/reconciliation");
        let now = service.get(&path).await.body;
        let moment = now["as_of"].as_str().unwrap();
        for filter in ["", "&store_id=S2", &format!("&as_of={moment}")] {
            let all = service.get(&format!("{path}?{}", filter.trim_start_matches('&'))).await.body;
            assert_eq!(all["unexplained"], 0, "{name}: {all}");
            let mut parts = Vec::new();
            for (from, to) in DAYS {
                let part = service.get(&format!("{path}?from={from}&to={to}{filter}")).await.body;
                assert_eq!(part["range"], json!({"from": from, "to": to}));
                assert_eq!(part["unexplained"], 0, "{name}: {part}");
                parts.extend(part["windows"].as_array().unwrap().clone());
            }
            assert_eq!(Value::from(parts), all["windows"], "{name} {filter}");
            assert!(all["windows"].as_array().unwrap().len() > 20, "{name} {filter}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_of_more_windows_than_fit_is_refused_and_parts_of_it_are_not() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let rows =
        "insert into window_rows (query_id, window_start, window_end, currency, group_keys, orders,
             revenue, batch_id, closed_by)
         select query_id, minute, minute + interval '1 hour', 'EUR', '[]', 1, 1, 1, 'watermark'
         from queries, generate_series(timestamptz '1950-01-01T00:00Z',
             timestamptz '1950-01-01T00:00Z' + interval '1 hour' * 500000, interval '1 hour') minute
         where name = 'hourly_sales'";
    assert_eq!(database.execute(rows).await, 500_001);
    let refused = service.get("/v1/reconciliation?format=csv").await;
    assert_eq!(
        (refused.status, &refused.body["type"]),
        (422, &json!("/problems/too-many-windows"))
    );
    assert_eq!(
        refused.body["detail"],
        "The report would have more than 500000 windows; ask for parts of it, by `from` and `to`."
    );
    let day = "from=1960-01-01T00:00:00Z&to=1960-01-02T00:00:00Z";
    let part = service.get(&format!("/v1/reconciliation?{day}")).await.body;
    assert_eq!(part["windows"].as_array().unwrap().len(), 24);
}
