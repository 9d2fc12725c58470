//! What a query remembers from one micro-batch to the next.

use std::collections::BTreeMap;

use crate::domain::{EventTime, OutputMode, Totals, Watermark, WindowKey};

use super::Row;

/// Open windows and watermarks as of a query's last commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// `W(n)` of the last batch: it closed windows then, and judges lateness next.
    watermark: Watermark,
    /// `W(n+1)`: it closes windows in the next batch.
    next_watermark: Watermark,
    newest_event_time: Option<EventTime>,
    /// Ordered by the windows' ends, so that the closed ones stand first.
    windows: BTreeMap<WindowKey, Totals>,
}

impl Default for State {
    /// A query that has run no batch.
    fn default() -> Self {
        Self::restore(Watermark::EPOCH, Watermark::EPOCH, None, [])
    }
}

impl State {
    /// The state that the last commit left.
    pub fn restore(
        watermark: Watermark,
        next_watermark: Watermark,
        newest_event_time: Option<EventTime>,
        windows: impl IntoIterator<Item = Row>,
    ) -> Self {
        let windows = windows.into_iter().map(|row| (row.key, row.totals)).collect();
        Self { watermark, next_watermark, newest_event_time, windows }
    }

    /// `W(n)` of the last batch.
    pub const fn watermark(&self) -> Watermark {
        self.watermark
    }

    /// `W(n+1)`, which the next batch closes windows with.
    pub const fn next_watermark(&self) -> Watermark {
        self.next_watermark
    }

    /// The newest event time of all batches so far.
    pub const fn newest_event_time(&self) -> Option<EventTime> {
        self.newest_event_time
    }

    /// How many windows are open.
    pub fn open_windows(&self) -> u64 {
        self.windows.len().try_into().unwrap_or(u64::MAX)
    }

    /// Whether a batch without data is due once the log has nothing more.
    pub fn owes_batch_without_data(&self, output_mode: OutputMode) -> bool {
        output_mode.owes_batch_without_data(self.watermark, self.next_watermark)
    }

    /// Begins a batch: the watermark reached last takes force. Returns the one before and it.
    pub(super) fn begin_batch(&mut self) -> (Watermark, Watermark) {
        let before = self.watermark;
        self.watermark = self.next_watermark;
        (before, self.watermark)
    }

    /// Adds to one window and returns its new totals.
    pub(super) fn add(&mut self, key: WindowKey, totals: Totals) -> Totals {
        let entry = self.windows.entry(key).or_default();
        *entry = entry.plus(totals);
        *entry
    }

    /// Takes out the windows that the watermark in force closes, in order.
    pub(super) fn take_closed(&mut self) -> Vec<Row> {
        let mut closed = Vec::new();
        while let Some(first) = self.windows.first_entry() {
            if !first.key().window.is_closed_at(self.watermark) {
                break;
            }
            let (key, totals) = first.remove_entry();
            closed.push(Row { key, totals });
        }
        closed
    }

    /// All windows, in order.
    pub(super) fn rows(&self) -> Vec<Row> {
        self.windows.iter().map(|(key, totals)| Row { key: key.clone(), totals: *totals }).collect()
    }

    /// Ends a batch whose newest event was `newest`: moves the next watermark forward.
    pub(super) fn advance(&mut self, newest: EventTime, delay: crate::domain::Span) {
        self.next_watermark = self.next_watermark.advanced_by(newest, delay);
        self.newest_event_time = self.newest_event_time.max(Some(newest));
    }
}
