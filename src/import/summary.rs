//! What became of the rows.

use std::fmt;

use crate::clock::Stopwatch;
use crate::database::Appended;

/// Rows by what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) read: u64,
    pub(super) accepted: u64,
    pub(super) duplicates: u64,
    pub(super) conflicts: u64,
    pub(super) quarantined: u64,
    pub(super) rejected: u64,
}

impl Counts {
    /// Counts a row by the answer for its event.
    pub(super) const fn add(&mut self, answer: &Appended) {
        let count = match answer {
            Appended::Accepted(_) => &mut self.accepted,
            Appended::Duplicate(_) | Appended::RejectedBefore => &mut self.duplicates,
            Appended::Conflict { .. } => &mut self.conflicts,
            Appended::Quarantined => &mut self.quarantined,
            // Neither is an answer for an event that nothing else depends on.
            Appended::NotStored | Appended::NotInQuarantine => &mut self.rejected,
        };
        *count += 1;
    }

    /// Whether every row was taken, now or before.
    pub(super) const fn is_clean(&self) -> bool {
        self.rejected == 0 && self.conflicts == 0
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.read += other.read;
        self.accepted += other.accepted;
        self.duplicates += other.duplicates;
        self.conflicts += other.conflicts;
        self.quarantined += other.quarantined;
        self.rejected += other.rejected;
    }
}

/// The counts of an import, and how long it took.
pub(super) struct Summary {
    pub(super) counts: Counts,
    pub(super) micros: i64,
}

impl Summary {
    pub(super) fn of(counts: Counts, since: Stopwatch) -> Self {
        Self { counts, micros: since.elapsed_us() }
    }
}

/// Rows of a second.
pub(super) fn rate(rows: u64, micros: i64) -> u64 {
    let micros = u128::from(micros.unsigned_abs().max(1));
    u64::try_from(u128::from(rows) * 1_000_000 / micros).unwrap_or(u64::MAX)
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = &self.counts;
        for (name, count) in [
            ("read", counts.read),
            ("accepted", counts.accepted),
            ("duplicates", counts.duplicates),
            ("conflicts", counts.conflicts),
            ("quarantined", counts.quarantined),
            ("rejected", counts.rejected),
        ] {
            writeln!(f, "{name:<12}{count:>12}")?;
        }
        let (seconds, tenths) = (self.micros / 1_000_000, self.micros / 100_000 % 10);
        let rate = rate(counts.read, self.micros);
        write!(f, "{seconds}.{tenths} seconds, {rate} rows/s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_to_be_read_by_people_and_by_scripts() {
        let counts =
            Counts { read: 12, accepted: 9, conflicts: 1, rejected: 2, ..Counts::default() };
        let text = Summary { counts, micros: 1_290_000 }.to_string();
        assert_eq!(
            text,
            "read                  12\naccepted               9\nduplicates             0\n\
             conflicts              1\nquarantined            0\nrejected               2\n\
             1.2 seconds, 9 rows/s"
        );
        assert!(!counts.is_clean());
        assert_eq!(rate(5, 0), 5_000_000);
    }
}
