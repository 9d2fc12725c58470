//! Reading a query as it stood at an earlier moment.
//!
//! Invariant: a batch's moment is read under the lock of its query's row, and that of an appended
//! event under the append lock. So once both locks were free after a moment, everything up to it is
//! committed, and reading as of it gives the same answer every time.
//!
//! The last batch by that moment tells position and watermark. Rows of append mode never change, so
//! those of the batches up to it are the rows; the other modes keep the versions that they supersede.

use chrono::{DateTime, Utc};
use sqlx::{Connection as _, PgConnection};

use super::append::{APPEND_LOCK, COMMIT_LOCK};
use super::error::Doing;
use super::queries::{StoredQuery, find};
use super::values::watermark_from_sql;
use super::{Database, DatabaseError};
use crate::domain::{BatchId, EventTime, OutputMode, QueryName, Seq, Watermark};

/// A moment in the past of one query, and the last batch that it had committed by then.
#[derive(Debug, Clone, Copy)]
pub struct AsOf {
    moment: EventTime,
    /// -1 before the first.
    last_batch_id: i64,
    last_batch_at: Option<DateTime<Utc>>,
}

impl AsOf {
    /// The moment as SQL has it.
    pub(super) fn literal(self) -> String {
        format!("timestamptz '{}'", self.moment)
    }

    /// The batches committed by then, as a condition on the column `batch_id` of `table`.
    pub(super) fn batches(self, table: &str) -> String {
        format!("{table}.batch_id <= {}", self.last_batch_id)
    }

    /// The moment.
    pub const fn moment(self) -> EventTime {
        self.moment
    }
}

/// The output rows of a query, now or as of a moment: statements whose answers are the rows together,
/// each simple enough for an index to give them in their order.
pub(super) fn rows_selects(query: &StoredQuery, as_of: Option<AsOf>) -> Vec<String> {
    const ROW: &str = "query_id, window_start, window_end, currency, group_keys, orders, revenue";
    let of_query = format!("where query_id = {}", query.query_id);
    let Some(as_of) = as_of else {
        return vec![format!(
            "select {ROW}, batch_id, written_at, closed_by from window_rows {of_query}"
        )];
    };
    let (batch, watermark) = (as_of.last_batch_id, query.watermarks.current);
    let totals_batch = "coalesce(totals_batch_id, batch_id)";
    // Complete mode writes every row with every batch.
    let writing = |batch_id: &str| match (query.spec.output_mode, as_of.last_batch_at) {
        (OutputMode::Complete, Some(at)) => {
            let at = EventTime::from_utc(at);
            format!("{batch}::bigint as batch_id, timestamptz '{at}' as written_at")
        }
        _ => format!("{batch_id} as batch_id, written_at"),
    };
    vec![
        format!(
            "select {ROW}, {}, case when window_end <= timestamptz '{watermark}' then closed_by end as closed_by
             from window_rows {of_query} and {totals_batch} <= {batch}",
            writing(totals_batch)
        ),
        format!(
            "select {ROW}, {}, null::text as closed_by
             from window_row_versions {of_query} and batch_id <= {batch} and replaced_by > {batch}",
            writing("batch_id")
        ),
    ]
}

/// The same as the content of a `from` clause.
pub(super) fn rows_sql(query: &StoredQuery, as_of: Option<AsOf>) -> String {
    format!("({}) standing", rows_selects(query, as_of).join(" union all "))
}

/// The last batch of a query by some moment.
#[derive(Debug, sqlx::FromRow)]
struct LastBatch {
    batch_id: i64,
    timestamp: DateTime<Utc>,
    watermark: DateTime<Utc>,
    position_to: i64,
}

/// A query as it stood at `moment`, inside the caller's transaction.
pub(super) async fn find_as_of(
    conn: &mut PgConnection,
    name: &QueryName,
    moment: EventTime,
) -> Result<(StoredQuery, AsOf), DatabaseError> {
    let mut query = find(conn, name, false).await?;
    let last: Option<LastBatch> = sqlx::query_as(
        "select batch_id, \"timestamp\", watermark, position_to from progress
         where query_id = $1 and \"timestamp\" <= $2
         order by \"timestamp\" desc, batch_id desc limit 1",
    )
    .bind(query.query_id)
    .bind(moment.to_utc())
    .fetch_optional(conn)
    .await
    .doing("find the last batch by a moment")?;
    let watermark = last.as_ref().map(|last| watermark_from_sql(last.watermark));
    query.watermarks.current = watermark.unwrap_or(Watermark::EPOCH);
    query.position = last.as_ref().map_or(query.start_seq, |last| Seq::new(last.position_to));
    let last_batch_id = last.as_ref().map_or(-1, |last| last.batch_id);
    query.next_batch_id = BatchId::new(last_batch_id.saturating_add(1));
    let last_batch_at = last.map(|last| last.timestamp);
    Ok((query, AsOf { moment, last_batch_id, last_batch_at }))
}

impl Database {
    /// A query as it stood at `moment`.
    ///
    /// # Errors
    /// [`DatabaseError::NoSuchQuery`], [`DatabaseError::NotYet`], [`DatabaseError::BeforeHistory`],
    /// [`DatabaseError::Unreadable`] or [`DatabaseError::Failed`].
    pub async fn query_as_of(
        &self,
        name: &QueryName,
        moment: EventTime,
    ) -> Result<(StoredQuery, AsOf), DatabaseError> {
        let mut conn = self.reader().await?;
        settle(&mut conn, name, moment).await?;
        find_as_of(&mut conn, name, moment).await
    }
}

/// Waits until everything of up to `moment` is committed; at most for the commits under way.
pub(super) async fn settle(
    conn: &mut PgConnection,
    name: &QueryName,
    moment: EventTime,
) -> Result<(), DatabaseError> {
    let mut transaction = conn.begin().await.doing("begin to settle a moment")?;
    let row: Option<(DateTime<Utc>, DateTime<Utc>)> = sqlx::query_as(
        "select history_since, clock_timestamp() from queries where name = $1 for share",
    )
    .bind(name.as_str())
    .fetch_optional(&mut *transaction)
    .await
    .doing("wait for the batch under way")?;
    let (since, now) = row.ok_or_else(|| DatabaseError::NoSuchQuery(name.clone()))?;
    let (since, now) = (EventTime::from_utc(since), EventTime::from_utc(now));
    if moment > now {
        return Err(DatabaseError::NotYet { moment, now });
    }
    if moment < since {
        return Err(DatabaseError::BeforeHistory { moment, since });
    }
    sqlx::query(
        "with drawing as materialized (select pg_advisory_xact_lock_shared($1))
         select pg_advisory_xact_lock_shared($2) from drawing",
    )
    .bind(APPEND_LOCK)
    .bind(COMMIT_LOCK)
    .execute(&mut *transaction)
    .await
    .doing("wait for the appends under way")?;
    transaction.commit().await.doing("settle a moment")
}
