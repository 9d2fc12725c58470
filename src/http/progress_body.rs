//! A progress entry in JSON.

use serde::Serialize;
use utoipa::ToSchema;

use super::figures::moment_text;
use crate::database::{BatchDurations, CommittedProgress};
use crate::domain::ClosedBy;

/// What one micro-batch did.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Progress)]
pub(super) struct ProgressBody {
    /// Whose batch.
    #[schema(example = "hourly_sales")]
    pub(super) query: String,
    /// Its number within the query: 0, 1, 2 ….
    pub(super) batch_id: i64,
    /// When it was committed, by the database's clock.
    #[schema(format = DateTime)]
    pub(super) timestamp: String,
    /// Events that passed the query's filter; 0 in a batch without data.
    pub(super) events_in: i64,
    /// Events that missed at least one of their windows.
    pub(super) late_events: i64,
    /// Events dropped as duplicates.
    pub(super) duplicates: i64,
    /// The watermark of the batch before, which judged lateness.
    #[schema(format = DateTime)]
    pub(super) late_watermark: String,
    /// The watermark that closed windows.
    #[schema(format = DateTime)]
    pub(super) watermark: String,
    /// The times of the events; null in a batch without data.
    pub(super) event_time: Option<EventTimes>,
    /// Output rows written.
    pub(super) rows_written: i64,
    /// The state afterwards.
    pub(super) state: State,
    /// What the batch read: `from < seq <= to`.
    pub(super) position: Positions,
    /// How long it took, in milliseconds.
    pub(super) duration_ms: Durations,
    /// `events_in` by the whole duration; null when that is too short to tell.
    pub(super) events_per_second: Option<f64>,
    /// What closed windows in this batch; null when none closed.
    #[schema(example = "watermark")]
    pub(super) closed_by: Option<&'static str>,
}

/// Oldest, newest and mean event time of a batch.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EventTimes {
    /// The oldest.
    #[schema(format = DateTime)]
    pub(super) min: String,
    /// The newest.
    #[schema(format = DateTime)]
    pub(super) max: String,
    /// The mean.
    #[schema(format = DateTime)]
    pub(super) avg: String,
}

/// The windows in state after a batch.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ProgressState)]
pub(super) struct State {
    /// Open afterwards.
    pub(super) windows: i64,
    /// Changed by the batch.
    pub(super) updated: i64,
    /// Closed by the batch.
    pub(super) removed: i64,
}

/// A stretch of the raw log: `from < seq <= to`.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Positions {
    /// Read after this.
    pub(super) from: i64,
    /// Read up to this.
    pub(super) to: i64,
}

/// How long the parts of a batch took, in milliseconds.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Durations {
    /// Reading the raw log.
    pub(super) read: f64,
    /// Counting.
    pub(super) compute: f64,
    /// Writing.
    pub(super) commit: f64,
    /// All of it.
    pub(super) total: f64,
}

impl From<BatchDurations> for Durations {
    fn from(durations: BatchDurations) -> Self {
        Self {
            read: millis(durations.read_us),
            compute: millis(durations.compute_us),
            commit: millis(durations.commit_us),
            total: millis(durations.total_us),
        }
    }
}

fn millis(micros: i64) -> f64 {
    micros as f64 / 1_000.0
}

/// Rounded to a tenth; nothing when no time was measured.
fn per_second(events: i64, total_us: i64) -> Option<f64> {
    let rate = events as f64 * 1_000_000.0 / total_us as f64;
    (total_us > 0).then(|| (rate * 10.0).round() / 10.0)
}

impl From<CommittedProgress> for ProgressBody {
    fn from(CommittedProgress { query, timestamp, entry }: CommittedProgress) -> Self {
        Self {
            query: query.to_string(),
            batch_id: entry.batch_id.get(),
            timestamp: moment_text(timestamp),
            events_in: entry.events_in,
            late_events: entry.late_events,
            duplicates: entry.duplicates,
            late_watermark: entry.late_watermark.to_string(),
            watermark: entry.watermark.to_string(),
            event_time: entry.event_time.map(|times| EventTimes {
                min: times.min.to_string(),
                max: times.max.to_string(),
                avg: times.avg.to_string(),
            }),
            rows_written: entry.rows_written,
            state: State {
                windows: entry.state_windows,
                updated: entry.state_updated,
                removed: entry.state_removed,
            },
            position: Positions { from: entry.position_from.get(), to: entry.position_to.get() },
            duration_ms: entry.durations.into(),
            events_per_second: per_second(entry.events_in, entry.durations.total_us),
            closed_by: entry.closed_by.map(ClosedBy::as_str),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_milliseconds_with_at_most_three_decimals() {
        for (micros, text) in [(0, "0.0"), (1, "0.001"), (12_345, "12.345"), (1_000_000, "1000.0")]
        {
            assert_eq!(serde_json::to_string(&millis(micros)).expect("a number"), text);
        }
        assert_eq!(per_second(3, 0), None);
        assert_eq!(per_second(100_000, 300_000), Some(333_333.3));
    }
}
