//! What a query remembers from one micro-batch to the next.

use crate::domain::{EventTime, OutputMode, Span, Watermark};

use super::Row;
use super::duplicates::Duplicates;
use super::open_windows::OpenWindows;

/// The watermarks that a commit keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watermarks {
    /// `W(n)` of the last batch: it closed windows then, and judges lateness next.
    pub current: Watermark,
    /// `W(n+1)`: it closes windows in the next batch.
    pub next: Watermark,
    /// Where `W(n+1)` would stand without idle heartbeats.
    pub next_by_sources: Watermark,
}

impl Watermarks {
    /// Of a query that has run no batch.
    pub const EPOCH: Self = Self {
        current: Watermark::EPOCH,
        next: Watermark::EPOCH,
        next_by_sources: Watermark::EPOCH,
    };
}

/// Open windows, remembered keys and watermarks as of a query's last commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    watermarks: Watermarks,
    newest_event_time: Option<EventTime>,
    pub(super) windows: OpenWindows,
    pub(super) duplicates: Duplicates,
}

impl Default for State {
    /// A query that has run no batch.
    fn default() -> Self {
        Self::restore(Watermarks::EPOCH, None, [], [])
    }
}

impl State {
    /// The state that the last commit left. Each remembered key stands with the time from which on
    /// it is forgotten.
    pub fn restore(
        watermarks: Watermarks,
        newest_event_time: Option<EventTime>,
        windows: impl IntoIterator<Item = Row>,
        remembered: impl IntoIterator<Item = super::Remembered>,
    ) -> Self {
        let windows = OpenWindows::restore(windows);
        Self { watermarks, newest_event_time, windows, duplicates: Duplicates::restore(remembered) }
    }

    /// The watermarks after the last batch.
    pub const fn watermarks(&self) -> Watermarks {
        self.watermarks
    }

    /// The newest event time of all batches so far.
    pub const fn newest_event_time(&self) -> Option<EventTime> {
        self.newest_event_time
    }

    /// How many windows are open.
    pub fn open_windows(&self) -> u64 {
        self.windows.len()
    }

    /// The end of the window that closes first.
    pub fn first_window_end(&self) -> Option<EventTime> {
        self.windows.first_end()
    }

    /// How many keys the duplicates rule remembers.
    pub fn remembered_keys(&self) -> u64 {
        self.duplicates.len()
    }

    /// Whether a batch without data is due once the log has nothing more.
    pub fn owes_batch_without_data(&self, output_mode: OutputMode) -> bool {
        output_mode.owes_batch_without_data(self.watermarks.current, self.watermarks.next)
    }

    /// Begins a batch: the watermark reached last takes force.
    pub(super) fn begin_batch(&mut self) {
        self.watermarks.current = self.watermarks.next;
    }

    /// Ends a batch: moves the watermarks forward to what its sources and the silence reached.
    pub(super) fn advance(&mut self, newest: Newest, delay: Span) {
        let Watermarks { next, next_by_sources, .. } = &mut self.watermarks;
        for time in [newest.event, newest.heartbeat].into_iter().flatten() {
            *next_by_sources = next_by_sources.advanced_by(time, delay);
            *next = next.advanced_by(time, delay);
        }
        if let Some(time) = newest.idle_heartbeat {
            *next = next.advanced_by(time, delay);
        }
        self.newest_event_time = self.newest_event_time.max(newest.event);
    }
}

/// The newest times that a batch read, by who spoke of them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Newest {
    pub(super) event: Option<EventTime>,
    pub(super) heartbeat: Option<EventTime>,
    pub(super) idle_heartbeat: Option<EventTime>,
}
