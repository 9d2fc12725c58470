//! Forgetting event ids that were received so long ago that no retry will come.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::error::Doing;
use super::{Database, DatabaseError};
use crate::domain::{Seq, Span};

/// Events whose ids are removed by one statement, so that none runs for long.
const FORGET_AT_ONCE: i64 = 20_000;

impl Database {
    /// Forgets the ids of events that were received more than `retention` ago; their events stay.
    /// Answers how many.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`]; what is forgotten by then stays so, and trying again is safe.
    pub async fn event_ids_forget(&self, retention: Span) -> Result<u64, DatabaseError> {
        let mut conn = self.engine.acquire().await.doing("reach the database")?;
        let first_kept = first_received_within(&mut conn, retention).await?;
        let mut forgotten = 0;
        while let Some(ids) = forget_some(&mut conn, first_kept).await? {
            forgotten += ids;
        }
        Ok(forgotten)
    }
}

/// Forgets the ids of the oldest events that still have theirs, and answers how many; nothing when none
/// is left before `first_kept`. An id that was taken anew since, or waits in quarantine, stands elsewhere.
async fn forget_some(
    conn: &mut PgConnection,
    first_kept: Seq,
) -> Result<Option<u64>, DatabaseError> {
    let (reached, forgotten): (Option<i64>, i64) = sqlx::query_as(
        "with old as materialized (
             select seq, event_id from raw_events
             where seq >= (select forgotten_before from event_id_retention) and seq < $1
             order by seq limit $2
         ), forgotten as (
             delete from event_keys
             where event_id = any (array(select event_id from old)) and seq < $1
             returning seq
         ), moved as (
             update event_id_retention set forgotten_before = greatest(forgotten_before, (select max(seq) + 1 from old))
             where exists (select from old)
         )
         select (select max(seq) from old), (select count(*) from forgotten)",
    )
    .bind(first_kept.get())
    .bind(FORGET_AT_ONCE)
    .fetch_one(conn)
    .await
    .doing("forget event ids")?;
    Ok(reached.map(|_| forgotten.unsigned_abs()))
}

/// The first position that was received within `retention`. Positions are drawn in the order of
/// receipt, so it is found by halving, without an index on the time.
async fn first_received_within(
    conn: &mut PgConnection,
    retention: Span,
) -> Result<Seq, DatabaseError> {
    let since: DateTime<Utc> = sqlx::query_scalar("select now() - $1 * interval '1 millisecond'")
        .bind(retention.as_millis())
        .fetch_one(&mut *conn)
        .await
        .doing("read the clock")?;
    let head: Option<i64> =
        sqlx::query_scalar("select seq from raw_events order by seq desc limit 1")
            .fetch_optional(&mut *conn)
            .await
            .doing("find the end of the raw log")?;
    let (mut low, mut high) = (0, head.map_or(0, |head| head.saturating_add(1)));
    while low < high {
        let middle = low + (high - low) / 2;
        let found: Option<(i64, DateTime<Utc>)> = sqlx::query_as(
            "select seq, received_at from raw_events where seq >= $1 order by seq limit 1",
        )
        .bind(middle)
        .fetch_optional(&mut *conn)
        .await
        .doing("look for the first id to keep")?;
        match found {
            Some((seq, received_at)) if received_at < since => low = seq.saturating_add(1),
            Some(_) | None => high = middle,
        }
    }
    Ok(Seq::new(low))
}
