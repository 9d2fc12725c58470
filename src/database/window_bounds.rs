//! How far a query's output rows reach.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::error::Doing;
use super::{Database, DatabaseError};
use crate::domain::EventTime;

impl Database {
    /// The start of a query's first window and the end of its last; of tumbling windows, which end in the
    /// order of their starts. Nothing while there are none.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`].
    pub async fn window_bounds(
        &self,
        query_id: i64,
    ) -> Result<Option<(EventTime, EventTime)>, DatabaseError> {
        window_bounds_read(&mut *self.reader().await?, query_id).await
    }
}

/// The same inside the caller's transaction.
pub(super) async fn window_bounds_read(
    conn: &mut PgConnection,
    query_id: i64,
) -> Result<Option<(EventTime, EventTime)>, DatabaseError> {
    let bounds: (Option<DateTime<Utc>>, Option<DateTime<Utc>>) = sqlx::query_as(
        "select (select window_start from window_rows where query_id = $1
                 order by window_start, window_end limit 1),
             (select window_end from window_rows where query_id = $1
                 order by window_start desc, window_end desc limit 1)",
    )
    .bind(query_id)
    .fetch_one(conn)
    .await
    .doing("read how far the output rows reach")?;
    let (Some(first), Some(end)) = bounds else { return Ok(None) };
    Ok(Some((EventTime::from_utc(first), EventTime::from_utc(end))))
}
