//! The audit trail: who did what to what was counted, and when. Entries are never changed, and
//! outlive what they speak of.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::types::Json;
use sqlx::{PgConnection, Postgres, QueryBuilder};

use super::error::Doing;
use super::values::unreadable;
use super::{Database, DatabaseError};
use crate::domain::{EventId, KeyId, QueryName};

/// An act that the trail knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditAction {
    /// Late events were booked as corrections.
    CorrectionsBooked,
    /// An event was let out of quarantine.
    QuarantineReleased,
    /// An event in quarantine will never count.
    QuarantineRejected,
    /// A query was started over.
    QueryReset,
    /// A query was deleted.
    QueryDeleted,
}

impl AuditAction {
    const ALL: [Self; 5] = [
        Self::CorrectionsBooked,
        Self::QuarantineReleased,
        Self::QuarantineRejected,
        Self::QueryReset,
        Self::QueryDeleted,
    ];

    /// The word of the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CorrectionsBooked => "corrections_booked",
            Self::QuarantineReleased => "quarantine_released",
            Self::QuarantineRejected => "quarantine_rejected",
            Self::QueryReset => "query_reset",
            Self::QueryDeleted => "query_deleted",
        }
    }
}

/// What happened, as it goes into the trail.
#[derive(Debug, Clone)]
pub struct AuditFact {
    /// What was done.
    pub action: AuditAction,
    /// To which query.
    pub query: Option<QueryName>,
    /// To which event.
    pub event_id: Option<EventId>,
    /// By whom, in their words.
    pub done_by: Option<String>,
    /// With which key, where there was one.
    pub key_id: Option<KeyId>,
    /// Why, in their words.
    pub note: Option<String>,
    /// What came of it, as a JSON object.
    pub details: Value,
}

/// An entry of the trail.
#[derive(Debug, Clone)]
pub struct AuditEntry {
    /// Its number; later entries have higher ones.
    pub number: i64,
    /// When, by the database's clock.
    pub at: DateTime<Utc>,
    /// What.
    pub fact: AuditFact,
}

/// Adds an entry inside the transaction of what it speaks of.
pub(super) async fn audit_insert(
    conn: &mut PgConnection,
    fact: &AuditFact,
) -> Result<(), DatabaseError> {
    sqlx::query(
        "insert into audit (action, query, event_id, done_by, note, details, key_id)
         values ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(fact.action.as_str())
    .bind(fact.query.as_ref().map(QueryName::as_str))
    .bind(fact.event_id.as_ref().map(EventId::as_str))
    .bind(fact.done_by.as_deref())
    .bind(fact.note.as_deref())
    .bind(Json(&fact.details))
    .bind(fact.key_id.as_ref().map(KeyId::as_str))
    .execute(conn)
    .await
    .doing("write the audit trail")?;
    Ok(())
}

#[derive(Debug, sqlx::FromRow)]
struct AuditColumns {
    number: i64,
    at: DateTime<Utc>,
    action: String,
    query: Option<String>,
    event_id: Option<String>,
    done_by: Option<String>,
    key_id: Option<String>,
    note: Option<String>,
    details: Json<Value>,
}

impl AuditColumns {
    fn read(self) -> Result<AuditEntry, DatabaseError> {
        let action = AuditAction::ALL.into_iter().find(|action| action.as_str() == self.action);
        let action = action.ok_or_else(|| unreadable("action of the audit trail", &self.action))?;
        let query = self.query.map(|name| name.parse()).transpose();
        let event_id = self.event_id.map(EventId::try_from).transpose();
        let key_id = self.key_id.map(|key_id| key_id.parse()).transpose();
        let fact = AuditFact {
            action,
            query: query.map_err(|error| unreadable("name of a query", error))?,
            event_id: event_id.map_err(|error| unreadable("event_id", error))?,
            done_by: self.done_by,
            key_id: key_id.map_err(|error| unreadable("key of the audit trail", error))?,
            note: self.note,
            details: self.details.0,
        };
        Ok(AuditEntry { number: self.number, at: self.at, fact })
    }
}

impl Database {
    /// Up to `limit` entries before the one with number `before`, newest first.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`] or [`DatabaseError::Unreadable`].
    pub async fn audit(
        &self,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, DatabaseError> {
        let mut select = QueryBuilder::<Postgres>::new("select * from audit where true");
        if let Some(before) = before {
            select.push(" and number < ").push_bind(before);
        }
        select.push(" order by number desc limit ").push_bind(i64::from(limit));
        let columns: Vec<AuditColumns> = select
            .build_query_as()
            .fetch_all(&mut *self.reader().await?)
            .await
            .doing("read the audit trail")?;
        columns.into_iter().map(AuditColumns::read).collect()
    }
}
