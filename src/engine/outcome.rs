//! What one micro-batch did; all of it is committed in one transaction.

use crate::domain::{Amount, ClosedBy, EventTime, Seq, Span, Totals, Watermark, WindowKey};

use super::{EventTimeRange, Remembered, Watermarks};

/// One window with its totals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// What the row stands for.
    pub key: WindowKey,
    /// What was counted.
    pub totals: Totals,
}

/// Why an event was read and not (fully) counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DroppedReason {
    /// Its window was closed already.
    Late,
    /// Its key was remembered already.
    Duplicate,
}

impl DroppedReason {
    /// The word of the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Late => "late",
            Self::Duplicate => "duplicate",
        }
    }
}

/// One entry of the ledger of dropped events: an event and a window that it missed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    /// The event.
    pub seq: Seq,
    /// The row it would have counted in.
    pub key: WindowKey,
    /// Its money.
    pub amount: Amount,
    /// Why.
    pub reason: DroppedReason,
    /// How far it stands behind the newest event of the batches before, cut to milliseconds.
    pub late_by: Span,
}

/// Everything that one micro-batch changes and reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The watermark of the batch before, which judged lateness: `W(n-1)`.
    pub late_watermark: Watermark,
    /// Where `W(n)` would stand without idle heartbeats: windows that end by then are closed by the
    /// watermark of their sources, the others because nothing came any more.
    pub watermark_by_sources: Watermark,
    /// The watermarks afterwards: `W(n)`, which closed windows, and `W(n+1)`.
    pub watermarks: Watermarks,
    /// The newest event time of this batch and all before.
    pub newest_event_time: Option<EventTime>,
    /// Events that passed the filter.
    pub events_in: u64,
    /// Events, not rows or groups of them, that missed at least one of their windows.
    pub late_events: u64,
    /// Events whose key was remembered already.
    pub duplicates: u64,
    /// The events' times; nothing in a batch without data.
    pub event_time: Option<EventTimeRange>,
    /// Output rows written by this batch, ordered by key.
    pub rows: Vec<Row>,
    /// State that changed and stays, ordered by key.
    pub state_changed: Vec<Row>,
    /// Closed windows whose state goes, ordered by key.
    pub state_removed: Vec<WindowKey>,
    /// Sessions whose state goes because they are part of a larger one now, ordered by key.
    pub state_merged: Vec<WindowKey>,
    /// How many windows this batch changed, those it closed included.
    pub windows_updated: u64,
    /// How many windows stay open.
    pub windows_open: u64,
    /// Entries for the ledger of dropped events, in `seq` order.
    pub dropped: Vec<Dropped>,
    /// Keys that the duplicates rule remembers from now on.
    pub keys_remembered: Vec<Remembered>,
    /// How many remembered keys it forgot: all that expired by `W(n)`.
    pub keys_forgotten: u64,
}

impl Outcome {
    /// What closed a window that this batch closed.
    pub fn closed_by(&self, key: &WindowKey) -> ClosedBy {
        if key.window.is_closed_at(self.watermark_by_sources) {
            ClosedBy::Watermark
        } else {
            ClosedBy::Idle
        }
    }
}
