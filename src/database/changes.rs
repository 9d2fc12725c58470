//! What micro-batches changed, for those who follow a query.

use chrono::{DateTime, Utc};

use super::error::Doing;
use super::progress::CommittedProgress;
use super::queries::StoredQuery;
use super::{Database, DatabaseError};
use crate::domain::{BatchId, EventTime, OutputMode};

/// Micro-batches of a query that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BatchSpan {
    /// The one before the first of them.
    pub after: BatchId,
    /// The last of them.
    pub last: BatchId,
}

impl Database {
    /// Where to look for the rows that some batches wrote: the start of the first window among them, or
    /// one before that. Nothing when they wrote none. `entries` are the batches' own.
    ///
    /// There is no index on batches, so that writing rows costs no more for it. Rows of append mode are
    /// written once and mostly near the newest, and progress says how many there are; those of the other
    /// modes are where the events of their batches were.
    ///
    /// # Errors
    /// [`DatabaseError::ReadsBusy`] or [`DatabaseError::Failed`].
    pub async fn rows_changed_from(
        &self,
        query: &StoredQuery,
        batches: BatchSpan,
        entries: &[CommittedProgress],
    ) -> Result<Option<EventTime>, DatabaseError> {
        let rows_written = entries.iter().map(|progress| progress.entry.rows_written).sum::<i64>();
        if rows_written == 0 {
            return Ok(None);
        }
        if query.spec.output_mode != OutputMode::Append {
            let times = entries.iter().filter_map(|progress| progress.entry.event_time);
            let first = times.map(|times| times.min).min();
            return Ok(
                first.and_then(|time| Some(query.spec.window.windows_of(time).last()?.start))
            );
        }
        let first: Option<DateTime<Utc>> = sqlx::query_scalar(
            "select min(window_start) from (
                 select window_start from window_rows
                 where query_id = $1 and batch_id > $2 and batch_id <= $3
                 order by window_start desc limit $4
             ) written",
        )
        .bind(query.query_id)
        .bind(batches.after.get())
        .bind(batches.last.get())
        .bind(rows_written)
        .fetch_one(&mut *self.reader().await?)
        .await
        .doing("find the rows that batches wrote")?;
        Ok(first.map(EventTime::from_utc))
    }
}
