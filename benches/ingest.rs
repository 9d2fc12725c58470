//! Ingest beside what Postgres itself takes, in one run, on the real binary with its private
//! Postgres (fsync and synchronous_commit on): `cargo bench --bench ingest`.
//!
//! `TILLMARK_BENCH_EVENTS` says how many events stand in the log for the last comparison (ten million
//! unless set; 0 leaves it out). Everything goes over loopback, is bounded in count and time, and
//! ends by itself.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a measurement fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock and its settings")]
#![allow(
    unreachable_pub,
    dead_code,
    unused_imports,
    reason = "the support module is shared with the tests"
)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use futures_util::TryStreamExt;
use serde_json::{Value, json};
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use support::TestService;

const MEASURED: &str = "6 seconds";
const INSERTS_FOR: Duration = Duration::from_secs(6);
/// "PGCOPY\n\377\r\n\0", flags and the length of the extension: what a binary copy begins with.
const COPY_HEADER_BYTES: usize = 19;
const COPY_ROWS: usize = 10_000;
const ROUNDS: usize = 5;

#[tokio::main]
async fn main() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let service = TestService::start_with(&[("TILLMARK_DATA_DIR", data.to_str().unwrap())]).await;
    let url = std::fs::read_to_string(data.join("postgres.url")).unwrap().trim().to_owned();
    let mut conn = PgConnection::connect(&url).await.unwrap();
    make_reference_table(&mut conn).await;

    // The machine's speed changes from minute to minute, so each round has its own reference.
    let (mut batches, mut copied) = (Vec::new(), Vec::new());
    let (mut single, mut many, mut inserted) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        batches.push(load(&service, "--batch 1000 --connections 4 --format ndjson").await);
        copied.push(copy_reference(&mut conn).await);
    }
    for _ in 0..ROUNDS {
        single.push(load(&service, "--connections 64").await);
        inserted.push(insert_reference(&url).await);
        many.push(load(&service, "--connections 512").await);
    }
    println!("medians of {ROUNDS} rounds, and the ratios of all");
    println!("COPY BINARY of the same rows, {COPY_ROWS} a transaction: {} rows/s", median(&copied));
    tell("batches of 1,000 NDJSON, 4 connections", &batches, &copied);
    println!("one INSERT a transaction, 64 connections: {} rows/s", median(&inserted));
    tell("single events, 64 connections", &single, &inserted);
    tell("single events, 512 connections", &many, &inserted);
    let half = median(&single).max(median(&many)) / 2;

    // What the loads before have left for the system to write would hold up commits half a minute later.
    sqlx::raw_sql("checkpoint").execute(&mut conn).await.unwrap();
    let open = run(&service, &format!("--connections 256 --rate {}", half.max(1))).await;
    println!(
        "single events, open loop at {half}/s: {} events/s; latency {}",
        open["events_answered_per_second"], open["latency_us"]
    );
    println!("resident memory of the service, at most: {} MiB", peak_mib(&service));

    let events: u32 = std::env::var("TILLMARK_BENCH_EVENTS")
        .map_or(10_000_000, |text| text.parse().expect("TILLMARK_BENCH_EVENTS is a number"));
    if events > 0 {
        fill(&service, &mut conn, events).await;
        let data = folder.path().join("empty");
        let mut empty =
            TestService::start_with(&[("TILLMARK_DATA_DIR", data.to_str().unwrap())]).await;
        let (mut full, mut reference) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            full.push(load(&service, "--batch 1000 --connections 4 --format ndjson").await);
            reference.push(load(&empty, "--batch 1000 --connections 4 --format ndjson").await);
        }
        empty.terminate().await;
        println!("the same batches with a log that was empty: {} events/s", median(&reference));
        tell(&format!("batches of 1,000 with {events} events in the log"), &full, &reference);
    }
    let mut service = service;
    service.terminate().await;
}

/// A run of `tillmark bench ingest`, which also checks that every answered event is in the log once.
async fn run(service: &TestService, arguments: &str) -> Value {
    let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_tillmark"))
        .args(["bench", "ingest", "--json", "--duration", MEASURED, "--url", &service.base])
        .args(arguments.split(' '))
        .output()
        .await
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report as JSON");
    assert!(output.status.success(), "{report} {}", String::from_utf8_lossy(&output.stderr));
    report
}

async fn load(service: &TestService, arguments: &str) -> u64 {
    run(service, arguments).await["events_answered_per_second"].as_u64().unwrap()
}

fn median(rates: &[u64]) -> u64 {
    let mut rates = rates.to_vec();
    rates.sort_unstable();
    rates[rates.len() / 2]
}

fn tell(work: &str, rates: &[u64], references: &[u64]) {
    let mut ratios: Vec<String> = rates
        .iter()
        .zip(references)
        .map(|(rate, reference)| format!("{:.2}", ratio(*rate, *reference)))
        .collect();
    ratios.sort_unstable();
    println!("  {work}: {} events/s; ratios {}", median(rates), ratios.join(" "));
}

#[expect(clippy::cast_precision_loss, reason = "a ratio to print")]
fn ratio(one: u64, other: u64) -> f64 {
    one as f64 / other.max(1) as f64
}

