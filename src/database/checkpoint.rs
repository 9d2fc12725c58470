//! The one commit of a micro-batch, and reading back what the last one left.
//!
//! Invariant: the first statement, `commit_batch` of the database, moves the query from exactly where
//! the batch started. If that is not where it stands, another has been faster, nothing of the batch is
//! kept, and whoever ran it must reload. It also holds the lease (`lease.rs`) until the commit, so only
//! the leader commits. So output rows, state, ledger, position and progress stand or fall together, once.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, PgConnection};

use super::duplicates::{duplicates_load, duplicates_write};
use super::error::Doing;
use super::lease::LeaseEpoch;
use super::output_rows::{bind_rows, rows_finish};
use super::progress::{CommittedProgress, ProgressEntry, bind_entry, progress_time};
use super::queries::{StoredQuery, find};
use super::values::{WindowColumns, WindowKeyArrays, amount_to_sql, watermark_to_sql};
use super::{Database, DatabaseError};
use crate::domain::{EventTime, OutputMode, QueryName, Seq};
use crate::engine::{Dropped, Outcome, Row, State};

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
        self.tail.forget();
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

    /// Commits everything that a micro-batch did. What it reports comes back with the moment of the
    /// commit and how long it took.
    ///
    /// # Errors
    /// [`DatabaseError::LeaseLost`], [`DatabaseError::ProgressMoved`] when another has been faster, or
    /// [`DatabaseError::Failed`]: whether the batch was committed may be unknown then, so its
    /// state must be thrown away and loaded again.
    pub async fn checkpoint_commit(
        &self,
        lease: LeaseEpoch,
        query: &StoredQuery,
        outcome: &Outcome,
        mut entry: ProgressEntry,
    ) -> Result<CommittedProgress, DatabaseError> {
        let kept = outcome;
        // Only there so that `tests/defects` can show that a lost watermark is noticed.
        #[cfg(feature = "defects")]
        let kept = &self.defective_outcome(kept);
        let before_us = entry.durations.total_us;
        let written = if is_usual(query, outcome) {
            let mut conn = self.engine.acquire().await.doing("reach the database")?;
            let written = batch_write(&mut conn, lease, query, kept, &entry).await?;
            fault_point!("engine.usual_written");
            written
        } else {
            let mut transaction = self.engine.begin().await.doing("begin a batch's commit")?;
            fault_point!("engine.begun");
            let mut written = batch_write(&mut transaction, lease, query, kept, &entry).await?;
            // Only there so that `tests/defects` can show that a position of its own is noticed.
            #[cfg(feature = "defects")]
            let mut transaction = self.defective_transaction(transaction).await?;
            fault_point!("engine.batch_written");
            rest_write(&mut transaction, query, outcome, written.moment).await?;
            written.spent_us = progress_time(&mut transaction, query, before_us).await?;
            fault_point!("engine.timed");
            transaction.commit().await.doing("commit a batch")?;
            written
        };
        entry.durations.commit_us = written.spent_us;
        entry.durations.total_us = before_us.saturating_add(written.spent_us);
        Ok(CommittedProgress { query: query.name.clone(), timestamp: written.moment, entry })
    }
}

/// Whether `commit_batch` writes all there is to write: nothing is closed, dropped or remembered.
fn is_usual(query: &StoredQuery, outcome: &Outcome) -> bool {
    outcome.state_removed.is_empty()
        && outcome.state_merged.is_empty()
        && outcome.dropped.is_empty()
        && outcome.keys_remembered.is_empty()
        && outcome.keys_forgotten == 0
        && merged_rows(query, outcome).len() == outcome.rows.len()
}

/// Rows that may be there already. In append mode there are none: a row is inserted once.
fn merged_rows<'outcome>(query: &StoredQuery, outcome: &'outcome Outcome) -> &'outcome [Row] {
    match query.spec.output_mode {
        OutputMode::Append => &[],
        OutputMode::Update | OutputMode::Complete => &outcome.rows,
    }
}

/// What `commit_batch` wrote.
struct Written {
    /// Read under the lock of the query's row, so whoever gets that lock later finds everything of an
    /// earlier moment committed (`as_of`).
    moment: DateTime<Utc>,
    /// Since the transaction began.
    spent_us: i64,
}

/// Moves the query on, and writes what every batch writes.
async fn batch_write(
    conn: &mut PgConnection,
    lease: LeaseEpoch,
    query: &StoredQuery,
    outcome: &Outcome,
    entry: &ProgressEntry,
) -> Result<Written, DatabaseError> {
    let write = sqlx::query(
        "select * from commit_batch($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
             $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35,
             $36, $37)",
    );
    let write = write
        .bind(lease.get())
        .bind(query.query_id)
        .bind(query.epoch)
        .bind(entry.batch_id.get())
        .bind(entry.position_from.get())
        .bind(entry.position_to.get())
        .bind(watermark_to_sql(outcome.watermarks.current))
        .bind(watermark_to_sql(outcome.watermarks.next))
        .bind(watermark_to_sql(outcome.watermarks.next_by_sources))
        .bind(outcome.newest_event_time.map(EventTime::to_utc));
    let write = bind_rows(write, &outcome.state_changed)?;
    let write = bind_rows(write, merged_rows(query, outcome))?;
    let row = bind_entry(write, entry).fetch_one(conn).await.doing("write a batch")?;
    let (leads, moment, spent_us): (bool, Option<DateTime<Utc>>, Option<i64>) =
        FromRow::from_row(&row).doing("read what was written of a batch")?;
    let moved = moment.zip(spent_us).ok_or_else(|| not_moved(leads));
    moved.map(|(moment, spent_us)| Written { moment, spent_us })
}

/// Writes what only some batches write.
async fn rest_write(
    conn: &mut PgConnection,
    query: &StoredQuery,
    outcome: &Outcome,
    moment: DateTime<Utc>,
) -> Result<(), DatabaseError> {
    state_remove(conn, query.query_id, outcome).await?;
    fault_point!("engine.state_removed");
    rows_finish(conn, query, outcome, moment).await?;
    fault_point!("engine.rows_finished");
    duplicates_write(conn, query.query_id, outcome).await?;
    fault_point!("engine.duplicates_written");
    dropped_insert(conn, query, outcome).await?;
    fault_point!("engine.dropped_written");
    Ok(())
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
