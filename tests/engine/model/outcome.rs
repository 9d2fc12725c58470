//! Everything that one micro-batch must report, in plain numbers.

use super::windows::{ModelKey, ModelRow};

/// One entry of the ledger of dropped events.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ModelDrop {
    pub(crate) seq: i64,
    pub(crate) key: ModelKey,
    pub(crate) money: i64,
    /// Else late.
    pub(crate) is_duplicate: bool,
    pub(crate) late_by_millis: i64,
}

/// A remembered key: until when, in microseconds, and the values.
pub(crate) type ModelRemembered = (i64, Vec<Option<String>>);

/// Watermarks in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ModelWatermarks {
    /// `W(n-1)`.
    pub(crate) late: i64,
    /// `W(n)`.
    pub(crate) current: i64,
    /// `W(n)` without idle heartbeats.
    pub(crate) current_by_sources: i64,
    /// `W(n+1)`.
    pub(crate) next: i64,
    /// `W(n+1)` without idle heartbeats.
    pub(crate) next_by_sources: i64,
}

/// Field by field what the engine reports.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ModelOutcome {
    pub(crate) watermarks: ModelWatermarks,
    pub(crate) newest_event: Option<i64>,
    pub(crate) events_in: u64,
    pub(crate) late_events: u64,
    pub(crate) duplicates: u64,
    /// Oldest, newest and mean.
    pub(crate) event_times: Option<(i64, i64, i64)>,
    pub(crate) rows: Vec<ModelRow>,
    pub(crate) state_changed: Vec<ModelRow>,
    /// With whether only silence closed it.
    pub(crate) state_removed: Vec<(ModelKey, bool)>,
    /// Sessions that were open before and are part of a larger one now.
    pub(crate) state_merged: Vec<ModelKey>,
    pub(crate) windows_updated: u64,
    pub(crate) windows_open: u64,
    /// Ordered by `seq` and key.
    pub(crate) dropped: Vec<ModelDrop>,
    /// In the order of their events.
    pub(crate) keys_remembered: Vec<ModelRemembered>,
    pub(crate) keys_forgotten: u64,
}
