//! How far a query is behind, and how much it holds.

use sqlx::FromRow;

use super::error::Doing;
use super::progress::CommittedProgress;
use super::queries::StoredQuery;
use super::{Database, DatabaseError};

/// Figures of a query as they stand now.
#[derive(Debug, Clone)]
pub struct QueryFigures {
    /// Records in the raw log after its position.
    pub lag_events: i64,
    /// Windows in its state.
    pub open_windows: i64,
    /// Bytes of its stored state.
    pub state_bytes: i64,
    /// Events that it could not process, and goes on without.
    pub poison_events: i64,
    /// Its newest progress entry.
    pub last_progress: Option<CommittedProgress>,
}

#[derive(Debug, FromRow)]
struct FigureColumns {
    lag_events: i64,
    open_windows: i64,
    state_bytes: i64,
    poison_events: i64,
}

impl Database {
    /// The figures of one query.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`] or [`DatabaseError::Unreadable`].
    pub async fn query_figures(&self, query: &StoredQuery) -> Result<QueryFigures, DatabaseError> {
        let figures: FigureColumns = sqlx::query_as(
            "select (select count(*) from raw_events where seq > $2) as lag_events,
                 count(*) as open_windows,
                 coalesce(sum(pg_column_size(window_state.*)), 0)::bigint
                     + (select coalesce(sum(pg_column_size(duplicate_state.*)), 0)::bigint
                         from duplicate_state where query_id = $1) as state_bytes,
                 (select count(*) from poison_events where query_id = $1) as poison_events
             from window_state where query_id = $1",
        )
        .bind(query.query_id)
        .bind(query.position.get())
        .fetch_one(&mut *self.reader().await?)
        .await
        .doing("read a query's figures")?;
        let last_progress = self.progress(Some(&query.name), None, 1).await?.pop();
        let FigureColumns { lag_events, open_windows, state_bytes, poison_events } = figures;
        Ok(QueryFigures { lag_events, open_windows, state_bytes, poison_events, last_progress })
    }
}
