//! Idle closing: when nothing is received for long enough, a heartbeat of the service's own says so
//! in the log, so that a replay on any day closes the same windows.

use chrono::{DateTime, Utc};

use super::append::lock_append;
use super::append_rows::draw_seqs;
use super::error::Doing;
use super::partitions::LogRoom;
use super::queries::StoredQuery;
use super::{Database, DatabaseError};
use crate::domain::{EventTime, Seq, Span};

/// What came of looking for silence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silence {
    /// A heartbeat was appended here.
    Appended(Seq),
    /// It has not lasted long enough; look again after so long.
    TooShort(Span),
}

impl Database {
    /// Appends an idle heartbeat if nothing has been received for `timeout`, and the query has read
    /// everything there is. Its time is the newest event's, moved on by as long as the silence has
    /// lasted, never ahead of now.
    ///
    /// Decided under the append lock: whatever was committed before has been read.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`]; looking again is safe.
    pub async fn idle_heartbeat_append(
        &self,
        query: &StoredQuery,
        timeout: Span,
    ) -> Result<Silence, DatabaseError> {
        let Some(newest) = query.newest_event_time else { return Ok(Silence::TooShort(timeout)) };
        let mut transaction = self.engine.begin().await.doing("begin looking for silence")?;
        let now = lock_append(&mut transaction).await?;
        let (head, last_received, last_heartbeat): (
            Option<i64>,
            Option<DateTime<Utc>>,
            Option<DateTime<Utc>>,
        ) = sqlx::query_as(
            "with last as (
                 select seq, received_at from raw_events where kind <> 'idle_heartbeat'
                 order by seq desc limit 1
             )
             select (select seq from raw_events order by seq desc limit 1),
                 (select received_at from last),
                 (select received_at from raw_events
                  where kind = 'idle_heartbeat' and quiet_ms >= $1 and seq > (select seq from last)
                  order by seq desc limit 1)",
        )
        .bind(timeout.as_millis())
        .fetch_one(&mut *transaction)
        .await
        .doing("look when something was received last")?;
        let since = |then: DateTime<Utc>| EventTime::from_utc(now).since(EventTime::from_utc(then));
        let quiet = last_received.map_or(Span::ZERO, since);
        let waited = last_heartbeat.map_or(quiet, since);
        if waited < timeout || head != Some(query.position.get()) {
            // At least a moment, should something be left to read first.
            let left = Span::from_micros(timeout.as_micros().saturating_sub(waited.as_micros()));
            return Ok(Silence::TooShort(left.max(Span::from_micros(10_000))));
        }
        let event_time = newest.plus(quiet).min(EventTime::from_utc(now)).max(newest);
        let seqs = draw_seqs(&mut transaction, 1).await?;
        let seq = seqs.first().copied().unwrap_or(Seq::START);
        LogRoom::default().reach(&mut transaction, seq).await?;
        sqlx::query(
            "insert into raw_events (seq, received_at, kind, event_id, event_time, quiet_ms)
             values ($1, $2, 'idle_heartbeat', 'tillmark', $3, $4)",
        )
        .bind(seq.get())
        .bind(now)
        .bind(event_time.to_utc())
        .bind(quiet.as_millis())
        .execute(&mut *transaction)
        .await
        .doing("append an idle heartbeat")?;
        transaction.commit().await.doing("commit an idle heartbeat")?;
        Ok(Silence::Appended(seq))
    }
}
