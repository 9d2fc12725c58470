//! Figures for monitoring: of all queries in one look.

use sqlx::FromRow;

use super::error::Doing;
use super::{Database, DatabaseError};

/// Where a query stands, in the floating numbers of monitoring.
#[derive(Debug, Clone, FromRow)]
pub struct QueryGauges {
    /// Its name.
    pub name: String,
    /// The watermark in seconds since 1970; nothing before the first event.
    pub watermark_s: Option<f64>,
    /// How far that is behind the database's clock.
    pub watermark_lag_s: Option<f64>,
    /// Records after its position, counted up to a million.
    pub lag_events: f64,
    /// Windows in its state.
    pub open_windows: f64,
    /// Events that it goes on without.
    pub poison_events: f64,
    /// Whether it is paused.
    pub paused: bool,
    /// Whether its last attempt failed.
    pub failed: bool,
}

impl Database {
    /// Where the first `limit` queries by name stand.
    ///
    /// # Errors
    /// [`DatabaseError::ReadsBusy`] or [`DatabaseError::Failed`].
    pub async fn query_gauges(&self, limit: u32) -> Result<Vec<QueryGauges>, DatabaseError> {
        sqlx::query_as(
            "select name, status = 'paused' as paused, error is not null as failed,
                 extract(epoch from nullif(watermark, 'epoch'))::float8 as watermark_s,
                 extract(epoch from now() - nullif(watermark, 'epoch'))::float8 as watermark_lag_s,
                 (select count(*) from (select from raw_events where seq > position limit 1000000) unread
                     )::float8 as lag_events,
                 (select count(*) from window_state where window_state.query_id = queries.query_id
                     )::float8 as open_windows,
                 (select count(*) from poison_events where poison_events.query_id = queries.query_id
                     )::float8 as poison_events
             from queries order by name limit $1",
        )
        .bind(i64::from(limit))
        .fetch_all(&mut *self.reader().await?)
        .await
        .doing("read the figures of all queries")
    }
}
