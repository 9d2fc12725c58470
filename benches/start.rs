//! How long the service takes from its exec to ready beside a large log and many queries:
//! `cargo bench --bench start`; `TILLMARK_START_EVENTS=1000000` before it for a log of another size.
//!
//! Postgres runs already and is not started anew, so what is measured is the service's own start. Every
//! query has read the whole log and has open windows. Everything goes over loopback and ends by itself.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a measurement fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock and its own size")]
#![allow(
    unreachable_pub,
    dead_code,
    unused_imports,
    reason = "the support module is shared with the tests"
)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use support::TestService;
use tillmark::embedded::{EmbeddedPostgres, EmbeddedSettings};

const QUERIES: u32 = 1_000;
/// Posted after the queries were made, so that each has windows and groups in its state.
const POSTED: u32 = 1_000;
const RUNS: u32 = 3;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let settings = EmbeddedSettings {
        data_dir: Some(folder.path().join("data")),
        search_path: Some("/usr/bin:/usr/local/bin".into()),
        ..EmbeddedSettings::default()
    };
    let postgres = EmbeddedPostgres::start(&settings).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(measure(postgres.url()));
    postgres.stop().unwrap();
}

async fn measure(url: &str) {
    let events: u32 =
        std::env::var("TILLMARK_START_EVENTS").map_or(10_000_000, |text| text.parse().unwrap());
    let settings = [("DATABASE_URL", url), ("TILLMARK_LOG", "warn")];
    let mut service = TestService::start_with(&settings).await;
    for query in ["hourly_sales", "hourly_sales_live"] {
        service.post(&format!("/v1/queries/{query}/pause"), json!({})).await;
    }
    let mut conn = PgConnection::connect(url).await.unwrap();
    fill(&mut conn, events).await;
    for number in 0..QUERIES {
        let answer = service.put(&format!("/v1/queries/q{number}"), rule(number)).await;
        assert_eq!(answer.status, 201, "{}", answer.body);
    }
    post(&service, 0, POSTED).await;
    wait_until_all_have_read(&mut conn).await;
    assert!(service.get("/v1/queries/q0").await.body["open_windows"].as_u64().unwrap() > 0);
    println!("{events} events, {QUERIES} queries");
    for run in 1..=RUNS {
        service.terminate().await;
        let started = Instant::now();
        service = TestService::start_with(&settings).await;
        let ready = started.elapsed();
        post(&service, POSTED + run, 1).await;
        let posted = started.elapsed();
        wait_until_all_have_read(&mut conn).await;
        println!(
            "from exec to ready: {ready:.0?}; to the first post answered: {posted:.0?}; until every query \
             has read it: {:.1?}",
            started.elapsed()
        );
    }
    service.terminate().await;
}

fn rule(number: u32) -> Value {
    json!({
        "filter": {"status": ["placed"]}, "window": {"kind": "tumbling", "size": "1 hour"},
        "watermark_delay": "1 hour", "group_by": ["store_id"], "start": "latest",
        "output_mode": if number.is_multiple_of(2) { "append" } else { "update" },
    })
}

/// Events of a year before those that are posted.
async fn fill(conn: &mut PgConnection, events: u32) {
    let insert = format!(
        "create table if not exists raw_events_p00001 partition of raw_events
             for values from (10000000) to (20000000);
         insert into raw_events (seq, received_at, event_id, order_id, status, amount, currency,
             event_time, store_id, till_id)
         select nextval('raw_events_seq'), now(), 'event-' || n, 'order-' || n, 'placed',
             (n % 10000)::numeric / 100, 'USD',
             timestamptz '2026-10-01T00:00Z' - interval '365 days' * (1 - n::float8 / {events}),
             'S' || n % 20, 'till-' || n % 7
         from generate_series(1::bigint, {events}) n"
    );
    sqlx::raw_sql(AssertSqlSafe(insert)).execute(&mut *conn).await.unwrap();
    sqlx::raw_sql("vacuum analyze raw_events").execute(conn).await.unwrap();
}

async fn post(service: &TestService, first: u32, count: u32) {
    let events: Vec<Value> = (first..first + count)
        .map(|number| {
            json!({
                "event_id": format!("posted-{number}"), "order_id": number, "status": "placed",
                "amount": "12.34", "store_id": format!("S{}", number % 20),
                "event_time": format!("2026-10-01T{:02}:{:02}:00Z", 8 + number / 60 % 3, number % 60),
            })
        })
        .collect();
    service.post_events(&events).await;
}

/// Waits until the stored position of every query is the end of the log.
async fn wait_until_all_have_read(conn: &mut PgConnection) {
    for _ in 0..12_000 {
        let behind: i64 = sqlx::query_scalar(
            "select count(*) from queries where name like 'q%' and position < (select max(seq) from raw_events)",
        )
        .fetch_one(&mut *conn)
        .await
        .unwrap();
        if behind == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the queries did not read everything within two minutes");
}
