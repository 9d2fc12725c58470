//! One delay: a state of its own, and what its micro-batches came to.

use std::collections::BTreeMap;

use super::closings::Closings;
use super::progress_of_time::ProgressOfTime;
use crate::domain::{Currency, Lag, Percent, Span, Totals, Window};
use crate::engine::{self, Batch, Dropped, DroppedReason, Outcome, Rules, State};

/// The late events of one currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LateMoney {
    /// Events that missed at least one of their windows, each once.
    pub events: Totals,
    /// What the windows miss: an event counts once for each window that it missed.
    pub missing: Totals,
}

/// What a delay would have done, as far as the log has been replayed.
#[derive(Debug)]
pub struct Trial {
    rules: Rules,
    state: State,
    /// Micro-batches, those without data too.
    pub batches: u64,
    /// Events that pass the filter.
    pub events_in: u64,
    /// Events that missed at least one of their windows.
    pub late_events: u64,
    /// Events dropped as duplicates.
    pub duplicates: u64,
    /// Output rows written, each time that one was.
    pub rows_written: u64,
    /// The late events, per currency.
    pub late: BTreeMap<Currency, LateMoney>,
    /// When windows closed.
    pub closings: Closings,
    /// The most windows open after a micro-batch.
    pub state_windows_max: u64,
    /// The most keys remembered after a micro-batch.
    pub remembered_keys_max: u64,
}

impl Trial {
    /// A query of these rules, but with this delay, that has read nothing yet.
    pub(super) fn new(rules: &Rules, delay: Span) -> Self {
        Self {
            rules: Rules { watermark_delay: delay, ..rules.clone() },
            state: State::default(),
            batches: 0,
            events_in: 0,
            late_events: 0,
            duplicates: 0,
            rows_written: 0,
            late: BTreeMap::new(),
            closings: Closings::default(),
            state_windows_max: 0,
            remembered_keys_max: 0,
        }
    }

    /// The delay that is tried.
    pub const fn delay(&self) -> Span {
        self.rules.watermark_delay
    }

    /// Events that count in every window they belong to.
    pub const fn counted(&self) -> u64 {
        self.events_in.saturating_sub(self.late_events).saturating_sub(self.duplicates)
    }

    /// The share of the events that are no duplicates which count in every window they belong to;
    /// nothing when there are none.
    pub fn share_counted(&self) -> Option<Percent> {
        Percent::of(self.counted(), self.counted().saturating_add(self.late_events))
    }

    /// Whether the share is `target` or more.
    pub fn reaches(&self, target: Percent) -> bool {
        let due = self.counted().saturating_add(self.late_events);
        due > 0 && target.is_reached_by(self.counted(), due)
    }

    /// Takes a micro-batch; `time` is as the batch before left it.
    pub(super) fn step(&mut self, batch: &Batch, time: &ProgressOfTime) {
        if let Some(outcome) = engine::step(&self.rules, &mut self.state, batch) {
            self.note(&outcome, time);
        }
    }

    /// Takes the batch without data, if one is owed.
    pub(super) fn step_without_data(&mut self, time: &ProgressOfTime) {
        if self.state.owes_batch_without_data(self.rules.output_mode) {
            self.step(&Batch::default(), time);
        }
    }

    fn note(&mut self, outcome: &Outcome, time: &ProgressOfTime) {
        self.batches += 1;
        self.events_in += outcome.events_in;
        self.late_events += outcome.late_events;
        self.duplicates += outcome.duplicates;
        self.rows_written += u64::try_from(outcome.rows.len()).unwrap_or(u64::MAX);
        self.state_windows_max = self.state_windows_max.max(outcome.windows_open);
        self.remembered_keys_max = self.remembered_keys_max.max(self.state.remembered_keys());
        self.note_late(&outcome.dropped);
        let mut last: Option<Window> = None;
        // Ordered by window, so the groups of one stand together.
        for window in outcome.state_removed.iter().map(|key| key.window) {
            if last.replace(window) != Some(window)
                && let Some(received_at) = time.reached(window.end, self.delay())
            {
                self.closings.count(Lag::between(window.end, received_at));
            }
        }
    }

    fn note_late(&mut self, dropped: &[Dropped]) {
        let mut last = None;
        for entry in dropped.iter().filter(|entry| entry.reason == DroppedReason::Late) {
            let late = self.late.entry(entry.key.currency).or_default();
            late.missing.count(entry.amount);
            // In `seq` order, so the windows of one event stand together.
            if last.replace(entry.seq) != Some(entry.seq) {
                late.events.count(entry.amount);
            }
        }
    }
}
