//! What finance fetches at the size of a real shop's history, on the real binary with its private
//! Postgres (fsync and synchronous_commit on): `cargo bench --bench finance`. `TILLMARK_BENCH_EVENTS` sets
//! another size than ten million events.
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

const EVENTS_DEFAULT: u64 = 10_000_000;
const RUNS: usize = 3;
const DAY_RUNS: usize = 9;
const BARE: &str = "select date_trunc('hour', event_time), count(*), sum(amount) from raw_events
    where status = 'placed' group by 1";
/// The recount's own statement is measured beside the whole report.
const RECOUNT: &str =
    "select date_bin('1 hour', event_time, '1900-01-01T00:00Z') as window_start, currency,
        count(*), sum(amount), count(*) filter (where seq > 100000000),
        coalesce(sum(amount) filter (where seq > 100000000), 0)
    from raw_events where kind = 'event' and seq > 0 and status = any('{placed}')
    group by window_start, currency";
const STORES: u32 = 50;
const YEAR_HOURS: u32 = 8_760;
/// One table, three views of it.
const VIEWS: [&str; 3] =
    ["view=stream", "view=corrected", "granularity=P1D&time_zone=Europe/Lisbon"];
const DELAYS: &str = "1 minute,5 minutes,15 minutes,1 hour,6 hours,1 day";

#[tokio::main]
async fn main() {
    let events = std::env::var("TILLMARK_BENCH_EVENTS").ok();
    let events = events.map_or(EVENTS_DEFAULT, |events| events.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let settings =
        [("TILLMARK_DATA_DIR", data.to_str().unwrap()), ("TILLMARK_REQUEST_TIMEOUT", "5 minutes")];
    let mut service = TestService::start_with(&settings).await;
    let url = std::fs::read_to_string(data.join("postgres.url")).unwrap().trim().to_owned();
    for query in ["hourly_sales", "hourly_sales_live"] {
        service.post(&format!("/v1/queries/{query}/pause"), json!({})).await;
    }
    fill(&url, events).await;
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
    println!("one replay of {events} events, committed: {replay:.2?}");
    recounts(&service, &url).await;

    let day = day_in_the_middle(&url).await;
    let reconciled = often(async || reconcile(&service, &day).await).await;
    println!("reconciliation of one day: {reconciled:.2?}");
    for by in ["store_id", "till_id"] {
        let measured = often(async || lateness(&service, &format!("{day}&by={by}")).await).await;
        println!("lateness of one day by {by}: {measured:.2?}");
    }

    let mut advice = Vec::new();
    for _ in 0..RUNS {
        advice.push(timed(async || advise(&service, events).await).await);
    }
    against("delay advice with 6 delays, of one replay", median(&mut advice), replay);
    csv_of_a_year(&service, &url).await;
    service.terminate().await;
}

async fn recounts(service: &TestService, url: &str) {
    let (mut bare, mut recount, mut full) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        bare.push(psql(url, BARE));
        recount.push(psql(url, RECOUNT));
        full.push(timed(async || reconcile(service, "").await).await);
    }
    let bare = median(&mut bare);
    println!("psql, bare group by: {bare:.2?}");
    against("the recount's statement in psql", median(&mut recount), bare);
    against("full reconciliation over HTTP", median(&mut full), bare);
}

