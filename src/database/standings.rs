//! Where queries stand: each query's row, and what tells whether anything that a read of its output
//! shows has changed since another look.

use chrono::{DateTime, Utc};
use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, Postgres, QueryBuilder};

use super::error::Doing;
use super::queries::{COLUMNS, QueryColumns, StoredQuery};
use super::{Database, DatabaseError};
use crate::domain::{BatchId, QueryName};

/// A query as it stands.
#[derive(Debug, Clone)]
pub struct Standing {
    /// The query.
    pub query: StoredQuery,
    /// What its output is as of.
    pub revision: Revision,
}

/// Differs whenever what a read of a query's output shows may differ: after a micro-batch, a booking or
/// a reset, and of another query of the same name. What moves only the position keeps it.
///
/// The moments tell apart what numbers alone would not, such as two databases of one shop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Revision {
    query_id: i64,
    history_since: DateTime<Utc>,
    next_batch_id: i64,
    last_batch_at: Option<DateTime<Utc>>,
    next_correction: i64,
}

impl Revision {
    /// Of what no booking changes.
    #[must_use]
    pub const fn without_corrections(self) -> Self {
        Self { next_correction: 0, ..self }
    }

    /// Of what only a reset changes: what was so at a moment of the past.
    #[must_use]
    pub const fn of_history(self) -> Self {
        let Self { query_id, history_since, .. } = self;
        let (next_batch_id, last_batch_at, next_correction) = (0, None, 0);
        Self { query_id, history_since, next_batch_id, last_batch_at, next_correction }
    }

    /// The database's own number for the query.
    pub const fn query_id(self) -> i64 {
        self.query_id
    }

    /// When the query was created or last reset.
    pub const fn history_since(self) -> DateTime<Utc> {
        self.history_since
    }

    /// The last micro-batch; one below the first when there was none.
    pub const fn last_batch_id(self) -> BatchId {
        BatchId::new(self.next_batch_id.saturating_sub(1))
    }
}

#[derive(Debug, sqlx::FromRow)]
struct StandingColumns {
    #[sqlx(flatten)]
    query: QueryColumns,
    history_since: DateTime<Utc>,
    last_batch_at: Option<DateTime<Utc>>,
    next_correction: i64,
}

impl StandingColumns {
    fn read(self) -> Result<Standing, DatabaseError> {
        let Self { history_since, last_batch_at, next_correction, .. } = self;
        let query = self.query.read()?;
        let revision = Revision {
            query_id: query.query_id,
            history_since,
            next_batch_id: query.next_batch_id.get(),
            last_batch_at,
            next_correction,
        };
        Ok(Standing { query, revision })
    }
}

/// So many names are looked up by one statement, some twice where there are fewer. Of a list of any length
/// the planner would make a new plan each time, which takes five times as long as the look itself.
const NAMES_AT_ONCE: usize = 8;

/// Reads queries inside the caller's transaction; those that are not there are left out.
async fn read(
    conn: &mut PgConnection,
    names: &[&str],
) -> Result<Vec<StandingColumns>, DatabaseError> {
    let mut standings = Vec::with_capacity(names.len());
    for some in names.chunks(NAMES_AT_ONCE) {
        let mut select = QueryBuilder::<Postgres>::new("select ");
        select.push(COLUMNS).push(
            ", history_since, next_correction,
                 (select \"timestamp\" from progress where progress.query_id = queries.query_id
                     and batch_id = next_batch_id - 1) as last_batch_at
             from queries where name in (",
        );
        let mut list = select.separated(", ");
        for name in some.iter().cycle().take(NAMES_AT_ONCE) {
            list.push_bind(*name);
        }
        select.push(")");
        let read = select.build_query_as().fetch_all(&mut *conn).await;
        standings.extend(read.doing("read where queries stand")?);
    }
    Ok(standings)
}

/// Where one query stands, inside the caller's transaction.
pub(super) async fn standing_find(
    conn: &mut PgConnection,
    name: &QueryName,
) -> Result<Standing, DatabaseError> {
    let columns = read(conn, &[name.as_str()]).await?.pop();
    columns.ok_or_else(|| DatabaseError::NoSuchQuery(name.clone()))?.read()
}

/// A connection on which one look follows another.
#[derive(Debug)]
pub struct StandingsReader(PoolConnection<Postgres>);

impl StandingsReader {
    /// Those of these queries that there are and that can be read, as they stand now.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`]; the connection may be broken then.
    pub async fn read(&mut self, names: &[&str]) -> Result<Vec<Standing>, DatabaseError> {
        let columns = read(&mut self.0, names).await?;
        Ok(columns.into_iter().filter_map(|columns| columns.read().ok()).collect())
    }

    /// Gives the connection up, whatever is still under way on it.
    pub fn abandon(self) {
        drop(self.0.detach());
    }
}

impl Database {
    /// Where a query stands now.
    ///
    /// # Errors
    /// [`DatabaseError::NoSuchQuery`], [`DatabaseError::Unreadable`], [`DatabaseError::ReadsBusy`] or
    /// [`DatabaseError::Failed`].
    pub async fn standing(&self, name: &QueryName) -> Result<Standing, DatabaseError> {
        standing_find(&mut *self.reader().await?, name).await
    }

    /// A connection to look at many queries on, again and again.
    ///
    /// # Errors
    /// [`DatabaseError::ReadsBusy`] or [`DatabaseError::Failed`].
    pub async fn standings_reader(&self) -> Result<StandingsReader, DatabaseError> {
        self.reader().await.map(StandingsReader)
    }
}
