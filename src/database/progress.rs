//! Progress entries: one per micro-batch, kept for good.

use chrono::{DateTime, Utc};
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{PgConnection, Postgres, QueryBuilder};

use super::error::Doing;
use super::queries::StoredQuery;
use super::values::{
    closed_by_from_sql, count_to_sql, unreadable, watermark_from_sql, watermark_to_sql,
};
use super::{Database, DatabaseError};
use crate::domain::{BatchId, ClosedBy, EventTime, QueryName, Seq, Watermark};
use crate::engine::{EventTimeRange, Outcome};

/// How long the parts of a micro-batch took, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BatchDurations {
    /// Reading events from the raw log.
    pub read_us: i64,
    /// The engine.
    pub compute_us: i64,
    /// Writing everything the batch did, up to but not including the commit itself.
    pub commit_us: i64,
    /// All of it.
    pub total_us: i64,
}

/// What one micro-batch reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgressEntry {
    /// Which batch.
    pub batch_id: BatchId,
    /// Events that passed the filter.
    pub events_in: i64,
    /// Events that missed at least one window.
    pub late_events: i64,
    /// Events dropped as duplicates.
    pub duplicates: i64,
    /// `W(n-1)`, which judged lateness.
    pub late_watermark: Watermark,
    /// `W(n)`, which closed windows.
    pub watermark: Watermark,
    /// The events' times; nothing in a batch without data.
    pub event_time: Option<EventTimeRange>,
    /// Output rows written.
    pub rows_written: i64,
    /// Windows open afterwards.
    pub state_windows: i64,
    /// Windows changed.
    pub state_updated: i64,
    /// Windows closed.
    pub state_removed: i64,
    /// The batch read what stands after this …
    pub position_from: Seq,
    /// … up to and including this.
    pub position_to: Seq,
    /// What closed the last of the windows that it closed; nothing when it closed none.
    pub closed_by: Option<ClosedBy>,
    /// How long it took.
    pub durations: BatchDurations,
}

impl ProgressEntry {
    /// The entry of a batch that read `position_from < seq <= position_to`.
    pub fn of(
        batch_id: BatchId,
        outcome: &Outcome,
        (position_from, position_to): (Seq, Seq),
        durations: BatchDurations,
    ) -> Self {
        let length = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        Self {
            batch_id,
            events_in: count_to_sql(outcome.events_in),
            late_events: count_to_sql(outcome.late_events),
            duplicates: count_to_sql(outcome.duplicates),
            late_watermark: outcome.late_watermark,
            watermark: outcome.watermarks.current,
            event_time: outcome.event_time,
            rows_written: length(outcome.rows.len()),
            state_windows: count_to_sql(outcome.windows_open),
            state_updated: count_to_sql(outcome.windows_updated),
            state_removed: length(outcome.state_removed.len()),
            position_from,
            position_to,
            closed_by: outcome.state_removed.last().map(|last| outcome.closed_by(last)),
            durations,
        }
    }
}

/// A progress entry as it was committed.
#[derive(Debug, Clone)]
pub struct CommittedProgress {
    /// Whose.
    pub query: QueryName,
    /// When, by the database's clock.
    pub timestamp: DateTime<Utc>,
    /// What.
    pub entry: ProgressEntry,
}

/// Binds what an entry says beyond its positions, as `commit_batch` takes it.
pub(super) fn bind_entry<'query>(
    query: Query<'query, Postgres, PgArguments>,
    entry: &ProgressEntry,
) -> Query<'query, Postgres, PgArguments> {
    let time =
        |of: fn(&EventTimeRange) -> EventTime| entry.event_time.map(|range| of(&range).to_utc());
    query
        .bind(entry.events_in)
        .bind(entry.late_events)
        .bind(entry.duplicates)
        .bind(watermark_to_sql(entry.late_watermark))
        .bind(time(|range| range.min))
        .bind(time(|range| range.max))
        .bind(time(|range| range.avg))
        .bind(entry.rows_written)
        .bind(entry.state_windows)
        .bind(entry.state_updated)
        .bind(entry.state_removed)
        .bind(entry.closed_by.map(ClosedBy::as_str))
        .bind(entry.durations.read_us)
        .bind(entry.durations.compute_us)
        .bind(entry.durations.total_us)
}

/// Writes how long a batch has taken by now, which had taken `before_us` before its transaction began.
/// Answers how long that one has taken.
pub(super) async fn progress_time(
    conn: &mut PgConnection,
    query: &StoredQuery,
    before_us: i64,
) -> Result<i64, DatabaseError> {
    sqlx::query_scalar(
        "update progress set commit_us = spent.us, total_us = $3 + spent.us
         from (select (extract(epoch from clock_timestamp() - transaction_timestamp()) * 1000000)::bigint
             as us) spent
         where query_id = $1 and batch_id = $2 returning commit_us",
    )
    .bind(query.query_id)
    .bind(query.next_batch_id.get())
    .bind(before_us)
    .fetch_one(conn)
    .await
    .doing("write how long a batch took")
}