/// A year of hourly rows, fetched as CSV in every view; what the service needs for it in memory.
async fn csv_of_a_year(service: &TestService, url: &str) {
    let rule = json!({
        "window": {"kind": "tumbling", "size": "1 hour"}, "watermark_delay": "1 hour",
        "group_by": ["store_id"], "output_mode": "append", "trigger": {"kind": "manual"},
    });
    service.put("/v1/queries/stores", rule).await;
    let rows = format!(
        "insert into window_rows (query_id, window_start, window_end, currency, group_keys, orders, revenue,
             batch_id, closed_by)
         select query_id, hour, hour + interval '1 hour', 'EUR', format('[\"S%s\"]', store), 3, 68.5, 1,
             'watermark'
         from queries, generate_series(timestamptz '2025-01-01T00:00Z',
                 timestamptz '2025-01-01T00:00Z' + interval '1 hour' * {}, interval '1 hour') hour,
             generate_series(1, {STORES}) store
         where name = 'stores'",
        YEAR_HOURS - 1
    );
    let mut conn = PgConnection::connect(url).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(rows)).execute(&mut conn).await.unwrap();
    sqlx::raw_sql("vacuum analyze window_rows").execute(&mut conn).await.unwrap();
    for view in VIEWS {
        std::fs::write(format!("/proc/{}/clear_refs", service.process_id()), "5").unwrap();
        let before = memory_kib(service, "VmRSS:");
        let mut bytes = 0;
        let took = timed(async || {
            let path = service.url(&format!("/v1/queries/stores/windows?format=csv&{view}"));
            let mut answer = reqwest::get(path).await.unwrap();
            assert_eq!(answer.status(), 200);
            while let Some(chunk) = answer.chunk().await.unwrap() {
                bytes += chunk.len();
            }
        })
        .await;
        let grown = memory_kib(service, "VmHWM:").saturating_sub(before);
        println!(
            "CSV of {} hourly rows, {view}: {took:.2?}, {bytes} bytes, {grown} KiB more memory at most",
            YEAR_HOURS * STORES
        );
    }
}

/// What the service has in memory now, or the most it ever had since the last reset (Linux tells).
fn memory_kib(service: &TestService, which: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", service.process_id())).unwrap();
    let line = status.lines().find(|line| line.starts_with(which)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Events of a year from 50 stores, in the order of their times but for a little disorder.
async fn fill(url: &str, events: u64) {
    let mut conn = PgConnection::connect(url).await.unwrap();
    let fill = format!(
        "create table if not exists raw_events_p00001 partition of raw_events
             for values from (10000000) to (20000000);
         insert into raw_events (seq, received_at, event_id, order_id, status, amount, currency,
             event_time, store_id, till_id)
         select nextval('raw_events_seq'), time + interval '2 seconds', 'event-' || n, 'order-' || n, 'placed',
             (n % 10000)::numeric / 100, 'USD', time - (n * 7919 % 600) * interval '1 second',
             'S' || n % {STORES}, 'till-' || n % 7
         from (select n, timestamptz '2025-10-01T00:00Z' + n * interval '3 seconds' as time
             from generate_series(1::bigint, {events}) n) n"
    );
    sqlx::raw_sql(AssertSqlSafe(fill)).execute(&mut conn).await.unwrap();
    sqlx::raw_sql("vacuum analyze raw_events").execute(&mut conn).await.unwrap();
}

/// The day of UTC in which the event in the middle of the log happened, as a range.
async fn day_in_the_middle(url: &str) -> String {
    let mut conn = PgConnection::connect(url).await.unwrap();
    sqlx::query_scalar(
        "select format('from=%sT00:00:00Z&to=%sT00:00:00Z', day, day + 1)
         from (select (event_time at time zone 'UTC')::date as day from raw_events
             where seq = (select max(seq) / 2 from raw_events)) middle",
    )
    .fetch_one(&mut conn)
    .await
    .unwrap()
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

async fn lateness(service: &TestService, range: &str) {
    let answer = service.get(&format!("/v1/queries/year/lateness?{range}")).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(answer.body["total"]["disorder"]["count"].as_u64().unwrap() > 0);
}

async fn advise(service: &TestService, events: u64) {
    let answer = service.get(&format!("/v1/queries/year/delay-advice?delays={DELAYS}")).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.body["delays"][5]["events_in"], events);
}

async fn timed(work: impl AsyncFnOnce()) -> Duration {
    let started = Instant::now();
    work().await;
    started.elapsed()
}

/// The median of a few runs.
async fn often(work: impl AsyncFn()) -> Duration {
    let mut times = Vec::new();
    for _ in 0..DAY_RUNS {
        times.push(timed(&work).await);
    }
    median(&mut times)
}

fn against(what: &str, took: Duration, reference: Duration) {
    println!("{what}: {took:.2?}; ratio {:.2}", took.as_secs_f64() / reference.as_secs_f64());
}

fn median(values: &mut [Duration]) -> Duration {
    values.sort_unstable();
    values[values.len() / 2]
}
