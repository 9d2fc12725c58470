//! The figures of `docs/PERFORMANCE.md`, measured on the real binary with its private Postgres
//! (fsync and synchronous_commit on): `cargo bench --bench figures`.
//!
//! Everything goes over loopback, is bounded in count and time, and ends by itself.
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

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::TestService;

const MEASURED: Duration = Duration::from_secs(10);
const FRESHNESS_POSTS: u64 = 500;

#[tokio::main]
async fn main() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let data = data.to_str().unwrap();
    let settings = [("TILLMARK_DATA_DIR", data)];

    let started = Instant::now();
    let mut service = TestService::start_with(&settings).await;
    println!("start, cold: {} ms until ready", started.elapsed().as_millis());
    service.terminate().await;
    let started = Instant::now();
    let mut service = TestService::start_with(&settings).await;
    println!("start, warm: {} ms until ready", started.elapsed().as_millis());

    let idle = resident_mib(&service);
    freshness(&service).await;
    let single = throughput(&service, 64, 1).await;
    println!("single events, 64 connections: {single:.0} events/s answered");
    let batches = throughput(&service, 4, 1_000).await;
    println!("batches of 1,000 events, 4 connections: {batches:.0} events/s answered");
    println!(
        "resident memory of the service: {idle} MiB idle, {} MiB after the load",
        resident_mib(&service)
    );
    assert_nothing_unexplained(&service).await;
    service.terminate().await;
}

fn event(number: u64) -> Value {
    json!({
        "event_id": format!("till-{}-{number}", number % 7), "order_id": number, "status": "placed",
        "amount": "12.34", "store_id": format!("S{}", number % 20),
        "event_time": format!("2026-10-01T09:{:02}:{:02}Z", number / 60 % 60, number % 60),
    })
}

static NEXT_EVENT: AtomicU64 = AtomicU64::new(0);

fn next_events(count: u64) -> Value {
    let first = NEXT_EVENT.fetch_add(count, Ordering::Relaxed);
    if count == 1 { event(first) } else { (first..first + count).map(event).collect() }
}

/// Closed loop: each connection posts again as soon as it has its answer.
async fn throughput(service: &TestService, connections: usize, batch: u64) -> f64 {
    let answered = Arc::new(AtomicU64::new(0));
    let started = Instant::now();
    let posts = (0..connections).map(|_| {
        let (client, url, answered) =
            (service.client.clone(), service.url("/v1/events"), Arc::clone(&answered));
        tokio::spawn(async move {
            while started.elapsed() < MEASURED {
                let answer = client.post(&url).json(&next_events(batch)).send().await.unwrap();
                assert_eq!(answer.status(), 200);
                answered.fetch_add(batch, Ordering::Relaxed);
            }
        })
    });
    for post in posts.collect::<Vec<_>>() {
        post.await.unwrap();
    }
    #[expect(clippy::cast_precision_loss, reason = "a rate to print")]
    let count = answered.load(Ordering::Relaxed) as f64;
    count / started.elapsed().as_secs_f64()
}

/// From a till's answer to the moment that `hourly_sales_live` shows its event.
async fn freshness(service: &TestService) {
    let mut waits = Vec::new();
    for posted in 1..=FRESHNESS_POSTS {
        let answer = service.post("/v1/events", next_events(1)).await;
        assert_eq!(answer.status, 200);
        let answered = Instant::now();
        while orders_shown(service).await < posted {
            assert!(answered.elapsed() < Duration::from_secs(10), "the event was never shown");
        }
        waits.push(answered.elapsed());
    }
    waits.sort_unstable();
    let quantile =
        |share: usize| waits[(waits.len() * share / 100).min(waits.len() - 1)].as_micros();
    println!(
        "answered to visible in hourly_sales_live: p50 {} us, p99 {} us",
        quantile(50),
        quantile(99)
    );
}

async fn orders_shown(service: &TestService) -> u64 {
    let shown = service.get("/v1/hourly-sales?query=hourly_sales_live").await.body;
    shown["rows"].as_array().unwrap().iter().map(|row| row["orders"].as_u64().unwrap()).sum()
}

fn resident_mib(service: &TestService) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", service.process_id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

async fn assert_nothing_unexplained(service: &TestService) {
    service.wait_until_idle("hourly_sales").await;
    let report = service.get("/v1/reconciliation").await.body;
    assert_eq!(report["unexplained"], 0, "{report}");
}
