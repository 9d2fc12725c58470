//! Records that a query cannot process: it goes on without them, and says so.

use super::error::Doing;
use super::lease::{LeaseEpoch, lease_hold};
use super::queries::StoredQuery;
use super::{Database, DatabaseError};
use crate::domain::Seq;

impl Database {
    /// Moves a query past the next record of the raw log, which it cannot process, and keeps the
    /// reason. Answers where the record stands; nothing when there is none.
    ///
    /// # Errors
    /// [`DatabaseError::LeaseLost`], [`DatabaseError::ProgressMoved`] when another has been faster, or
    /// [`DatabaseError::Failed`].
    pub async fn poison_set_aside(
        &self,
        lease: LeaseEpoch,
        query: &StoredQuery,
        reason: &str,
    ) -> Result<Option<Seq>, DatabaseError> {
        let mut transaction = self.engine.begin().await.doing("begin setting a record aside")?;
        lease_hold(&mut transaction, lease).await?;
        let seq: Option<i64> =
            sqlx::query_scalar("select seq from raw_events where seq > $1 order by seq limit 1")
                .bind(query.position.get())
                .fetch_optional(&mut *transaction)
                .await
                .doing("find the record to set aside")?;
        let Some(seq) = seq else { return Ok(None) };
        let done = sqlx::query(
            "update queries set position = $5, error = null
             where query_id = $1 and epoch = $2 and next_batch_id = $3 and position = $4",
        )
        .bind(query.query_id)
        .bind(query.epoch)
        .bind(query.next_batch_id.get())
        .bind(query.position.get())
        .bind(seq)
        .execute(&mut *transaction)
        .await
        .doing("move a query past a record")?;
        if done.rows_affected() != 1 {
            return Err(DatabaseError::ProgressMoved);
        }
        // Under the lock of the query's row, so that a moment settled before has seen it (`as_of`).
        sqlx::query(
            "insert into poison_events (query_id, seq, reason, found_at)
             values ($1, $2, $3, clock_timestamp())",
        )
        .bind(query.query_id)
        .bind(seq)
        .bind(reason)
        .execute(&mut *transaction)
        .await
        .doing("keep why a record was set aside")?;
        transaction.commit().await.doing("set a record aside")?;
        Ok(Some(Seq::new(seq)))
    }
}
