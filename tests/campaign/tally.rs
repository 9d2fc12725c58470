//! What was done, for the report at the end.

use std::collections::BTreeMap;
use std::fmt;

/// Counts of everything that was survived.
#[derive(Debug, Default)]
pub struct Tally {
    /// `kill -9` by point.
    kills: BTreeMap<String, u32>,
    others: BTreeMap<String, u32>,
    /// Why a fault could not be tried.
    not_run: BTreeMap<String, String>,
    answered: usize,
    checks: u32,
}

impl Tally {
    pub fn killed_at(&mut self, point: &str) {
        *self.kills.entry(point.to_owned()).or_default() += 1;
    }

    pub fn survived(&mut self, fault: &str) {
        *self.others.entry(fault.to_owned()).or_default() += 1;
    }

    pub fn not_run(&mut self, fault: &str, reason: &str) {
        self.not_run.insert(fault.to_owned(), reason.to_owned());
    }

    /// Adds events that were answered, and how often the oracle looked at them.
    pub fn answered(&mut self, events: usize, checks: u32) {
        self.answered += events;
        self.checks += checks;
    }

    pub fn kills(&self) -> u32 {
        self.kills.values().sum()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:6} kills with kill -9:", self.kills())?;
        for (point, count) in &self.kills {
            writeln!(f, "{count:6}   {point}")?;
        }
        for (fault, count) in &self.others {
            writeln!(f, "{count:6} {fault}")?;
        }
        for (fault, reason) in &self.not_run {
            writeln!(f, "     - {fault}: NOT RUN ({reason})")?;
        }
        write!(
            f,
            "The oracle looked {} times at {} events answered: none lost, none counted twice, nothing \
             unexplained, no lag.",
            self.checks, self.answered
        )
    }
}
