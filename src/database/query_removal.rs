//! Starting a query over, and deleting it: what it wrote goes, and the audit trail says how much.

use serde_json::{Map, Value};
use sqlx::PgConnection;

use super::audit::{AuditAction, AuditFact, audit_insert};
use super::error::Doing;
use super::queries::find;
use super::{Database, DatabaseError};
use crate::domain::{KeyId, QueryName};

/// Everything that a query writes, with the name that the audit trail counts it under.
const WRITTEN: [(&str, &str); 8] = [
    ("open_windows", "delete from window_state where query_id = $1"),
    ("remembered_keys", "delete from duplicate_state where query_id = $1"),
    ("poison_events", "delete from poison_events where query_id = $1"),
    ("rows", "delete from window_rows where query_id = $1"),
    ("row_versions", "delete from window_row_versions where query_id = $1"),
    ("dropped_events", "delete from dropped_events where query_id = $1"),
    ("progress", "delete from progress where query_id = $1"),
    ("corrections", "delete from corrections where query_id = $1"),
];

impl Database {
    /// Starts a query over from where it started: its rows, state, ledger, corrections and progress
    /// are removed.
    ///
    /// # Errors
    /// [`DatabaseError::NoSuchQuery`], [`DatabaseError::Unreadable`] or [`DatabaseError::Failed`].
    pub async fn query_reset(
        &self,
        name: &QueryName,
        key_id: Option<&KeyId>,
    ) -> Result<(), DatabaseError> {
        let mut transaction = self.engine.begin().await.doing("begin a reset")?;
        let query_id = find(&mut transaction, name, true).await?.query_id;
        sqlx::query(
            "update queries set epoch = epoch + 1, position = start_seq, next_batch_id = 0, error = null,
                 watermark = 'epoch', next_watermark = 'epoch', next_watermark_by_sources = 'epoch',
                 newest_event_time = null, history_since = clock_timestamp()
             where query_id = $1",
        )
        .bind(query_id)
        .execute(&mut *transaction)
        .await
        .doing("reset a query")?;
        let removed = remove_written(&mut transaction, query_id).await?;
        let fact = fact(AuditAction::QueryReset, name, key_id, removed);
        audit_insert(&mut transaction, &fact).await?;
        transaction.commit().await.doing("commit a reset")
    }

    /// Deletes a query and everything it wrote; the raw log and the audit trail stay.
    ///
    /// # Errors
    /// [`DatabaseError::NoSuchQuery`] or [`DatabaseError::Failed`].
    pub async fn query_delete(
        &self,
        name: &QueryName,
        key_id: Option<&KeyId>,
    ) -> Result<(), DatabaseError> {
        let mut transaction = self.engine.begin().await.doing("begin deleting a query")?;
        // Its rule is not read: a query that is damaged can be deleted too.
        let query_id: Option<i64> =
            sqlx::query_scalar("select query_id from queries where name = $1 for update")
                .bind(name.as_str())
                .fetch_optional(&mut *transaction)
                .await
                .doing("find the query to delete")?;
        let query_id = query_id.ok_or_else(|| DatabaseError::NoSuchQuery(name.clone()))?;
        let removed = remove_written(&mut transaction, query_id).await?;
        let fact = fact(AuditAction::QueryDeleted, name, key_id, removed);
        audit_insert(&mut transaction, &fact).await?;
        sqlx::query("delete from queries where query_id = $1")
            .bind(query_id)
            .execute(&mut *transaction)
            .await
            .doing("delete a query")?;
        transaction.commit().await.doing("commit deleting a query")
    }
}

/// Answers how much of each was removed.
async fn remove_written(
    conn: &mut PgConnection,
    query_id: i64,
) -> Result<Map<String, Value>, DatabaseError> {
    let mut removed = Map::new();
    for (what, delete) in WRITTEN {
        let done = sqlx::query(delete)
            .bind(query_id)
            .execute(&mut *conn)
            .await
            .doing("remove what a query wrote")?;
        removed.insert(what.to_owned(), done.rows_affected().into());
    }
    Ok(removed)
}

fn fact(
    action: AuditAction,
    name: &QueryName,
    key_id: Option<&KeyId>,
    removed: Map<String, Value>,
) -> AuditFact {
    AuditFact {
        action,
        query: Some(name.clone()),
        event_id: None,
        done_by: None,
        key_id: key_id.cloned(),
        note: None,
        details: Value::Object(Map::from_iter([("removed".to_owned(), Value::Object(removed))])),
    }
}
