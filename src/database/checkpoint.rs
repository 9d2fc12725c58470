//! The one commit of a micro-batch, and reading back what the last one left.
//!
//! Invariant: the first statement moves the query from exactly where the batch started. If it
//! touches no row, another has been faster, nothing of the batch is kept, and whoever ran it must
//! reload. It also holds the lease (`lease.rs`) until the commit, so only the leader commits. So output rows, state, ledger, position and progress stand or fall together, once.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, Postgres, Transaction};

use super::duplicates::{duplicates_load, duplicates_write};
use super::error::Doing;
use super::lease::LeaseEpoch;
use super::output_rows::rows_write;
use super::progress::{ProgressEntry, progress_insert};
use super::queries::{StoredQuery, find};
use super::values::{
    WindowColumns, WindowKeyArrays, amount_to_sql, revenue_to_sql, watermark_to_sql,
};
use super::{Database, DatabaseError};
use crate::domain::{EventTime, QueryName, Seq};
use crate::engine::{Dropped, Outcome, Row, State};

/// A commit that has been prepared: everything is written, the transaction is still open.
#[derive(Debug)]
pub struct PreparedCommit {
    transaction: Transaction<'static, Postgres>,
    query_id: i64,
    moment: DateTime<Utc>,
}

impl Database {
    /// Reads a query and its state as of its last commit.
    ///
    /// The row is locked for the moment, so a commit whose outcome is not known yet is waited for.
    ///
    /// # Errors
    /// [`DatabaseError::NoSuchQuery`], [`DatabaseError::Unreadable`] or [`DatabaseError::Failed`].
    pub async fn checkpoint_load(
        &self,
        name: &QueryName,
    ) -> Result<(StoredQuery, State), DatabaseError> {
        let mut transaction = self.engine.begin().await.doing("begin loading a query")?;
        let query = find(&mut transaction, name, true).await?;
        fault_point!("recovery.query_read");
        let columns: Vec<WindowColumns> = sqlx::query_as(
            "select window_start, window_end, currency, group_keys, orders, revenue
             from window_state where query_id = $1",
        )
        .bind(query.query_id)
        .fetch_all(&mut *transaction)
        .await
        .doing("read a query's state")?;
        let windows = columns
            .iter()
            .map(|row| row.read().map(|(key, totals)| Row { key, totals }))
            .collect::<Result<Vec<_>, _>>()?;
        fault_point!("recovery.windows_read");
        let remembered = duplicates_load(&mut transaction, query.query_id).await?;
        let state = State::restore(query.watermarks, query.newest_event_time, windows, remembered);
        transaction.commit().await.doing("finish loading a query")?;
        fault_point!("recovery.loaded");
        Ok((query, state))
    }

    /// Moves only the position of a query: what it read did not pass its filter.
    ///
    /// # Errors
    /// [`DatabaseError::LeaseLost`], [`DatabaseError::ProgressMoved`] when another has been faster, or
    /// [`DatabaseError::Failed`].
    pub async fn checkpoint_skip(
        &self,
        lease: LeaseEpoch,
        query: &StoredQuery,
        position: Seq,
    ) -> Result<(), DatabaseError> {
        let (leads, moved): (bool, bool) = sqlx::query_as(
            "with leader as (select epoch from leadership where epoch = $6 for key share),
             moved as (
                 update queries set position = $5, error = null from leader
                 where query_id = $1 and queries.epoch = $2 and next_batch_id = $3 and position = $4
                 returning query_id
             )
             select exists (select from leader), exists (select from moved)",
        )
        .bind(query.query_id)
        .bind(query.epoch)
        .bind(query.next_batch_id.get())
        .bind(query.position.get())
        .bind(position.get())
        .bind(lease.get())
        .fetch_one(&self.engine)
        .await
        .doing("move a query's position")?;
        if moved { Ok(()) } else { Err(not_moved(leads)) }
    }

