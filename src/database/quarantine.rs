//! Quarantine: events that claim to come from the future.

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::{PgConnection, Postgres, QueryBuilder};

use super::append::{AppendRequest, Release, lock_append};
use super::append_rows::bind_events;
use super::audit::{AuditAction, AuditFact, audit_insert};
use super::error::Doing;
use super::raw_log::EventColumns;
use super::{Database, DatabaseError};
use crate::domain::{Event, EventId, EventTime, IdentifiedEvent, KeyId, Note, Seq, Span};

/// An event that is, or was, in quarantine.
#[derive(Debug, Clone)]
pub struct Quarantined {
    /// As it was posted.
    pub event: Event,
    /// When, by the database's clock.
    pub received_at: DateTime<Utc>,
    /// Why it is here.
    pub reason: String,
    /// What somebody decided, if anybody has.
    pub resolution: Option<Resolution>,
}

/// What became of an event in quarantine.
#[derive(Debug, Clone)]
pub struct Resolution {
    /// `release` or `reject`.
    pub action: String,
    /// When, by the database's clock.
    pub resolved_at: DateTime<Utc>,
    /// Why, by whoever decided.
    pub note: String,
    /// Where a released event stands in the log, and the time that it counts at.
    pub released: Option<(Seq, EventTime)>,
}

#[derive(Debug, sqlx::FromRow)]
struct QuarantineColumns {
    #[sqlx(flatten)]
    event: EventColumns,
    received_at: DateTime<Utc>,
    reason: String,
    resolved_at: Option<DateTime<Utc>>,
    action: Option<String>,
    note: Option<String>,
    released_seq: Option<i64>,
    released_event_time: Option<DateTime<Utc>>,
}

impl QuarantineColumns {
    fn read(self) -> Result<Quarantined, DatabaseError> {
        let released = self.released_seq.zip(self.released_event_time);
        let resolution = match (self.action, self.resolved_at, self.note) {
            (Some(action), Some(resolved_at), Some(note)) => Some(Resolution {
                action,
                resolved_at,
                note,
                released: released
                    .map(|(seq, event_time)| (Seq::new(seq), EventTime::from_utc(event_time))),
            }),
            _ => None,
        };
        Ok(Quarantined {
            event: self.event.read()?.event,
            received_at: self.received_at,
            reason: self.reason,
            resolution,
        })
    }
}

const SELECT: &str = "select 0::bigint as seq, *, \
     (select event_time from raw_events where seq = released_seq) as released_event_time \
     from quarantine where ";

/// Where a page of the quarantine goes on: after this entry.
#[derive(Debug, Clone)]
pub struct QuarantineCursor {
    /// When the last entry of the page before was received.
    pub received_at: DateTime<Utc>,
    /// Its event.
    pub event_id: EventId,
}

impl Database {
    /// Up to `limit` events that wait in quarantine, the oldest first.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`] or [`DatabaseError::Unreadable`].
    pub async fn quarantine(
        &self,
        after: Option<&QuarantineCursor>,
        limit: u32,
    ) -> Result<Vec<Quarantined>, DatabaseError> {
        let mut conn = self.reader().await?;
        let mut select = QueryBuilder::<Postgres>::new(SELECT);
        select.push("resolved_at is null");
        if let Some(QuarantineCursor { received_at, event_id }) = after {
            select.push(" and (received_at, event_id) > (").push_bind(*received_at);
            select.push(", ").push_bind(event_id.as_str()).push(")");
        }
        select.push(" order by received_at, event_id limit ").push_bind(i64::from(limit));
        let rows: Vec<QuarantineColumns> =
            select.build_query_as().fetch_all(&mut *conn).await.doing("read the quarantine")?;
        rows.into_iter().map(QuarantineColumns::read).collect()
    }

    /// One event that is or was in quarantine.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`] or [`DatabaseError::Unreadable`].
    pub async fn quarantined(
        &self,
        event_id: &EventId,
    ) -> Result<Option<Quarantined>, DatabaseError> {
        let mut conn = self.reader().await?;
        find(&mut conn, event_id).await
    }

    /// Rejects an event that waits in quarantine: it never counts. Says whether it was waiting.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`].
    pub async fn quarantine_reject(
        &self,
        event_id: &EventId,
        note: &Note,
        key_id: Option<&KeyId>,
    ) -> Result<bool, DatabaseError> {
        let mut transaction = self.engine.begin().await.doing("begin a rejection")?;
        // As everything whose moment counts in a report as of another (`as_of`).
        let moment = lock_append(&mut transaction).await?;
        let done = sqlx::query(
            "update quarantine set resolved_at = $3, action = 'reject', note = $2
             where event_id = $1 and resolved_at is null",
        )
        .bind(event_id.as_str())
        .bind(note.as_str())
        .bind(moment)
        .execute(&mut *transaction)
        .await
        .doing("reject an event in quarantine")?;
        if done.rows_affected() == 0 {
            return Ok(false);
        }
        let action = AuditAction::QuarantineRejected;
        let fact = AuditFact { key_id: key_id.cloned(), ..decision_fact(action, event_id, note) };
        audit_insert(&mut transaction, &fact).await?;
        transaction.commit().await.doing("commit a rejection")?;
        Ok(true)
    }
}

