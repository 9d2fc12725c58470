//! Queries: their rules, and where each stands.

use chrono::{DateTime, Utc};
use sqlx::types::Json;
use sqlx::{PgConnection, Postgres, QueryBuilder};

use super::error::Doing;
use super::lease::LeaseEpoch;
use super::values::{unreadable, watermark_from_sql};
use super::{Database, DatabaseError};
use crate::domain::{
    BatchId, EventTime, OutputMode, QueryName, QuerySpec, QuerySpecText, Seq, Start, Window,
};
use crate::engine::Watermarks;

/// A query's row: its rule and its whole progress.
#[derive(Debug, Clone)]
pub struct StoredQuery {
    /// The database's own number for it; a new one when a query is deleted and created again.
    pub query_id: i64,
    /// Its name.
    pub name: QueryName,
    /// Its rule.
    pub spec: QuerySpec,
    /// Whether it shall not run.
    pub paused: bool,
    /// Why its last attempt failed, if it did.
    pub error: Option<String>,
    /// Raised by whoever changes the query from outside, so that a batch in progress cannot commit.
    pub epoch: i64,
    /// It counts what stands after this.
    pub start_seq: Seq,
    /// It has read everything up to this.
    pub position: Seq,
    /// The number of its next micro-batch.
    pub next_batch_id: BatchId,
    /// Those after its last batch.
    pub watermarks: Watermarks,
    /// The newest event time that it has seen.
    pub newest_event_time: Option<EventTime>,
    /// Whether it goes on without events that it could not process.
    pub has_poison_events: bool,
}

impl StoredQuery {
    /// The number of the last micro-batch, if there was one.
    pub fn last_batch_id(&self) -> Option<BatchId> {
        (self.next_batch_id > BatchId::FIRST).then(|| BatchId::new(self.next_batch_id.get() - 1))
    }

    /// Every window that ends by this moment is final; nothing while none is, and in complete mode,
    /// where none ever is.
    pub fn complete_through(&self) -> Option<EventTime> {
        let closes = self.spec.output_mode != OutputMode::Complete;
        closes.then(|| self.spec.window.complete_through(self.watermarks.current)).flatten()
    }

    /// Whether a window is final.
    pub fn closes(&self, window: Window) -> bool {
        self.spec.output_mode != OutputMode::Complete
            && window.is_closed_at(self.watermarks.current)
    }

    /// Whether a batch without data is due once the log has nothing more.
    pub fn owes_batch_without_data(&self) -> bool {
        let Watermarks { current, next, .. } = self.watermarks;
        self.spec.output_mode.owes_batch_without_data(current, next)
    }
}

pub(super) const COLUMNS: &str = "query_id, name, spec, status, error, epoch, start_seq, position, next_batch_id, watermark, \
     next_watermark, next_watermark_by_sources, newest_event_time, \
     exists (select from poison_events poison where poison.query_id = queries.query_id) as has_poison_events";

#[derive(Debug, sqlx::FromRow)]
pub(super) struct QueryColumns {
    query_id: i64,
    name: String,
    spec: Json<QuerySpecText>,
    status: String,
    error: Option<String>,
    epoch: i64,
    start_seq: i64,
    position: i64,
    next_batch_id: i64,
    watermark: DateTime<Utc>,
    next_watermark: DateTime<Utc>,
    next_watermark_by_sources: DateTime<Utc>,
    newest_event_time: Option<DateTime<Utc>>,
    has_poison_events: bool,
}