    /// Writes everything that a micro-batch did, in a transaction that stays open.
    ///
    /// # Errors
    /// [`DatabaseError::LeaseLost`], [`DatabaseError::ProgressMoved`] when another has been faster, or
    /// [`DatabaseError::Failed`].
    pub async fn checkpoint_prepare(
        &self,
        lease: LeaseEpoch,
        query: &StoredQuery,
        position: Seq,
        outcome: &Outcome,
    ) -> Result<PreparedCommit, DatabaseError> {
        let mut transaction = self.engine.begin().await.doing("begin a batch's commit")?;
        fault_point!("engine.begun");
        let kept = outcome;
        // Only there so that `tests/defects` can show that a lost watermark is noticed.
        #[cfg(feature = "defects")]
        let kept = &self.defective_outcome(kept);
        let moment = advance(&mut transaction, lease, query, position, kept).await?;
        // Only there so that `tests/defects` can show that a position of its own is noticed.
        #[cfg(feature = "defects")]
        let mut transaction = self.defective_transaction(transaction).await?;
        fault_point!("engine.advanced");
        let conn = &mut *transaction;
        state_remove(conn, query.query_id, outcome).await?;
        fault_point!("engine.state_removed");
        state_upsert(conn, query.query_id, &outcome.state_changed).await?;
        fault_point!("engine.state_written");
        rows_write(conn, query, outcome, moment).await?;
        fault_point!("engine.rows_written");
        duplicates_write(conn, query.query_id, outcome).await?;
        fault_point!("engine.duplicates_written");
        dropped_insert(conn, query, outcome).await?;
        fault_point!("engine.dropped_written");
        Ok(PreparedCommit { transaction, query_id: query.query_id, moment })
    }
}

impl PreparedCommit {
    /// Adds the progress entry and commits. Returns the entry's timestamp, by the database's clock.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`]: whether the batch was committed may be unknown then, so its
    /// state must be thrown away and loaded again.
    pub async fn commit(mut self, entry: &ProgressEntry) -> Result<DateTime<Utc>, DatabaseError> {
        progress_insert(&mut self.transaction, self.query_id, entry, self.moment).await?;
        fault_point!("engine.progress_written");
        self.transaction.commit().await.doing("commit a batch")?;
        Ok(self.moment)
    }
}

/// Moves the query on and answers the moment of the commit. It is read under the lock of the query's
/// row, so whoever gets that lock later finds everything of an earlier moment committed (`as_of`).
async fn advance(
    conn: &mut PgConnection,
    lease: LeaseEpoch,
    query: &StoredQuery,
    position: Seq,
    outcome: &Outcome,
) -> Result<DateTime<Utc>, DatabaseError> {
    let (leads, moment): (bool, Option<DateTime<Utc>>) = sqlx::query_as(
        "with leader as (select epoch from leadership where epoch = $10 for key share),
         moved as (
             update queries
             set position = $5, next_batch_id = next_batch_id + 1, watermark = $6, next_watermark = $7,
                 newest_event_time = $8, next_watermark_by_sources = $9, error = null
             from leader
             where query_id = $1 and queries.epoch = $2 and next_batch_id = $3 and position = $4
             returning clock_timestamp() as moment
         )
         select exists (select from leader), (select moment from moved)",
    )
    .bind(query.query_id)
    .bind(query.epoch)
    .bind(query.next_batch_id.get())
    .bind(query.position.get())
    .bind(position.get())
    .bind(watermark_to_sql(outcome.watermarks.current))
    .bind(watermark_to_sql(outcome.watermarks.next))
    .bind(outcome.newest_event_time.map(EventTime::to_utc))
    .bind(watermark_to_sql(outcome.watermarks.next_by_sources))
    .bind(lease.get())
    .fetch_one(conn)
    .await
    .doing("move a query's progress")?;
    moment.ok_or_else(|| not_moved(leads))
}

const fn not_moved(leads: bool) -> DatabaseError {
    if leads { DatabaseError::ProgressMoved } else { DatabaseError::LeaseLost }
}

