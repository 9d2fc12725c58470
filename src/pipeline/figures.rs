//! What the runners of this process count of the micro-batches that they commit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use super::batch::Committed;
use crate::domain::{Currency, QueryName, Revenue};
use crate::telemetry::{Counted, Histogram};

/// Upper bounds of the time of a phase, in microseconds.
const BOUNDS_US: [u64; 12] = [
    250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 100_000, 500_000, 1_000_000, 5_000_000,
    30_000_000,
];
/// The parts of a micro-batch.
const PHASES: [&str; 3] = ["read", "compute", "commit"];

/// The counts of all queries since the start of the process.
#[derive(Debug)]
pub struct BatchFigures {
    phases: [Histogram<12>; 3],
    queries: Mutex<BTreeMap<QueryName, QueryBatches>>,
}

/// The counts of one query.
#[derive(Debug, Clone, Default)]
pub struct QueryBatches {
    /// Micro-batches.
    pub batches: u64,
    /// Events that passed the filter.
    pub events: u64,
    /// Events that missed at least one window.
    pub late_events: u64,
    /// Events dropped as duplicates.
    pub duplicates: u64,
    /// The money of the late events.
    pub late_money: BTreeMap<Currency, LateMoney>,
    phases_us: [u64; 3],
}

/// The money of late events of one currency, each event once however many windows it missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LateMoney {
    /// The sum of their amounts above zero.
    pub sold: Revenue,
    /// The sum of those below zero, as a number above zero.
    pub refunded: Revenue,
}

impl QueryBatches {
    /// Each phase, and how long all batches together spent in it, in microseconds.
    pub fn phases(&self) -> impl Iterator<Item = (&'static str, u64)> {
        PHASES.into_iter().zip(self.phases_us)
    }
}

impl BatchFigures {
    pub(super) fn new() -> Self {
        let phases = std::array::from_fn(|_| Histogram::new(&BOUNDS_US));
        Self { phases, queries: Mutex::default() }
    }

    /// Counts a micro-batch.
    pub(super) fn note(&self, batch: &Committed) {
        let entry = &batch.progress.entry;
        let durations = [entry.durations.read_us, entry.durations.compute_us, batch.commit_us];
        let mut queries = self.queries.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = queries.entry(batch.progress.query.clone()).or_default();
        let durations = durations.map(i64::unsigned_abs);
        for ((phase, sum_us), us) in self.phases.iter().zip(&mut counts.phases_us).zip(durations) {
            phase.count(us);
            *sum_us += us;
        }
        counts.batches += 1;
        counts.events += entry.events_in.unsigned_abs();
        counts.late_events += entry.late_events.unsigned_abs();
        counts.duplicates += entry.duplicates.unsigned_abs();
        for (currency, amount) in &batch.late {
            let money = counts.late_money.entry(*currency).or_default();
            if amount.as_ten_thousandths() < 0 {
                money.refunded = money.refunded.minus(Revenue::ZERO.plus_amount(*amount));
            } else {
                money.sold = money.sold.plus_amount(*amount);
            }
        }
    }

    /// The phases of the batches of all queries.
    pub fn phases(&self) -> impl Iterator<Item = (&'static str, Counted)> {
        PHASES.into_iter().zip(self.phases.each_ref().map(Histogram::counted))
    }

    /// The counts of these queries; what was counted of others is forgotten, for they are no more.
    pub fn of(&self, names: &BTreeSet<&QueryName>) -> BTreeMap<QueryName, QueryBatches> {
        let mut queries = self.queries.lock().unwrap_or_else(PoisonError::into_inner);
        queries.retain(|name, _| names.contains(name));
        queries.clone()
    }
}