impl QueryColumns {
    pub(super) fn read(self) -> Result<StoredQuery, DatabaseError> {
        let faults = |faults: Vec<crate::domain::Fault>| {
            let details: Vec<String> =
                faults.iter().map(|fault| format!("{} {}", fault.pointer, fault.detail)).collect();
            unreadable("rule of a query", details.join("; "))
        };
        Ok(StoredQuery {
            query_id: self.query_id,
            name: self.name.parse().map_err(|error| unreadable("name of a query", error))?,
            spec: self.spec.0.try_into().map_err(faults)?,
            paused: self.status == "paused",
            error: self.error,
            epoch: self.epoch,
            start_seq: Seq::new(self.start_seq),
            position: Seq::new(self.position),
            next_batch_id: BatchId::new(self.next_batch_id),
            watermarks: Watermarks {
                current: watermark_from_sql(self.watermark),
                next: watermark_from_sql(self.next_watermark),
                next_by_sources: watermark_from_sql(self.next_watermark_by_sources),
            },
            newest_event_time: self.newest_event_time.map(EventTime::from_utc),
            has_poison_events: self.has_poison_events,
        })
    }
}

/// Reads one query inside the caller's transaction.
pub(super) async fn find(
    conn: &mut PgConnection,
    name: &QueryName,
    lock: bool,
) -> Result<StoredQuery, DatabaseError> {
    let mut select = QueryBuilder::<Postgres>::new("select ");
    select.push(COLUMNS).push(" from queries where name = ").push_bind(name.as_str());
    if lock {
        select.push(" for update");
    }
    let columns: Option<QueryColumns> =
        select.build_query_as().fetch_optional(conn).await.doing("read a query")?;
    columns.ok_or_else(|| DatabaseError::NoSuchQuery(name.clone()))?.read()
}

/// Reads all queries, by name, inside the caller's transaction.
pub(super) async fn all(conn: &mut PgConnection) -> Result<Vec<StoredQuery>, DatabaseError> {
    let mut select = QueryBuilder::<Postgres>::new("select ");
    select.push(COLUMNS).push(" from queries order by name");
    let columns: Vec<QueryColumns> =
        select.build_query_as().fetch_all(conn).await.doing("list queries")?;
    columns.into_iter().map(QueryColumns::read).collect()
}

/// Tells whether a query is still the one that was read, and unchanged from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryVersion {
    query_id: i64,
    epoch: i64,
}

/// What a PUT did.
#[derive(Debug, Clone)]
pub enum QueryPut {
    /// There was none of that name.
    Created,
    /// It was there and has the new rule now, or had it already.
    Changed,
    /// It was there, and the new rule would make it another query.
    Refused(Vec<crate::domain::Fault>),
}

impl Database {
    /// Creates the query, or changes of it what may change.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`].
    pub async fn query_put(
        &self,
        name: &QueryName,
        spec: &QuerySpec,
    ) -> Result<QueryPut, DatabaseError> {
        let mut transaction = self.engine.begin().await.doing("begin a change of a query")?;
        if query_insert(&mut transaction, name, spec).await? {
            transaction.commit().await.doing("create a query")?;
            return Ok(QueryPut::Created);
        }
        let stored = find(&mut transaction, name, true).await?;
        let faults = stored.spec.faults_of_change(spec);
        if !faults.is_empty() {
            return Ok(QueryPut::Refused(faults));
        }
        let spec = QuerySpec { start: stored.spec.start, ..spec.clone() };
        if spec == stored.spec {
            return Ok(QueryPut::Changed);
        }
        sqlx::query("update queries set spec = $2, epoch = epoch + 1 where query_id = $1")
            .bind(stored.query_id)
            .bind(Json(QuerySpecText::from(&spec)))
            .execute(&mut *transaction)
            .await
            .doing("change a query")?;
        transaction.commit().await.doing("change a query")?;
        Ok(QueryPut::Changed)
    }

    /// One query.
    ///
    /// # Errors
    /// [`DatabaseError::NoSuchQuery`], [`DatabaseError::Unreadable`] or [`DatabaseError::Failed`].
    pub async fn query(&self, name: &QueryName) -> Result<StoredQuery, DatabaseError> {
        let mut conn = self.reader().await?;
        find(&mut conn, name, false).await
    }