/// Removes the state of closed windows, all that end by the watermark, and of sessions that are part
/// of a larger one now.
async fn state_remove(
    conn: &mut PgConnection,
    query_id: i64,
    outcome: &Outcome,
) -> Result<(), DatabaseError> {
    if !outcome.state_merged.is_empty() {
        let keys = WindowKeyArrays::of(&outcome.state_merged);
        sqlx::query(
            "delete from window_state using unnest($2::timestamptz[], $3::timestamptz[], $4::text[], $5::text[])
                 as merged (window_start, window_end, currency, group_keys)
             where query_id = $1 and window_state.window_end = merged.window_end
                 and window_state.window_start = merged.window_start
                 and window_state.currency = merged.currency
                 and window_state.group_keys = merged.group_keys",
        )
        .bind(query_id)
        .bind(keys.starts)
        .bind(keys.ends)
        .bind(keys.currencies)
        .bind(keys.groups)
        .execute(&mut *conn)
        .await
        .doing("remove the state of merged sessions")?;
    }
    fault_point!("engine.merged_removed");
    if !outcome.state_removed.is_empty() {
        sqlx::query("delete from window_state where query_id = $1 and window_end <= $2")
            .bind(query_id)
            .bind(watermark_to_sql(outcome.watermarks.current))
            .execute(conn)
            .await
            .doing("remove the state of closed windows")?;
    }
    Ok(())
}

async fn state_upsert(
    conn: &mut PgConnection,
    query_id: i64,
    rows: &[Row],
) -> Result<(), DatabaseError> {
    if rows.is_empty() {
        return Ok(());
    }
    let keys = WindowKeyArrays::of(rows.iter().map(|row| &row.key));
    let (orders, revenues) = totals_to_sql(rows)?;
    sqlx::query(
        "insert into window_state
         select $1, * from unnest($2::timestamptz[], $3::timestamptz[], $4::text[], $5::text[],
             $6::bigint[], $7::numeric[])
         on conflict on constraint window_state_pkey
         do update set orders = excluded.orders, revenue = excluded.revenue",
    )
    .bind(query_id)
    .bind(keys.starts)
    .bind(keys.ends)
    .bind(keys.currencies)
    .bind(keys.groups)
    .bind(orders)
    .bind(revenues)
    .execute(conn)
    .await
    .doing("write the state of open windows")?;
    Ok(())
}

async fn dropped_insert(
    conn: &mut PgConnection,
    query: &StoredQuery,
    outcome: &Outcome,
) -> Result<(), DatabaseError> {
    let dropped = &outcome.dropped;
    if dropped.is_empty() {
        return Ok(());
    }
    let keys = WindowKeyArrays::of(dropped.iter().map(|entry| &entry.key));
    let column = |of: fn(&Dropped) -> i64| dropped.iter().map(of).collect::<Vec<_>>();
    sqlx::query(
        "insert into dropped_events (query_id, batch_id, watermark, seq, window_start, window_end,
             currency, group_keys, amount, reason, late_by_ms)
         select $1, $2, $3, * from unnest($4::bigint[], $5::timestamptz[], $6::timestamptz[], $7::text[],
             $8::text[], $9::numeric[], $10::text[], $11::bigint[])",
    )
    .bind(query.query_id)
    .bind(query.next_batch_id.get())
    .bind(watermark_to_sql(outcome.late_watermark))
    .bind(column(|entry| entry.seq.get()))
    .bind(keys.starts)
    .bind(keys.ends)
    .bind(keys.currencies)
    .bind(keys.groups)
    .bind(dropped.iter().map(|entry| amount_to_sql(entry.amount)).collect::<Vec<_>>())
    .bind(dropped.iter().map(|entry| entry.reason.as_str()).collect::<Vec<_>>())
    .bind(column(|entry| entry.late_by.as_millis()))
    .execute(conn)
    .await
    .doing("write the ledger of dropped events")?;
    Ok(())
}

pub(super) fn totals_to_sql(
    rows: &[Row],
) -> Result<(Vec<i64>, Vec<rust_decimal::Decimal>), DatabaseError> {
    let orders = rows.iter().map(|row| row.totals.orders).collect();
    let revenues =
        rows.iter().map(|row| revenue_to_sql(row.totals.revenue)).collect::<Result<_, _>>()?;
    Ok((orders, revenues))
}
