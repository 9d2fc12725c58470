//! Idle closing: when nothing is received for long enough, a heartbeat of the service's own says so
//! in the log, so that a replay on any day closes the same windows.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::append::lock_append;
use super::append_rows::draw_seqs;
use super::error::Doing;
use super::lease::{LeaseEpoch, lease_hold};
use super::partitions::LogRoom;
use super::queries::StoredQuery;
use super::{Database, DatabaseError};
use crate::domain::{EventTime, Seq, Span};

/// What came of looking for silence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silence {
    /// A heartbeat was appended here.
    Appended(Seq),
    /// It has not lasted long enough to close a window; look again after so long.
    TooShort(Span),
}

/// What a query waits for.
#[derive(Debug, Clone, Copy)]
pub struct IdleClosing {
    /// The silence that it takes for the end of all sources.
    pub timeout: Span,
    /// The time of a heartbeat that would close the first of its open windows: its end and the delay.
    pub closes_at: EventTime,
}

impl Database {
    /// Appends an idle heartbeat if nothing has been received for long enough to close a window of the
    /// query, and the query has read everything there is. Its time is that of the last record, moved on
    /// by as long as the silence has lasted, never ahead of now.
    ///
    /// Decided under the append lock: whatever was committed before has been read.
    ///
    /// # Errors
    /// [`DatabaseError::LeaseLost`] or [`DatabaseError::Failed`]; looking again is safe.
    pub async fn idle_heartbeat_append(
        &self,
        lease: LeaseEpoch,
        query: &StoredQuery,
        wanted: IdleClosing,
    ) -> Result<Silence, DatabaseError> {
        let mut conn = self.engine.acquire().await.doing("reach the database")?;
        // Most looks find that there is something to wait for, and those cost the tills nothing.
        if let Judged::TooShort(wait) = judge(&mut conn, query, wanted).await? {
            return Ok(Silence::TooShort(wait));
        }
        drop(conn);
        let mut transaction = self.engine.begin().await.doing("begin looking for silence")?;
        lease_hold(&mut transaction, lease).await?;
        lock_append(&mut transaction).await?;
        let (quiet, event_time) = match judge(&mut transaction, query, wanted).await? {
            Judged::TooShort(wait) => return Ok(Silence::TooShort(wait)),
            Judged::Closes { quiet, event_time } => (quiet, event_time),
        };
        let seqs = draw_seqs(&mut transaction, 1).await?;
        let seq = seqs.first().copied().unwrap_or(Seq::START);
        LogRoom::default().reach(&mut transaction, seq).await?;
        sqlx::query(
            "insert into raw_events (seq, received_at, kind, event_id, event_time, quiet_ms)
             values ($1, clock_timestamp(), 'idle_heartbeat', 'tillmark', $2, $3)",
        )
        .bind(seq.get())
        .bind(event_time.to_utc())
        .bind(quiet.as_millis())
        .execute(&mut *transaction)
        .await
        .doing("append an idle heartbeat")?;
        transaction.commit().await.doing("commit an idle heartbeat")?;
        Ok(Silence::Appended(seq))
    }
}

/// The database's clock, the end of the log, and when the last record that a source sent was received
/// and what time it speaks of.
type LastRecord = (DateTime<Utc>, i64, DateTime<Utc>, DateTime<Utc>);

/// Whether a heartbeat would close a window now.
enum Judged {
    Closes { quiet: Span, event_time: EventTime },
    TooShort(Span),
}

async fn judge(
    conn: &mut PgConnection,
    query: &StoredQuery,
    IdleClosing { timeout, closes_at }: IdleClosing,
) -> Result<Judged, DatabaseError> {
    let found: Option<LastRecord> = sqlx::query_as(
        "select clock_timestamp(), (select seq from raw_events order by seq desc limit 1),
             last.received_at, last.event_time
         from (select received_at, event_time from raw_events where kind <> 'idle_heartbeat'
             order by seq desc limit 1) last",
    )
    .fetch_optional(conn)
    .await
    .doing("look when something was received last")?;
    let Some((now, head, received_at, event_time)) = found else {
        return Ok(Judged::TooShort(timeout));
    };
    if head != query.position.get() {
        return Ok(Judged::TooShort(timeout));
    }
    let now = EventTime::from_utc(now);
    let quiet = now.since(EventTime::from_utc(received_at));
    let event_time = EventTime::from_utc(event_time).plus(quiet).min(now);
    let wait = missing(quiet, timeout).max(closes_at.since(event_time));
    Ok(match wait {
        Span::ZERO if event_time >= closes_at => Judged::Closes { quiet, event_time },
        // Parts of a millisecond are left.
        Span::ZERO => Judged::TooShort(Span::from_micros(1_000)),
        wait => Judged::TooShort(wait),
    })
}

/// How much of `whole` is still to come.
fn missing(part: Span, whole: Span) -> Span {
    Span::from_micros(whole.as_micros().saturating_sub(part.as_micros()))
}