fn rate(rows: usize, elapsed: Duration) -> u64 {
    u64::try_from(rows as u128 * 1_000_000 / elapsed.as_micros().max(1)).unwrap()
}

/// The same columns and indexes as the log, no check of what is there.
async fn make_reference_table(conn: &mut PgConnection) {
    let create = "create table reference_events (like raw_events including all);
        create unique index on reference_events (event_id);
        create sequence reference_seq";
    sqlx::raw_sql(create).execute(conn).await.unwrap();
}

/// Rows per second of copying the rows that are in the log into the reference table.
async fn copy_reference(conn: &mut PgConnection) -> u64 {
    sqlx::raw_sql("truncate reference_events").execute(&mut *conn).await.unwrap();
    let select =
        "copy (select * from raw_events order by seq limit 300000) to stdout (format binary)";
    let mut rows: Vec<Vec<u8>> = Vec::new();
    let mut messages = conn.copy_out_raw(select).await.unwrap();
    while let Some(message) = messages.try_next().await.unwrap() {
        // The header comes with the first row, the trailer alone.
        let skipped = if rows.is_empty() { COPY_HEADER_BYTES } else { 0 };
        if message.len() > skipped + 2 {
            rows.push(message[skipped..].to_vec());
        }
    }
    drop(messages);
    let started = Instant::now();
    for chunk in rows.chunks(COPY_ROWS) {
        let mut body = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0".to_vec();
        body.extend(chunk.concat());
        body.extend((-1_i16).to_be_bytes());
        let mut copy =
            conn.copy_in_raw("copy reference_events from stdin (format binary)").await.unwrap();
        copy.send(body).await.unwrap();
        copy.finish().await.unwrap();
    }
    rate(rows.len(), started.elapsed())
}

/// Rows per second of 64 connections that insert one row a transaction, as fast as they can.
async fn insert_reference(url: &str) -> u64 {
    let pool =
        PgPoolOptions::new().max_connections(64).min_connections(64).connect(url).await.unwrap();
    sqlx::raw_sql("truncate reference_events").execute(&pool).await.unwrap();
    let started = Instant::now();
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..64 {
        let pool = pool.clone();
        clients.spawn(async move {
            let mut conn = pool.acquire().await.unwrap();
            let mut inserted = 0_usize;
            while started.elapsed() < INSERTS_FOR {
                sqlx::query(
                    "insert into reference_events (seq, received_at, event_id, order_id, status, amount,
                         currency, event_time, store_id, till_id)
                     values (-nextval('reference_seq'), clock_timestamp(), $1, $2, 'placed', 12.34, 'USD',
                         '2026-10-01T09:05:00Z', 'S1', $3)",
                )
                .bind(format!("reference-{client}-{inserted}"))
                .bind(format!("order-{client}-{inserted}"))
                .bind(format!("till-{client}"))
                .execute(&mut *conn)
                .await
                .unwrap();
                inserted += 1;
            }
            inserted
        });
    }
    let mut inserted = 0;
    while let Some(rows) = clients.join_next().await {
        inserted += rows.unwrap();
    }
    let rows = rate(inserted, started.elapsed());
    pool.close().await;
    rows
}

/// Puts events into the log, with their ids, while no query reads.
async fn fill(service: &TestService, conn: &mut PgConnection, events: u32) {
    for query in ["hourly_sales", "hourly_sales_live"] {
        service.post(&format!("/v1/queries/{query}/pause"), json!({})).await;
    }
    let insert = format!(
        "with new_event as materialized (
             select nextval('raw_events_seq') as seq, 'filled-' || md5(n::text) as event_id, n
             from generate_series(1::bigint, {events}) n
         ), keys as (
             insert into event_keys (event_id, content_hash, seq)
             select event_id, decode(md5(event_id) || md5(event_id), 'hex'), seq from new_event
         )
         insert into raw_events (seq, received_at, event_id, order_id, status, amount, currency,
             event_time, store_id, till_id)
         select seq, now(), event_id, 'order-' || n, 'placed', (n % 10000)::numeric / 100, 'USD',
             timestamptz '2025-10-01T00:00Z' + n * interval '3 seconds', 'S1', 'till-' || n % 7
         from new_event"
    );
    // As the service does it when the last partition is half full.
    let partition = "create table if not exists raw_events_p00001 (like raw_events including all);
        do $$ begin
            if not (select relispartition from pg_class where oid = 'raw_events_p00001'::regclass) then
                alter table raw_events attach partition raw_events_p00001
                    for values from (10000000) to (20000000);
            end if;
        end $$";
    sqlx::raw_sql(partition).execute(&mut *conn).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(insert)).execute(&mut *conn).await.unwrap();
    // Another client would find the same after a night.
    sqlx::raw_sql("vacuum analyze raw_events").execute(&mut *conn).await.unwrap();
    sqlx::raw_sql("vacuum analyze event_keys").execute(&mut *conn).await.unwrap();
    sqlx::raw_sql("checkpoint").execute(conn).await.unwrap();
}

fn peak_mib(service: &TestService) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", service.process_id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}
