//! The fault campaign: the real service on a real Postgres, tills that know what they were answered, and
//! one fault after the other. After each everything answered is there, nothing is counted twice, the
//! reconciliation has nothing unexplained, and no query is behind.
//!
//! Needs the feature `faults`: `cargo test --features faults --test campaign`; for long,
//! `cargo test --release --features faults --test campaign -- --kills 1000`. It is a program of its own,
//! not a list of tests: what cannot be tried on a machine must not be said to have passed.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(
    unreachable_pub,
    dead_code,
    unused_imports,
    reason = "the support module is shared by several test binaries"
)]

#[path = "../support/mod.rs"]
mod support;

mod answers;
mod bed;
mod disk;
mod faults;
mod oracle;
mod points;
mod proofs;
mod tally;
mod tills;

use clap::Parser as _;
use fastrand::Rng;
use tillmark::clock::Stopwatch;

use bed::Bed;
use tally::Tally;

const RANDOM_KILLS: u32 = 16;
const POSTGRES_STOPS: u32 = 3;
const SESSION_KILLS: u32 = 2;

#[derive(clap::Parser)]
#[command(about = "Rounds of faults, until the service was killed often enough")]
struct Arguments {
    /// One round kills it once at every point, and some times at random.
    #[arg(long, default_value_t = 1)]
    kills: u32,
    /// The same seed gives the same faults and events, as far as the machine lets them.
    #[arg(long, default_value_t = 6)]
    seed: u64,
}

#[tokio::main]
async fn main() {
    let Arguments { kills, seed } = Arguments::parse();
    println!("\nfault campaign, --seed {seed}");
    let (mut rng, mut tally, watch) = (Rng::with_seed(seed), Tally::default(), Stopwatch::start());
    let found = proofs::a_missing_flush_is_noticed(rng.fork()).await;
    println!("the oracle notices answers before the flush: {found}");
    for number in 1.. {
        round(rng.fork(), &mut tally).await;
        let minutes = watch.elapsed_us() / 60_000_000;
        println!("round {number}: {} kills so far, {minutes} minutes", tally.kills());
        if tally.kills() >= kills {
            break;
        }
    }
    println!("{tally}\n{} s in all", watch.elapsed_us() / 1_000_000);
}

/// Every fault, on a Postgres of its own.
async fn round(rng: Rng, tally: &mut Tally) {
    let mut bed = Bed::make(rng).await;
    let mut points = points::names();
    bed.rng.shuffle(&mut points);
    for point in &points {
        faults::die_at(&mut bed, point).await;
        tally.killed_at(point);
    }
    for _ in 0..RANDOM_KILLS {
        faults::die_at_random(&mut bed).await;
        tally.killed_at("at random");
    }
    for _ in 0..POSTGRES_STOPS {
        faults::stop_postgres(&mut bed).await;
        tally.survived("immediate stop of Postgres");
    }
    for _ in 0..SESSION_KILLS {
        faults::kill_backends(&mut bed).await;
        tally.survived("sessions ended by pg_terminate_backend");
    }
    let lost = |statement: &str| tally.survived(&format!("reply lost: {statement}"));
    faults::lose_replies(&mut bed, lost).await;
    faults::freeze_the_leader(&mut bed).await;
    tally.survived("leader frozen, and woken");
    match disk::fill_up(bed.rng.fork()).await {
        Ok(answered) => {
            tally.answered(answered, 2);
            tally.survived("full disk");
        }
        Err(reason) => tally.not_run("full disk", &reason),
    }
    let answered = bed.tills.answers().stored.len();
    tally.answered(answered, bed.checks);
    proofs::changed_tables_are_noticed(&mut bed).await;
}