fn decision_fact(action: AuditAction, event_id: &EventId, note: &Note) -> AuditFact {
    AuditFact {
        action,
        query: None,
        event_id: Some(event_id.clone()),
        done_by: None,
        key_id: None,
        note: Some(note.to_string()),
        details: json!({}),
    }
}

/// One event that is or was in quarantine, inside the caller's transaction.
pub(super) async fn find(
    conn: &mut PgConnection,
    event_id: &EventId,
) -> Result<Option<Quarantined>, DatabaseError> {
    let mut select = QueryBuilder::<Postgres>::new(SELECT);
    select.push("event_id = ").push_bind(event_id.as_str());
    let row: Option<QuarantineColumns> =
        select.build_query_as().fetch_optional(conn).await.doing("read the quarantine")?;
    row.map(QuarantineColumns::read).transpose()
}

/// Puts events aside, and takes their ids.
pub(super) async fn quarantine_insert(
    conn: &mut PgConnection,
    aside: &[&IdentifiedEvent],
    now: DateTime<Utc>,
    skew_max: Option<Span>,
) -> Result<(), DatabaseError> {
    let Some(skew_max) = skew_max.filter(|_| !aside.is_empty()) else { return Ok(()) };
    let reason = format!(
        "its event_time was more than {skew_max} ahead of the database's clock, {}",
        EventTime::from_utc(now)
    );
    let hashes: Vec<&[u8]> = aside.iter().map(|one| one.content_hash.0.as_slice()).collect();
    let insert = sqlx::query(
        "insert into quarantine (received_at, reason, content_hash, event_id, order_id, status, amount,
             currency, event_time, store_id, till_id, customer_id, item_count, attributes)
         select $1, $2, content_hash, event_id, order_id, status, amount, currency, event_time, store_id,
             till_id, customer_id, item_count, attribute_text::jsonb
         from unnest($3::bytea[], $4::text[], $5::text[], $6::text[], $7::numeric[], $8::text[],
             $9::timestamptz[], $10::text[], $11::text[], $12::text[], $13::bigint[], $14::text[])
             as aside (content_hash, event_id, order_id, status, amount, currency, event_time, store_id,
             till_id, customer_id, item_count, attribute_text)",
    )
    .bind(now)
    .bind(reason)
    .bind(hashes.clone());
    let events: Vec<&Event> = aside.iter().map(|identified| &identified.event).collect();
    bind_events(insert, &events).execute(&mut *conn).await.doing("put events in quarantine")?;
    sqlx::query(
        "insert into event_keys (event_id, content_hash, seq)
         select event_id, content_hash, null
         from unnest($1::text[], $2::bytea[]) as aside (event_id, content_hash)",
    )
    .bind(events.iter().map(|event| event.event_id.as_str()).collect::<Vec<_>>())
    .bind(hashes)
    .execute(conn)
    .await
    .doing("take the ids of events in quarantine")?;
    Ok(())
}

/// The events that `requests` want to release, as far as they wait in quarantine.
pub(super) async fn quarantined_for_release(
    conn: &mut PgConnection,
    requests: &[AppendRequest],
) -> Result<Vec<Quarantined>, DatabaseError> {
    let ids: Vec<&str> = requests
        .iter()
        .filter_map(|request| match request {
            AppendRequest::Release(release) => Some(release.event_id.as_str()),
            AppendRequest::Events { .. } | AppendRequest::Heartbeat(_) => None,
        })
        .collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut select = QueryBuilder::<Postgres>::new(SELECT);
    select.push("resolved_at is null and event_id = any(").push_bind(ids).push(") for update");
    let rows: Vec<QuarantineColumns> =
        select.build_query_as().fetch_all(conn).await.doing("read what is to be released")?;
    rows.into_iter().map(QuarantineColumns::read).collect()
}

/// Appends released events to the log, each at the time it counts at.
pub(super) async fn quarantine_release(
    conn: &mut PgConnection,
    releases: &[(&Release, &Quarantined)],
    seqs: &[Seq],
) -> Result<(), DatabaseError> {
    for ((release, quarantined), seq) in releases.iter().zip(seqs) {
        sqlx::query(
            "with released as (
                 update quarantine set resolved_at = clock_timestamp(), action = 'release', note = $3, released_seq = $2
                 where event_id = $1 returning *
             ), known as (
                 update event_keys set seq = $2 where event_id = $1
             )
             insert into raw_events (seq, received_at, event_id, order_id, status, amount, currency,
                 event_time, store_id, till_id, customer_id, item_count, attributes)
             select $2, clock_timestamp(), event_id, order_id, status, amount, currency,
                 coalesce($4, event_time), store_id, till_id, customer_id, item_count, attributes
             from released",
        )
        .bind(release.event_id.as_str())
        .bind(seq.get())
        .bind(release.note.as_str())
        .bind(release.event_time.map(EventTime::to_utc))
        .execute(&mut *conn)
        .await
        .doing("release an event from quarantine")?;
        let counts_at = release.event_time.unwrap_or(quarantined.event.event_time);
        let details = json!({
            "seq": seq.get(),
            "event_time": counts_at.to_string(),
            "posted_event_time": quarantined.event.event_time.to_string(),
        });
        let action = AuditAction::QuarantineReleased;
        let fact = decision_fact(action, &release.event_id, &release.note);
        let fact = AuditFact { key_id: release.key_id.clone(), details, ..fact };
        audit_insert(conn, &fact).await?;
    }
    Ok(())
}