#[derive(Debug, sqlx::FromRow)]
struct ProgressColumns {
    name: String,
    batch_id: i64,
    timestamp: DateTime<Utc>,
    events_in: i64,
    late_events: i64,
    duplicates: i64,
    late_watermark: DateTime<Utc>,
    watermark: DateTime<Utc>,
    event_time_min: Option<DateTime<Utc>>,
    event_time_max: Option<DateTime<Utc>>,
    event_time_avg: Option<DateTime<Utc>>,
    rows_written: i64,
    state_windows: i64,
    state_updated: i64,
    state_removed: i64,
    position_from: i64,
    position_to: i64,
    closed_by: Option<String>,
    #[sqlx(flatten)]
    durations: DurationColumns,
}

#[derive(Debug, sqlx::FromRow)]
struct DurationColumns {
    read_us: i64,
    compute_us: i64,
    commit_us: i64,
    total_us: i64,
}

impl ProgressColumns {
    fn read(self) -> Result<CommittedProgress, DatabaseError> {
        let event_time = match (self.event_time_min, self.event_time_max, self.event_time_avg) {
            (Some(min), Some(max), Some(avg)) => Some(EventTimeRange {
                min: EventTime::from_utc(min),
                max: EventTime::from_utc(max),
                avg: EventTime::from_utc(avg),
            }),
            _ => None,
        };
        let DurationColumns { read_us, compute_us, commit_us, total_us } = self.durations;
        let entry = ProgressEntry {
            batch_id: BatchId::new(self.batch_id),
            events_in: self.events_in,
            late_events: self.late_events,
            duplicates: self.duplicates,
            late_watermark: watermark_from_sql(self.late_watermark),
            watermark: watermark_from_sql(self.watermark),
            event_time,
            rows_written: self.rows_written,
            state_windows: self.state_windows,
            state_updated: self.state_updated,
            state_removed: self.state_removed,
            position_from: Seq::new(self.position_from),
            position_to: Seq::new(self.position_to),
            closed_by: self.closed_by.as_deref().map(closed_by_from_sql).transpose()?,
            durations: BatchDurations { read_us, compute_us, commit_us, total_us },
        };
        let query = self.name.parse().map_err(|error| unreadable("name of a query", error))?;
        Ok(CommittedProgress { query, timestamp: self.timestamp, entry })
    }
}

/// Where a page of progress entries goes on: after this one, towards older ones.
#[derive(Debug, Clone)]
pub struct ProgressCursor {
    /// When the last entry of the page before was written.
    pub timestamp: DateTime<Utc>,
    /// Whose it was.
    pub query: QueryName,
    /// Which it was.
    pub batch_id: BatchId,
}

impl Database {
    /// Up to `limit` entries of a query's batches after this one, oldest first.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`] or [`DatabaseError::Unreadable`].
    pub async fn progress_after(
        &self,
        query_id: i64,
        after: BatchId,
        limit: u32,
    ) -> Result<Vec<CommittedProgress>, DatabaseError> {
        let columns: Vec<ProgressColumns> = sqlx::query_as(
            "select queries.name, progress.* from progress join queries using (query_id)
             where query_id = $1 and batch_id > $2 order by batch_id limit $3",
        )
        .bind(query_id)
        .bind(after.get())
        .bind(i64::from(limit))
        .fetch_all(&mut *self.reader().await?)
        .await
        .doing("read the progress since a batch")?;
        columns.into_iter().map(ProgressColumns::read).collect()
    }

    /// Up to `limit` entries, newest first: of one query or of all, after `cursor`.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`] or [`DatabaseError::Unreadable`].
    pub async fn progress(
        &self,
        query: Option<&QueryName>,
        cursor: Option<&ProgressCursor>,
        limit: u32,
    ) -> Result<Vec<CommittedProgress>, DatabaseError> {
        let mut select = QueryBuilder::<Postgres>::new(
            "select queries.name, progress.* from progress join queries using (query_id) where true",
        );
        if let Some(query) = query {
            select.push(" and queries.name = ").push_bind(query.as_str());
        }
        if let Some(cursor) = cursor {
            if query.is_some() {
                select.push(" and batch_id < ").push_bind(cursor.batch_id.get());
            } else {
                select.push(" and (\"timestamp\", queries.name, batch_id) < (");
                select.push_bind(cursor.timestamp).push(", ").push_bind(cursor.query.as_str());
                select.push(", ").push_bind(cursor.batch_id.get()).push(")");
            }
        }
        select.push(match query {
            Some(_) => " order by batch_id desc limit ",
            None => " order by \"timestamp\" desc, queries.name desc, batch_id desc limit ",
        });
        select.push_bind(i64::from(limit));
        let columns: Vec<ProgressColumns> = select
            .build_query_as()
            .fetch_all(&mut *self.reader().await?)
            .await
            .doing("read progress")?;
        columns.into_iter().map(ProgressColumns::read).collect()
    }

    /// The entries of these batches of a query, oldest first.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`] or [`DatabaseError::Unreadable`].
    pub async fn progress_of_batches(
        &self,
        query: &QueryName,
        batch_ids: &[BatchId],
    ) -> Result<Vec<CommittedProgress>, DatabaseError> {
        let columns: Vec<ProgressColumns> = sqlx::query_as(
            "select queries.name, progress.* from progress join queries using (query_id)
             where queries.name = $1 and batch_id = any ($2) order by batch_id",
        )
        .bind(query.as_str())
        .bind(batch_ids.iter().map(|id| id.get()).collect::<Vec<_>>())
        .fetch_all(&mut *self.reader().await?)
        .await
        .doing("read the progress of a run")?;
        columns.into_iter().map(ProgressColumns::read).collect()
    }
}
