//! A replay of the raw log, and how soon a dashboard sees an event, on the real binary with its
//! private Postgres (fsync and synchronous_commit on): `cargo bench --bench replay`.
//!
//! The reference for the replay is psql's own `copy … to stdout (format binary)` of the same columns
//! in the same run. Everything goes over loopback, is bounded in count and time, and ends by itself.
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

use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use support::TestService;

const EVENTS: u32 = 5_000_000;
const RUNS: usize = 3;
const FRESHNESS_RATE: u32 = 1_000;
const FRESHNESS_POSTS: u32 = 10_000;

#[tokio::main]
async fn main() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let settings =
        [("TILLMARK_DATA_DIR", data.to_str().unwrap()), ("TILLMARK_REQUEST_TIMEOUT", "5 minutes")];
    let mut service = TestService::start_with(&settings).await;
    let url = std::fs::read_to_string(data.join("postgres.url")).unwrap().trim().to_owned();
    freshness(&service).await;
    for query in ["hourly_sales", "hourly_sales_live"] {
        service.post(&format!("/v1/queries/{query}/pause"), json!({})).await;
    }
    fill(&url).await;
    let rule = json!({
        "filter": {"status": ["placed"]}, "window": {"kind": "tumbling", "size": "1 hour"},
        "watermark_delay": "1 hour", "output_mode": "append", "trigger": {"kind": "manual"},
        "max_events_per_batch": 100_000,
    });
    service.put("/v1/queries/replay", rule).await;
    let (mut replays, mut copies) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        copies.push(copy_out(&url));
        replays.push(replay(&service).await);
    }
    let (replay, copy) = (median(&mut replays), median(&mut copies));
    println!("replay of {EVENTS} events, batches of 100,000, committed: {replay:.0} events/s");
    println!("psql copy of the same columns: {copy:.0} rows/s; ratio {:.2}", replay / copy);
    let report = service.get("/v1/queries/replay/reconciliation").await.body;
    assert_eq!(report["unexplained"], 0);
    service.terminate().await;
}

/// Events of a year, one store, in the order of their times but for a little disorder.
async fn fill(url: &str) {
    let mut conn = PgConnection::connect(url).await.unwrap();
    let insert = format!(
        "insert into raw_events (seq, received_at, event_id, order_id, status, amount, currency,
             event_time, store_id, till_id)
         select nextval('raw_events_seq'), now(), 'event-' || n, 'order-' || n, 'placed',
             (n % 10000)::numeric / 100, 'USD',
             timestamptz '2025-10-01T00:00Z' + n * interval '6 seconds' - (n * 7919 % 600) * interval '1 second',
             'S1', 'till-' || n % 7
         from generate_series(1::bigint, {EVENTS}) n"
    );
    sqlx::raw_sql(AssertSqlSafe(insert)).execute(&mut conn).await.unwrap();
    sqlx::raw_sql("vacuum analyze raw_events").execute(&mut conn).await.unwrap();
}

/// Rows per second of psql writing the columns that the query reads to nowhere.
fn copy_out(url: &str) -> f64 {
    let copy = "copy (select seq, event_time, amount, quiet_ms, currency, status from raw_events order by seq)
        to stdout (format binary)";
    let started = Instant::now();
    let status = Command::new("psql")
        .args([url, "--quiet", "--command", copy])
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    rate(EVENTS, started.elapsed())
}

/// Events per second of the query from its reset to its last commit.
async fn replay(service: &TestService) -> f64 {
    service.post("/v1/queries/replay/reset", json!({})).await;
    let started = Instant::now();
    let ran = service.run("replay").await;
    let elapsed = started.elapsed();
    let part = |name: &str| -> f64 {
        ran.iter().map(|entry| entry["duration_ms"][name].as_f64().unwrap()).sum::<f64>() / 1e3
    };
    println!(
        "  {} batches in {elapsed:.2?}: read {:.2} s, compute {:.2} s, commit {:.2} s",
        ran.len(),
        part("read"),
        part("compute"),
        part("commit")
    );
    rate(EVENTS, elapsed)
}

fn rate(count: u32, elapsed: Duration) -> f64 {
    f64::from(count) / elapsed.as_secs_f64()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Posts single events at a constant rate; from each answer to the moment that the row of
/// `hourly_sales_live` in the database holds the event, seen by a reader that never stops asking.
async fn freshness(service: &TestService) {
    let mut answered = Vec::new();
    let mut posts = tokio::task::JoinSet::new();
    let mut clock = tokio::time::interval(Duration::from_secs(1) / FRESHNESS_RATE);
    let watcher = {
        let (client, url) =
            (service.client.clone(), service.url("/v1/hourly-sales?query=hourly_sales_live"));
        tokio::spawn(async move {
            let mut seen: Vec<(u64, Instant)> = Vec::new();
            while seen.last().is_none_or(|(orders, _)| *orders < u64::from(FRESHNESS_POSTS)) {
                let text = client.get(&url).send().await.unwrap().text().await.unwrap();
                let shown: Value = serde_json::from_str(&text).unwrap();
                let orders = shown["rows"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|row| row["orders"].as_u64().unwrap())
                    .sum();
                if seen.last().is_none_or(|(last, _)| *last < orders) {
                    seen.push((orders, Instant::now()));
                }
            }
            seen
        })
    };
    for number in 0..FRESHNESS_POSTS {
        clock.tick().await;
        let (client, url) = (service.client.clone(), service.url("/v1/events"));
        posts.spawn(async move {
            let event = json!({
                "event_id": format!("fresh-{number}"), "order_id": number, "status": "placed",
                "amount": "12.34", "event_time": "2025-09-01T09:00:00Z",
            });
            let answer = client.post(&url).json(&event).send().await.unwrap();
            assert_eq!(answer.status(), 200);
            Instant::now()
        });
    }
    while let Some(at) = posts.join_next().await {
        answered.push(at.unwrap());
    }
    answered.sort_unstable();
    let seen = watcher.await.unwrap();
    // The n-th answer is visible once n events are shown: an upper bound for each event.
    let mut waits: Vec<Duration> = answered
        .iter()
        .enumerate()
        .map(|(index, at)| {
            let (_, shown) = seen.iter().find(|(orders, _)| *orders > index as u64).unwrap();
            shown.saturating_duration_since(*at)
        })
        .collect();
    waits.sort_unstable();
    let quantile = |share: usize| waits[waits.len() * share / 100].as_secs_f64() * 1e3;
    println!(
        "answered to visible in hourly_sales_live at {FRESHNESS_RATE} single events/s: p50 {:.1} ms, p99 {:.1} ms",
        quantile(50),
        quantile(99)
    );
}
