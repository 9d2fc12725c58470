//! What goes wrong inside stays inside: an answer says that it did, the log says what.

use serde_json::json;

use crate::support::{Answer, TestDatabase, TestService, a_sale};

/// What no client may see: statements, tables, files, types and words of libraries.
const INTERNALS: [&str; 17] = [
    "select ",
    "insert ",
    "update ",
    "relation",
    "column",
    "window_rows",
    "raw_events",
    "sqlx",
    "postgres",
    "pgsql",
    "backtrace",
    "panicked",
    "src/",
    ".rs",
    "/tmp",
    "os error",
    "::",
];

#[track_caller]
fn assert_nothing_leaks(case: &str, answer: &Answer) {
    let said = answer.body.to_string().to_lowercase();
    for internal in INTERNALS {
        assert!(!said.contains(internal), "{case}: `{internal}` is in {said}");
    }
    assert_eq!(answer.header("content-type"), "application/problem+json", "{case}");
    assert_eq!(answer.body["errors"], json!([]), "{case}");
    assert_eq!(answer.body["request_id"], answer.header("x-request-id"), "{case}");
}

/// Everything that fails once the tables are not what they were.
async fn asked(service: &TestService, id: &str) -> Vec<(String, Answer)> {
    let mut answers = Vec::new();
    for path in [
        "/v1/hourly-sales",
        "/v1/hourly-sales?format=csv",
        "/v1/reconciliation",
        "/v1/queries/hourly_sales/lateness",
        "/v1/queries/hourly_sales/dropped-events",
    ] {
        let request = service.client.get(service.url(path)).header("x-request-id", id);
        answers.push((format!("GET {path}"), Answer::of(request).await));
    }
    for (path, body) in [
        ("/v1/events", json!([a_sale(id, "09:05:00", "1.00")])),
        ("/v1/heartbeats", json!({"source": "till-7", "event_time": "2026-10-01T12:45:00Z"})),
        ("/v1/queries/hourly_sales/run", json!({})),
    ] {
        let request = service.client.post(service.url(path)).json(&body).header("x-request-id", id);
        answers.push((format!("POST {path}"), Answer::of(request).await));
    }
    answers
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_inside_is_told_to_the_log_and_not_to_the_client() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    service.post_events(&[a_sale("1", "09:05:00", "1.00"), a_sale("2", "11:05:00", "1.00")]).await;
    service.run("hourly_sales").await;
    service.wait_until_idle("hourly_sales").await;
    let changes = [
        "alter table window_rows rename column revenue to gone",
        "alter table window_state rename column revenue to gone",
        "alter table dropped_events rename column watermark to gone",
        "alter table raw_events rename column amount to gone",
        "alter table raw_events rename column event_time to gone_too",
    ];
    for change in changes {
        database.execute(change).await;
    }
    for (case, answer) in asked(&service, "damaged").await {
        assert!(answer.status >= 500, "{case}: {} {}", answer.status, answer.body);
        assert_nothing_leaks(&case, &answer);
    }
    // The line with the cause is found by the id that the client was told.
    let log = service.log();
    let line = log.lines().find(|line| line.contains("does not exist") && line.contains("damaged"));
    assert!(line.is_some(), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_row_is_told_as_such() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    service.post_events(&[a_sale("1", "09:05:00", "1.00")]).await;
    service.run("hourly_sales_live").await;
    service.wait_until_idle("hourly_sales_live").await;
    database.execute("update window_rows set currency = 'ZZZ'").await;
    let answer = service.get("/v1/queries/hourly_sales_live/windows").await;
    assert_eq!(answer.status, 500, "{}", answer.body);
    let detail = answer.body["detail"].as_str().unwrap();
    assert!(detail.starts_with("A stored currency cannot be read"), "{detail}");
    assert_nothing_leaks("a damaged row", &answer);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_is_told_without_the_address_of_the_database() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let name: String = sqlx::query_scalar("select current_database()::text")
        .fetch_one(&database.pool)
        .await
        .unwrap();
    database.pool.close().await;
    let admin = sqlx::PgPool::connect(&database.url.replacen(&name, "postgres", 1)).await.unwrap();
    for statement in [
        format!("alter database {name} allow_connections false"),
        format!("select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'"),
    ] {
        sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&admin).await.unwrap();
    }
    for (case, answer) in asked(&service, "away").await {
        assert!(answer.status >= 500, "{case}: {} {}", answer.status, answer.body);
        assert_nothing_leaks(&case, &answer);
    }
    let ready = service.get("/readyz").await;
    assert_eq!(ready.status, 503, "{}", ready.body);
    assert_nothing_leaks("GET /readyz", &ready);
}
