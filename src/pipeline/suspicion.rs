//! Finding the record that a query cannot process: a batch that fails three times is halved until
//! the record is alone.

use crate::domain::Seq;

/// After so many failures a batch is read in halves.
const FAILURES_MAX: u32 = 3;

/// What failed so far, and how small batches are until the record is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Suspicion {
    failures: u32,
    /// The bound on batches while a record is looked for.
    records_max: Option<u32>,
    /// The record stands at or before this.
    until: Seq,
}

/// What to do after a failure that a record may have caused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Try the same again, later.
    TryAgain,
    /// Try half of it, soon.
    Halve,
    /// The record after the position is alone, and it fails: go on without it.
    SetAside,
}

impl Suspicion {
    /// The most records of the next batch of a query that allows `records_max`.
    pub(super) fn records_max(&self, records_max: u32) -> u32 {
        self.records_max.unwrap_or(records_max)
    }

    /// A batch after `position` of at most `records_max` records failed for what it read.
    pub(super) fn failed(&mut self, position: Seq, records_max: u32) -> Verdict {
        self.failures = self.failures.saturating_add(1);
        if self.failures < FAILURES_MAX {
            return Verdict::TryAgain;
        }
        let bound = self.records_max(records_max);
        if bound == 1 {
            *self = Self::default();
            return Verdict::SetAside;
        }
        if self.records_max.is_none() {
            self.until = position.plus(records_max);
        }
        self.records_max = Some(bound / 2);
        Verdict::Halve
    }

    /// The query has read up to `position`.
    pub(super) fn passed(&mut self, position: Seq) {
        if self.records_max.is_none() || position >= self.until {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a log of `length` records in which those in `poison` fail; answers which were set
    /// aside, and how many attempts it took.
    fn play(length: i64, records_max: u32, poison: &[i64]) -> (Vec<i64>, u32) {
        let (mut suspicion, mut position, mut aside, mut attempts) =
            (Suspicion::default(), Seq::START, Vec::new(), 0);
        while position.get() < length && attempts < 10_000 {
            attempts += 1;
            let bound = i64::from(suspicion.records_max(records_max));
            let read = position.get() + 1..=(position.get() + bound).min(length);
            if !read.clone().any(|seq| poison.contains(&seq)) {
                position = Seq::new(*read.end());
                suspicion.passed(position);
            } else if suspicion.failed(position, records_max) == Verdict::SetAside {
                position = Seq::new(position.get() + 1);
                aside.push(position.get());
            }
        }
        (aside, attempts)
    }

    #[test]
    fn only_the_records_that_fail_are_set_aside() {
        for (case, length, records_max, poison) in [
            ("nothing fails", 1_000, 100, vec![]),
            ("the first", 1_000, 100, vec![1]),
            ("the last", 1_000, 100, vec![1_000]),
            ("one in the middle", 1_000, 100, vec![437]),
            ("neighbours", 1_000, 100, vec![437, 438]),
            ("two in one batch", 1_000, 100, vec![401, 499]),
            ("batches of one", 10, 1, vec![4]),
            ("all", 5, 100, vec![1, 2, 3, 4, 5]),
        ] {
            assert_eq!(play(length, records_max, &poison).0, poison, "{case}");
        }
    }

    #[test]
    fn batches_are_whole_again_once_the_record_is_passed() {
        // Three attempts, some seventeen halvings, and then the rest in batches of 100,000.
        let (_, attempts) = play(10_000_000, 100_000, &[150_000]);
        assert!(attempts < 200, "{attempts}");
    }
}
