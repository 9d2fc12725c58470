//! The results of a run, for people and for programs.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::tally::{Outcomes, Tally};
use super::verify::Verification;
use crate::config::BenchIngestSettings;

/// Everything that a run found out.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    url: String,
    /// Events a second that were to be sent; null in a closed loop.
    rate: Option<u32>,
    connections: u16,
    batch: u16,
    elapsed_us: u64,
    requests_answered: u64,
    events_answered: u64,
    events_answered_per_second: u64,
    #[serde(flatten)]
    outcomes: Outcomes,
    statuses: BTreeMap<u16, u64>,
    /// From the intended send time to the answer.
    latency_us: Latency,
    connections_broken: u64,
    requests_unanswered: u64,
    requests_not_sent: u64,
    /// Null when nobody looked.
    verification: Option<Verification>,
}

#[derive(Debug, Serialize)]
struct Latency {
    p50: u64,
    p90: u64,
    p99: u64,
    p99_9: u64,
    max: u64,
}

impl Report {
    pub(super) fn of(
        settings: &BenchIngestSettings,
        tally: &Tally,
        requests_not_sent: u64,
        verification: Option<Verification>,
    ) -> Self {
        let elapsed_us = tally.last_answer_us.max(1);
        let per_second = u128::from(tally.events) * 1_000_000 / u128::from(elapsed_us);
        let quantile = |quantile| tally.latency.value_at_quantile(quantile);
        Self {
            url: format!("http://{}", settings.url.0),
            rate: settings.rate,
            connections: settings.connections,
            batch: settings.batch,
            elapsed_us,
            requests_answered: tally.requests,
            events_answered: tally.events,
            events_answered_per_second: u64::try_from(per_second).unwrap_or(u64::MAX),
            outcomes: tally.outcomes,
            statuses: tally.statuses.clone(),
            latency_us: Latency {
                p50: quantile(0.5),
                p90: quantile(0.9),
                p99: quantile(0.99),
                p99_9: quantile(0.999),
                max: tally.latency.max(),
            },
            connections_broken: tally.broken,
            requests_unanswered: tally.unanswered,
            requests_not_sent,
            verification,
        }
    }

    /// Whether the service did what it promises: the events are good, so some are taken, none is refused, and
    /// every answered one is in the log exactly once, as far as anybody looked.
    pub(super) fn is_sound(&self) -> bool {
        let found = self.verification.as_ref().is_none_or(Verification::is_sound);
        let Outcomes { accepted, duplicates, quarantined, conflicts, rejected } = self.outcomes;
        let is_taken = accepted + duplicates + quarantined > 0;
        found && is_taken && conflicts == 0 && rejected == 0
    }
}

impl Report {
    fn write_outcomes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcomes = &self.outcomes;
        writeln!(
            f,
            "outcomes     {} accepted, {} duplicates, {} conflicts, {} quarantined, {} rejected",
            outcomes.accepted,
            outcomes.duplicates,
            outcomes.conflicts,
            outcomes.quarantined,
            outcomes.rejected
        )?;
        let latency = &self.latency_us;
        writeln!(
            f,
            "latency      p50 {}, p90 {}, p99 {}, p99.9 {}, max {} ms, from the intended send time",
            Millis(latency.p50),
            Millis(latency.p90),
            Millis(latency.p99),
            Millis(latency.p99_9),
            Millis(latency.max)
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let loops = self.rate.map_or("closed loop".to_owned(), |rate| format!("{rate} events/s"));
        let (seconds, tenths) = (self.elapsed_us / 1_000_000, self.elapsed_us / 100_000 % 10);
        writeln!(
            f,
            "{}: batches of {}, {} connections, {loops}, {seconds}.{tenths} seconds",
            self.url, self.batch, self.connections
        )?;
        writeln!(
            f,
            "answered     {} events in {} requests, {} events/s",
            self.events_answered, self.requests_answered, self.events_answered_per_second
        )?;
        self.write_outcomes(f)?;
        let statuses = self.statuses.iter().map(|(status, count)| format!("{count} × {status}"));
        writeln!(f, "statuses     {}", statuses.collect::<Vec<_>>().join(", "))?;
        writeln!(
            f,
            "no answer    {} requests given up, {} due but not sent, {} connections broken",
            self.requests_unanswered, self.requests_not_sent, self.connections_broken
        )?;
        match &self.verification {
            None => f.write_str(
                "not verified without --verify and a database: nobody looked into the log",
            ),
            Some(found) => write_verification(f, found),
        }
    }
}

fn write_verification(f: &mut fmt::Formatter<'_>, found: &Verification) -> fmt::Result {
    if found.is_sound() {
        write!(
            f,
            "verified     all {} answered events are in the log exactly once",
            found.answered
        )?;
    } else {
        write!(
            f,
            "WRONG        of {} answered events {} are not in the log, {} are in it more than once: {}",
            found.answered,
            found.missing,
            found.repeated,
            found.examples.join(", ")
        )?;
    }
    match found.unanswered_in_log {
        0 => Ok(()),
        count => write!(f, "; {count} more are in it whose answer did not arrive"),
    }
}

/// Microseconds as milliseconds with two decimals.
struct Millis(u64);

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.0 / 1_000, self.0 / 10 % 100)
    }
}