    /// Up to `limit` queries whose names come after `after`, by name.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`] or [`DatabaseError::Unreadable`].
    pub async fn queries(
        &self,
        after: Option<&QueryName>,
        limit: u32,
    ) -> Result<Vec<StoredQuery>, DatabaseError> {
        let mut select = QueryBuilder::<Postgres>::new("select ");
        select.push(COLUMNS).push(" from queries where name > ");
        select.push_bind(after.map_or("", QueryName::as_str));
        select.push(" order by name limit ").push_bind(i64::from(limit));
        let columns: Vec<QueryColumns> = select
            .build_query_as()
            .fetch_all(&mut *self.reader().await?)
            .await
            .doing("list queries")?;
        columns.into_iter().map(QueryColumns::read).collect()
    }

    /// The names of all queries and the version each is in; nothing else of them is read, so one
    /// that is damaged does not hide the others.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`].
    pub async fn query_versions(&self) -> Result<Vec<(QueryName, QueryVersion)>, DatabaseError> {
        let rows: Vec<(String, i64, i64)> =
            sqlx::query_as("select name, query_id, epoch from queries")
                .fetch_all(&self.engine)
                .await
                .doing("list queries")?;
        rows.into_iter()
            .map(|(name, query_id, epoch)| {
                let name = name.parse().map_err(|error| unreadable("name of a query", error))?;
                Ok((name, QueryVersion { query_id, epoch }))
            })
            .collect()
    }

    /// Creates the queries that every shop starts with, the first time a database is used; later
    /// a query that somebody deleted stays deleted.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`].
    pub async fn queries_create_first(
        &self,
        first: &[(QueryName, QuerySpec)],
    ) -> Result<(), DatabaseError> {
        let mut transaction =
            self.engine.begin().await.doing("begin creating the first queries")?;
        let used: bool = sqlx::query_scalar("select is_called from queries_query_id_seq")
            .fetch_one(&mut *transaction)
            .await
            .doing("see whether there was a query before")?;
        if !used {
            for (name, spec) in first {
                query_insert(&mut transaction, name, spec).await?;
            }
        }
        transaction.commit().await.doing("create the first queries")
    }

    /// Pauses or resumes a query. A batch that is running when it is paused cannot commit any more.
    ///
    /// # Errors
    /// [`DatabaseError::NoSuchQuery`] or [`DatabaseError::Failed`].
    pub async fn query_pause(&self, name: &QueryName, paused: bool) -> Result<(), DatabaseError> {
        let status = if paused { "paused" } else { "running" };
        let done = sqlx::query(
            "update queries
             set status = $2, error = null, epoch = epoch + case when status = $2 then 0 else 1 end
             where name = $1",
        )
        .bind(name.as_str())
        .bind(status)
        .execute(&self.engine)
        .await
        .doing("pause or resume a query")?;
        if done.rows_affected() == 0 {
            Err(DatabaseError::NoSuchQuery(name.clone()))
        } else {
            Ok(())
        }
    }

    /// Notes why a query's last attempt failed, for everybody who asks after it; only the leader may.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`].
    pub async fn query_failed(
        &self,
        lease: LeaseEpoch,
        name: &QueryName,
        error: &str,
    ) -> Result<(), DatabaseError> {
        sqlx::query(
            "with leader as (select epoch from leadership where epoch = $3 for key share)
             update queries set error = $2 from leader where name = $1",
        )
        .bind(name.as_str())
        .bind(error)
        .bind(lease.get())
        .execute(&self.engine)
        .await
        .doing("note a query's failure")?;
        Ok(())
    }
}

/// Inserts a query unless its name is taken; says whether it did.
pub(super) async fn query_insert(
    conn: &mut PgConnection,
    name: &QueryName,
    spec: &QuerySpec,
) -> Result<bool, DatabaseError> {
    let done = sqlx::query(
        "insert into queries (name, spec, start_seq, position)
         select $1, $2, start.seq, start.seq
         from (select case when $3 then coalesce((select max(seq) from raw_events), 0) else 0 end as seq) start
         on conflict (name) do nothing",
    )
    .bind(name.as_str())
    .bind(Json(QuerySpecText::from(spec)))
    .bind(spec.start == Start::Latest)
    .execute(conn)
    .await
    .doing("create a query")?;
    Ok(done.rows_affected() == 1)
}
