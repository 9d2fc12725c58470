//! Figures for monitoring: of all queries in one look that stays cheap however large they are.

use sqlx::FromRow;

use super::error::Doing;
use super::values::unreadable;
use super::{Database, DatabaseError};
use crate::domain::QueryName;

/// Where a query stands, in the floating numbers of monitoring.
#[derive(Debug, Clone)]
pub struct QueryGauges {
    /// Its name.
    pub name: QueryName,
    /// What is read of its row and counted.
    pub figures: QueryGaugeFigures,
}

/// What monitoring asks of a query.
#[derive(Debug, Clone, Copy, FromRow)]
pub struct QueryGaugeFigures {
    /// The watermark in seconds since 1970; nothing before the first event.
    pub watermark_s: Option<f64>,
    /// How far that is behind the database's clock.
    pub watermark_lag_s: Option<f64>,
    /// Records after its position: counted up to ten thousand, and beyond that by positions, of which
    /// an append that failed leaves some unused.
    pub lag_events: f64,
    /// Windows that its last batch left open.
    pub open_windows: f64,
    /// Events that it goes on without.
    pub poison_events: f64,
    /// Whether it is paused.
    pub paused: bool,
    /// Whether its last attempt failed.
    pub failed: bool,
}

#[derive(Debug, FromRow)]
struct GaugeColumns {
    name: String,
    #[sqlx(flatten)]
    figures: QueryGaugeFigures,
}

impl Database {
    /// Where the first `limit` queries by name stand.
    ///
    /// # Errors
    /// [`DatabaseError::ReadsBusy`], [`DatabaseError::Unreadable`] or [`DatabaseError::Failed`].
    pub async fn query_gauges(&self, limit: u32) -> Result<Vec<QueryGauges>, DatabaseError> {
        let columns: Vec<GaugeColumns> = sqlx::query_as(
            "with log as (select coalesce(max(seq), 0) as head from raw_events)
             select name, status = 'paused' as paused, error is not null as failed,
                 extract(epoch from nullif(watermark, 'epoch'))::float8 as watermark_s,
                 extract(epoch from now() - nullif(watermark, 'epoch'))::float8 as watermark_lag_s,
                 (case when head - position > 10000 then head - position
                     else (select count(*) from raw_events where seq > position) end)::float8 as lag_events,
                 coalesce((select state_windows from progress where progress.query_id = queries.query_id
                     order by batch_id desc limit 1), 0)::float8 as open_windows,
                 (select count(*) from poison_events where poison_events.query_id = queries.query_id
                     )::float8 as poison_events
             from queries cross join log order by name limit $1",
        )
        .bind(i64::from(limit))
        .fetch_all(&mut *self.reader().await?)
        .await
        .doing("read the figures of all queries")?;
        let gauges = columns.into_iter().map(|GaugeColumns { name, figures }| {
            let name = name.parse().map_err(|error| unreadable("name of a query", error))?;
            Ok(QueryGauges { name, figures })
        });
        gauges.collect()
    }

    /// The bytes of the stored state of a query.
    ///
    /// # Errors
    /// [`DatabaseError::ReadsBusy`] or [`DatabaseError::Failed`].
    pub async fn query_state_bytes(&self, name: &QueryName) -> Result<i64, DatabaseError> {
        sqlx::query_scalar(
            "select (select coalesce(sum(pg_column_size(window_state.*)), 0) from window_state
                     where window_state.query_id = queries.query_id)::bigint
                 + (select coalesce(sum(pg_column_size(duplicate_state.*)), 0) from duplicate_state
                     where duplicate_state.query_id = queries.query_id)::bigint
             from queries where name = $1",
        )
        .bind(name.as_str())
        .fetch_optional(&mut *self.reader().await?)
        .await
        .doing("read the size of a query's state")?
        .ok_or_else(|| DatabaseError::NoSuchQuery(name.clone()))
    }
}
