//! Runs that are asked of a replica which does not lead: left here for the leader, with its answer.

use super::error::Doing;
use super::lease::LeaseEpoch;
use super::values::unreadable;
use super::{Database, DatabaseError};
use crate::domain::{BatchId, QueryName};

/// A run that somebody waits for.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// Its number.
    pub run_id: i64,
    /// The query to run.
    pub query: QueryName,
    /// The most batches; nothing: until nothing is left.
    pub batches_max: Option<u32>,
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunReply {
    /// It came to its end, by these batches.
    Ran(Vec<BatchId>),
    /// The query is paused.
    Paused,
    /// Too many runs of the query are waiting.
    Busy,
    /// A batch failed, for this reason.
    Failed(String),
}

/// Whether the request is still there, and the answer's columns.
type CollectedColumns = (bool, Option<String>, Option<String>, Option<Vec<i64>>);

impl Database {
    /// Asks the leader for a run and answers the request's number. Answers that nobody collected in an
    /// hour are removed.
    ///
    /// # Errors
    /// [`DatabaseError::NoSuchQuery`] or [`DatabaseError::Failed`].
    pub async fn run_request_put(
        &self,
        query: &QueryName,
        batches_max: Option<u32>,
    ) -> Result<i64, DatabaseError> {
        let run_id: Option<i64> = sqlx::query_scalar(
            "with forgotten as (
                 delete from run_requests where answer is not null and asked_at < now() - interval '1 hour'
             )
             insert into run_requests (query_id, batches_max) select query_id, $2 from queries where name = $1
             returning run_id",
        )
        .bind(query.as_str())
        .bind(batches_max.map(|max| i32::try_from(max).unwrap_or(i32::MAX)))
        .fetch_optional(&self.engine)
        .await
        .doing("ask the leader for a run")?;
        run_id.ok_or_else(|| DatabaseError::NoSuchQuery(query.clone()))
    }

    /// Takes what was asked and no leader of this epoch has taken, oldest first.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`] or [`DatabaseError::Unreadable`].
    pub async fn run_requests_take(
        &self,
        lease: LeaseEpoch,
    ) -> Result<Vec<RunRequest>, DatabaseError> {
        let rows: Vec<(i64, String, Option<i32>)> = sqlx::query_as(
            "with taken as (
                 update run_requests set epoch = $1 where epoch < $1 and answer is null
                 returning run_id, query_id, batches_max
             )
             select run_id, name, batches_max from taken join queries using (query_id) order by run_id",
        )
        .bind(lease.get())
        .fetch_all(&self.engine)
        .await
        .doing("look for runs that were asked for")?;
        rows.into_iter()
            .map(|(run_id, query, batches_max)| {
                let query = query.parse().map_err(|error| unreadable("name of a query", error))?;
                let batches_max = batches_max.and_then(|max| u32::try_from(max).ok());
                Ok(RunRequest { run_id, query, batches_max })
            })
            .collect()
    }

    /// Leaves the answer to a request, unless the query has been deleted since.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`].
    pub async fn run_request_answer(
        &self,
        run_id: i64,
        reply: &RunReply,
    ) -> Result<(), DatabaseError> {
        let (answer, error, batches) = match reply {
            RunReply::Ran(batches) => ("ran", None, Some(batches)),
            RunReply::Paused => ("paused", None, None),
            RunReply::Busy => ("busy", None, None),
            RunReply::Failed(error) => ("failed", Some(error), None),
        };
        sqlx::query(
            "update run_requests set answer = $2, error = $3, batch_ids = $4 where run_id = $1",
        )
        .bind(run_id)
        .bind(answer)
        .bind(error)
        .bind(batches.map(|batches| batches.iter().map(|id| id.get()).collect::<Vec<_>>()))
        .execute(&self.engine)
        .await
        .doing("answer a run")?;
        Ok(())
    }

    /// Takes the answer to a request of `query`, if it is there.
    ///
    /// # Errors
    /// [`DatabaseError::NoSuchQuery`] when the query was deleted, and the request with it;
    /// [`DatabaseError::Unreadable`] or [`DatabaseError::Failed`].
    pub async fn run_request_collect(
        &self,
        run_id: i64,
        query: &QueryName,
    ) -> Result<Option<RunReply>, DatabaseError> {
        let (is_there, answer, error, batches): CollectedColumns = sqlx::query_as(
            "with answered as (
                 delete from run_requests where run_id = $1 and answer is not null
                 returning answer, error, batch_ids
             )
             select exists (select from run_requests where run_id = $1), answer, error, batch_ids
             from (select) one_row left join answered on true",
        )
        .bind(run_id)
        .fetch_one(&self.engine)
        .await
        .doing("look for the answer to a run")?;
        if !is_there {
            return Err(DatabaseError::NoSuchQuery(query.clone()));
        }
        let Some(answer) = answer else { return Ok(None) };
        let batches = || batches.unwrap_or_default().into_iter().map(BatchId::new).collect();
        match answer.as_str() {
            "ran" => Ok(Some(RunReply::Ran(batches()))),
            "paused" => Ok(Some(RunReply::Paused)),
            "busy" => Ok(Some(RunReply::Busy)),
            "failed" => Ok(Some(RunReply::Failed(error.unwrap_or_default()))),
            other => Err(unreadable("answer to a run", other)),
        }
    }
}
