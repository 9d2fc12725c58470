//! What `/readyz` says of a database that answers, and is not as it should be.

use std::time::Duration;

use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};

use crate::support::{Answer, TestDatabase, TestService, a_sale};

/// The codes that `/readyz` names, and its status.
fn named(answer: &Answer) -> (u16, Vec<String>) {
    let told = if answer.status == 200 { &answer.body["degraded"] } else { &answer.body["errors"] };
    let codes = told.as_array().unwrap().iter().map(|one| one["code"].as_str().unwrap().to_owned());
    (answer.status, codes.collect())
}

/// Waits until `/readyz` says so.
async fn wait_until(service: &TestService, status: u16, codes: &[&str]) -> Answer {
    let mut last = Value::Null;
    for _ in 0..600 {
        let answer = service.get("/readyz").await;
        if answer.status == 200 || answer.body["type"] == "/problems/not-ready" {
            let (found, named) = named(&answer);
            if found == status && named == codes {
                return answer;
            }
        }
        last = answer.body;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("/readyz does not become {status} with {codes:?}: {last}");
}

async fn degraded(service: &TestService, reason: &str) -> bool {
    let text = service.get("/metrics").await.body;
    let line = format!("tillmark_degraded{{reason=\"{reason}\"}} 1");
    text.as_str().unwrap().lines().any(|found| found == line)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_is_not_ready_without_the_tables_of_its_version() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let ready = service.get("/readyz").await;
    assert_eq!(ready.body, json!({ "status": "ready", "degraded": [] }));
    database.execute("update _sqlx_migrations set success = false where version = 1").await;
    let unready = wait_until(&service, 503, &["not_migrated"]).await;
    assert_eq!(unready.body["type"], "/problems/not-ready");
    assert!(!unready.header("retry-after").is_empty());
    assert!(degraded(&service, "not_migrated").await);
    database.execute("alter table _sqlx_migrations rename to gone").await;
    wait_until(&service, 503, &["not_migrated"]).await;
    database.execute("alter table gone rename to _sqlx_migrations").await;
    database.execute("update _sqlx_migrations set success = true").await;
    wait_until(&service, 200, &[]).await;
    assert!(!degraded(&service, "not_migrated").await);
    assert_eq!(service.get("/livez").await.body, json!({ "status": "alive" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_waits_for_no_disk_any_more_is_told_loudly_and_once() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let turn = async |word: &str| {
        let name = "do $$ begin execute format('alter database %I set synchronous_commit = ";
        database.execute(&format!("{name}{word}', current_database()); end $$")).await;
        // The setting is for sessions that begin now.
        let end = "select pg_terminate_backend(pid) from pg_stat_activity
            where datname = current_database() and pid <> pg_backend_pid()";
        database.execute(end).await;
    };
    turn("off").await;
    let told = wait_until(&service, 200, &["synchronous_commit_off"]).await;
    assert_eq!(told.body["status"], "degraded");
    assert!(degraded(&service, "synchronous_commit_off").await);
    for _ in 0..3 {
        service.get("/readyz").await;
    }
    assert_eq!(service.log().matches("DEGRADED").count(), 1, "{}", service.log());
    turn("on").await;
    wait_until(&service, 200, &[]).await;
}

/// A service with a Postgres of its own, and a session there that may write whatever the setting.
async fn service_alone() -> (tempfile::TempDir, TestService, PgConnection) {
    let data = tempfile::tempdir().unwrap();
    let settings = [("TILLMARK_DATA_DIR", data.path().to_str().unwrap()), ("DATABASE_URL", "")];
    let service = TestService::start_with(&settings).await;
    let url = std::fs::read_to_string(data.path().join("postgres.url")).unwrap();
    let mut session = PgConnection::connect(url.trim()).await.unwrap();
    run(&mut session, "set default_transaction_read_only = off").await;
    (data, service, session)
}

async fn run(session: &mut PgConnection, statement: &'static str) {
    sqlx::raw_sql(statement).execute(session).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_leaves_the_connections_to_a_server_that_takes_no_writes_any_more() {
    let (_data, service, mut session) = service_alone().await;
    service.post_events(&[a_sale("1", "09:05:00", "1.00")]).await;
    run(&mut session, "alter system set default_transaction_read_only = on").await;
    run(&mut session, "select pg_reload_conf()").await;
    wait_until(&service, 503, &["read_only"]).await;
    let post = async |id: &str| service.post("/v1/events", a_sale(id, "09:06:00", "1.00")).await;
    let refused = post("2").await;
    assert_eq!(refused.status, 503, "{}", refused.body);
    assert_eq!(service.get("/v1/hourly-sales").await.status, 200, "reading goes on");

    // As after a failover: new connections lead to a server that writes, and those from before, whose
    // setting stays as it was, do not.
    run(&mut session, "alter database tillmark set default_transaction_read_only = off").await;
    let taken = async {
        while post("2").await.status != 200 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(10), taken).await;
    waited.expect("events are taken again within 10 s");
    wait_until(&service, 200, &[]).await;
    service.wait_until_idle("hourly_sales_live").await;
    assert_eq!(service.rows("hourly_sales_live").await[0]["orders"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_disk_of_a_private_postgres_is_among_the_metrics() {
    let (_data, service, _session) = service_alone().await;
    let text = service.get("/metrics").await.body;
    let scrape = crate::support::Scrape::read(text.as_str().unwrap());
    let free = scrape.value(r#"tillmark_data_disk_bytes{state="free"}"#);
    let total = scrape.value(r#"tillmark_data_disk_bytes{state="total"}"#);
    assert!(0.0 < free && free < total, "{free} of {total}");
    let nearly_full = scrape.value(r#"tillmark_degraded{reason="disk_nearly_full"}"#) > 0.0;
    assert_eq!(nearly_full, free < total / 20.0 && free < 5.0 * 1_073_741_824.0);
}
