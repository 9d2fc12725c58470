//! What finance fetches at the size of a real shop's history, on the real binary with its private
//! Postgres (fsync and synchronous_commit on): `cargo bench --bench finance`.
//!
//! The reference for a recount is psql's own bare `group by` over the same table in the same run, that
//! for the advice one replay of the same events. Everything goes over loopback, is bounded in count and
//! time, and ends by itself; the data folder goes with it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a measurement fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]
#![allow(
    unreachable_pub,
    dead_code,
    unused_imports,
    reason = "the support module is shared with the tests"
)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use support::TestService;

const EVENTS: u32 = 10_000_000;
const RUNS: usize = 3;
const DAY_RUNS: usize = 9;
const BARE: &str = "select date_trunc('hour', event_time), count(*), sum(amount) from raw_events
    where status = 'placed' group by 1";
/// The recount's own statement is measured beside the whole report.
const RECOUNT: &str =
    "select date_bin('1 hour', event_time, '1900-01-01T00:00Z') as window_start, currency,
        count(*), sum(amount), count(*) filter (where seq > 10000000),
        coalesce(sum(amount) filter (where seq > 10000000), 0)
    from raw_events where kind = 'event' and seq > 0 and status = any('{placed}')
    group by window_start, currency";
const DAY: &str = "from=2026-03-01T00:00:00Z&to=2026-03-02T00:00:00Z";
const DELAYS: &str = "1 minute,5 minutes,15 minutes,1 hour,6 hours,1 day";

#[tokio::main]
async fn main() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let settings =
        [("TILLMARK_DATA_DIR", data.to_str().unwrap()), ("TILLMARK_REQUEST_TIMEOUT", "5 minutes")];
    let mut service = TestService::start_with(&settings).await;
    let url = std::fs::read_to_string(data.join("postgres.url")).unwrap().trim().to_owned();
    for query in ["hourly_sales", "hourly_sales_live"] {
        service.post(&format!("/v1/queries/{query}/pause"), json!({})).await;
    }
    fill(&url).await;
    let rule = json!({
        "filter": {"status": ["placed"]}, "window": {"kind": "tumbling", "size": "1 hour"},
        "watermark_delay": "1 hour", "output_mode": "append", "trigger": {"kind": "manual"},
        "max_events_per_batch": 100_000,
    });
    service.put("/v1/queries/year", rule).await;
    let replay = timed(async || {
        service.run("year").await;
    })
    .await;
    println!("one replay of {EVENTS} events, committed: {replay:.2?}");

    let (mut bare, mut recount, mut full) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        bare.push(psql(&url, BARE));
        recount.push(psql(&url, RECOUNT));
        full.push(timed(async || reconcile(&service, "").await).await);
    }
    let bare = median(&mut bare);
    println!("psql, bare group by: {bare:.2?}");
    against("the recount's statement in psql", median(&mut recount), bare);
    against("full reconciliation over HTTP", median(&mut full), bare);

    let mut day = Vec::new();
    for _ in 0..DAY_RUNS {
        day.push(timed(async || reconcile(&service, DAY).await).await);
    }
    println!("reconciliation of one day: {:.2?}", median(&mut day));

    let mut advice = Vec::new();
    for _ in 0..RUNS {
        advice.push(timed(async || advise(&service).await).await);
    }
    against("delay advice with 6 delays, of one replay", median(&mut advice), replay);
    let lateness = async || {
        let answer = service.get(&format!("/v1/queries/year/lateness?{DAY}")).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
    };
    println!("lateness of one day by store: {:.2?}", timed(lateness).await);
    service.terminate().await;
}

/// Events of a year from 50 stores, in the order of their times but for a little disorder.
async fn fill(url: &str) {
    let mut conn = PgConnection::connect(url).await.unwrap();
    let fill = format!(
        "create table if not exists raw_events_p00001 partition of raw_events
             for values from (10000000) to (20000000);
         insert into raw_events (seq, received_at, event_id, order_id, status, amount, currency,
             event_time, store_id, till_id)
         select nextval('raw_events_seq'), time + interval '2 seconds', 'event-' || n, 'order-' || n, 'placed',
             (n % 10000)::numeric / 100, 'USD', time - (n * 7919 % 600) * interval '1 second',
             'S' || n % 50, 'till-' || n % 7
         from (select n, timestamptz '2025-10-01T00:00Z' + n * interval '3 seconds' as time
             from generate_series(1::bigint, {EVENTS}) n) n"
    );
    sqlx::raw_sql(AssertSqlSafe(fill)).execute(&mut conn).await.unwrap();
    sqlx::raw_sql("vacuum analyze raw_events").execute(&mut conn).await.unwrap();
}

fn psql(url: &str, statement: &str) -> Duration {
    let started = Instant::now();
    let status = Command::new("psql")
        .args([url, "--quiet", "--command", statement])
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    started.elapsed()
}

async fn reconcile(service: &TestService, range: &str) {
    let answer = service.get(&format!("/v1/queries/year/reconciliation?{range}")).await;
    assert_eq!((answer.status, &answer.body["unexplained"]), (200, &json!(0)));
}

async fn advise(service: &TestService) {
    let answer = service.get(&format!("/v1/queries/year/delay-advice?delays={DELAYS}")).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.body["delays"][5]["events_in"], EVENTS);
}

async fn timed(work: impl AsyncFnOnce()) -> Duration {
    let started = Instant::now();
    work().await;
    started.elapsed()
}

fn against(what: &str, took: Duration, reference: Duration) {
    println!("{what}: {took:.2?}; ratio {:.2}", took.as_secs_f64() / reference.as_secs_f64());
}

fn median(values: &mut [Duration]) -> Duration {
    values.sort_unstable();
    values[values.len() / 2]
}
