//! Cheap reads beside a bare axum handler with the same answer, in one run, while events come in; on the
//! real binary with its private Postgres (fsync and synchronous_commit on): `cargo bench --bench reads`.
//!
//! The load is made by `wrk` (Debian: `apt-get install wrk`). Everything goes over loopback, is bounded
//! in count and time, and ends by itself.
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

use axum::Router;
use axum::body::Bytes;
use axum::http::{StatusCode, header};
use axum::routing::get;
use serde_json::{Value, json};
use support::TestService;
use tokio::process::{Child, Command};

const MEASURED: &str = "3s";
const CONNECTIONS: u32 = 128;
/// Single events a second while everything is measured.
const INGEST_RATE: &str = "500";
const INGEST_FOR: &str = "150 seconds";
const ROUNDS: usize = 9;

#[tokio::main]
async fn main() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut service =
        TestService::start_with(&[("TILLMARK_DATA_DIR", data.to_str().unwrap())]).await;
    let day = a_day_of_sales(&service).await;
    // Events that come in are placed: of this query they move the position alone.
    let still = format!("/v1/hourly-sales?query=refunds&{day}");
    let live = format!("/v1/hourly-sales?query=hourly_sales_live&{day}");
    let kept = service.get(&still).await;
    assert_eq!(kept.body["rows"].as_array().unwrap().len(), 24);
    let tag = kept.header("etag").to_owned();
    let bytes = service.client.get(service.url(&live)).send().await.unwrap().bytes().await.unwrap();
    println!("an answer: {} bytes; {CONNECTIONS} connections, {INGEST_RATE} events/s", bytes.len());
    let bare = bare_handlers(bytes).await;

    let mut ingest = start_ingest(&service);
    let known = format!("if-none-match: {tag}");
    // The machine's speed changes from minute to minute, so each round is short and has its own reference.
    let (mut read, mut not_modified) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let reference = wrk(&format!("{bare}/same"), &[]).await;
        read.push((wrk(&service.url(&live), &[]).await, reference));
        let reference = wrk(&format!("{bare}/known"), &[&known]).await;
        not_modified.push((wrk(&service.url(&still), &[&known]).await, reference));
    }
    report("24 hours, new with every micro-batch", &read);
    report("24 hours, 304", &not_modified);
    let gzip = wrk(&service.url(&live), &["accept-encoding: gzip"]).await;
    println!("24 hours, gzip: {gzip}");
    let still_running = ingest.try_wait().unwrap().is_none();
    assert!(still_running, "events came in all the time");
    assert!(ingest.wait().await.unwrap().success(), "and were answered");
    service.terminate().await;
}

/// Prints every round, and the medians.
fn report(what: &str, rounds: &[(Load, Load)]) {
    for (seen, reference) in rounds {
        let ratio = seen.of(reference);
        println!("{what}: {seen}; a bare handler: {reference}; ratio {ratio:.2}");
    }
    let median = |value: fn(&(Load, Load)) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let [seen, reference] = [
        median(|(seen, _)| seen.requests_per_second),
        median(|(_, reference)| reference.requests_per_second),
    ];
    let ratio = median(|(seen, reference)| seen.of(reference));
    println!("{what}, medians: {seen:.0} of {reference:.0} requests/s; ratio {ratio:.2}");
}

/// 24 hours until now, each with a sale and a refund; answers the range as parameters.
async fn a_day_of_sales(service: &TestService) -> String {
    let refunds = json!({
        "filter": {"status": ["refunded"]}, "window": {"kind": "tumbling", "size": "1 hour"},
        "watermark_delay": "1 hour", "output_mode": "update",
    });
    assert_eq!(service.put("/v1/queries/refunds", refunds).await.status, 201);
    let hour_us = 3_600_000_000;
    let now = tillmark::clock::now().as_micros();
    let this_hour = now - now.rem_euclid(hour_us);
    let clock = |hours: i64| {
        tillmark::domain::EventTime::from_micros(this_hour + hours * hour_us).to_string()
    };
    let events = (-23..=0).flat_map(|hour| {
        ["placed", "refunded"].map(|status| {
            json!({
                "event_id": format!("{status}-{hour}"), "order_id": hour, "status": status,
                "amount": "12.34", "event_time": clock(hour),
            })
        })
    });
    service.post_events(&events.collect::<Vec<Value>>()).await;
    for query in ["refunds", "hourly_sales_live"] {
        service.run(query).await;
        service.wait_until_idle(query).await;
    }
    format!("from={}&to={}", clock(-23), clock(1))
}

/// Handlers that only answer, on a port of their own.
async fn bare_handlers(bytes: Bytes) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let head = [(header::CONTENT_TYPE, "application/json")];
    let routes = Router::new()
        .route("/same", get(async move || (head, bytes)))
        .route("/known", get(async || StatusCode::NOT_MODIFIED));
    tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    format!("http://{address}")
}

fn start_ingest(service: &TestService) -> Child {
    Command::new(env!("CARGO_BIN_EXE_tillmark"))
        .args(["bench", "ingest", "--connections", "16", "--rate", INGEST_RATE])
        .args(["--duration", INGEST_FOR, "--url", &service.base])
        .stdout(std::process::Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

/// What `wrk` says of one address.
struct Load {
    requests_per_second: f64,
    p99: String,
}

impl Load {
    fn of(&self, reference: &Self) -> f64 {
        self.requests_per_second / reference.requests_per_second
    }
}

impl std::fmt::Display for Load {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.0} requests/s, p99 {}", self.requests_per_second, self.p99)
    }
}

async fn wrk(url: &str, headers: &[&str]) -> Load {
    let connections = CONNECTIONS.to_string();
    let mut command = Command::new("wrk");
    command.args(["--latency", "-t", "1", "-c", &connections, "-d", MEASURED]);
    for header in headers {
        command.args(["-H", header]);
    }
    let output = command.arg(url).output().await.expect("wrk is installed (apt-get install wrk)");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains("Non-2xx") && !text.contains("Socket errors"), "{url}: {text}");
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(name));
        line.unwrap_or_else(|| panic!("{text}")).trim().to_owned()
    };
    Load { requests_per_second: value("Requests/sec:").parse().unwrap(), p99: value("99%") }
}
