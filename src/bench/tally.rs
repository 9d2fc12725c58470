//! What the answers were.

use std::collections::BTreeMap;
use std::ops::Range;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// The longest latency that is told apart, in microseconds; no run is as long.
const LATENCY_US_MAX: u64 = 1_000_000_000;

/// The counts of an answer; those of all answers are their sum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Outcomes {
    pub(super) accepted: u64,
    pub(super) duplicates: u64,
    pub(super) conflicts: u64,
    pub(super) quarantined: u64,
    pub(super) rejected: u64,
}

/// Everything that was counted in a run.
#[derive(Debug)]
pub(super) struct Tally {
    /// Microseconds from the intended send time to the answer.
    pub(super) latency: Histogram<u64>,
    pub(super) requests: u64,
    pub(super) events: u64,
    pub(super) outcomes: Outcomes,
    pub(super) statuses: BTreeMap<u16, u64>,
    /// Connections that broke under a request; it was sent again.
    pub(super) broken: u64,
    /// Requests that were given up.
    pub(super) unanswered: u64,
    pub(super) last_answer_us: u64,
    /// The numbers of the answered events of each connection.
    pub(super) answered: Vec<Vec<Range<u64>>>,
}

impl Tally {
    pub(super) fn of(connections: u16) -> Self {
        Self {
            latency: Histogram::new_with_bounds(1, LATENCY_US_MAX, 3)
                .expect("bounds and digits are constants within what a histogram takes"),
            requests: 0,
            events: 0,
            outcomes: Outcomes::default(),
            statuses: BTreeMap::new(),
            broken: 0,
            unanswered: 0,
            last_answer_us: 0,
            answered: vec![Vec::new(); usize::from(connections)],
        }
    }

    /// Counts an answer of any status.
    pub(super) fn status(&mut self, status: u16) {
        *self.statuses.entry(status).or_default() += 1;
    }

    /// Counts the outcomes of a request that was taken or refused for good.
    pub(super) const fn outcomes(&mut self, outcomes: Outcomes) {
        let sum = &mut self.outcomes;
        sum.accepted += outcomes.accepted;
        sum.duplicates += outcomes.duplicates;
        sum.conflicts += outcomes.conflicts;
        sum.quarantined += outcomes.quarantined;
        sum.rejected += outcomes.rejected;
    }

    /// Counts a request of which every event was taken.
    pub(super) fn answered(
        &mut self,
        connection: u16,
        (events, fresh): (u32, &Range<u64>),
        (intended_us, answered_us): (u64, u64),
    ) {
        self.requests += 1;
        self.events += u64::from(events);
        self.latency.saturating_record(answered_us.saturating_sub(intended_us));
        self.last_answer_us = self.last_answer_us.max(answered_us);
        let ranges = &mut self.answered[usize::from(connection)];
        match ranges.last_mut() {
            Some(last) if last.end == fresh.start => last.end = fresh.end,
            _ => ranges.push(fresh.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answered_events_that_follow_each_other_are_kept_as_one_range() {
        let mut tally = Tally::of(2);
        for (connection, fresh) in [(0, 0..3), (0, 3..5), (1, 0..1), (1, 4..5), (0, 7..9)] {
            tally.answered(connection, (3, &fresh), (1_000, 3_500));
        }
        assert_eq!(tally.answered, [vec![0..5, 7..9], vec![0..1, 4..5]]);
        assert_eq!((tally.requests, tally.events, tally.last_answer_us), (5, 15, 3_500));
        assert!(tally.latency.equivalent(tally.latency.max(), 2_500));
    }
}
