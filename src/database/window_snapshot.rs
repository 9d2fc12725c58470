//! Output rows and the query that wrote them, all as of one moment.

use sqlx::{Postgres, SqlSafeStr as _, Transaction};

use super::as_of::{AsOf, find_as_of, settle};
use super::error::Doing;
use super::queries::StoredQuery;
use super::standings::{Standing, standing_find};
use super::windows::{WindowRow, WindowSelection, window_bounds_read, windows_read};
use super::{Database, DatabaseError};
use crate::domain::{EventTime, QueryName};

/// Where output rows are read from.
pub trait WindowSource: Send {
    /// Up to `limit` rows of a query, ordered by start, end, group and currency.
    ///
    /// # Errors
    /// [`DatabaseError`] when they cannot be read.
    fn rows(
        &mut self,
        query: &StoredQuery,
        selection: &WindowSelection,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<WindowRow>, DatabaseError>> + Send;

    /// The start of the first window that `selection` could show and the end of the last.
    ///
    /// # Errors
    /// [`DatabaseError`] when they cannot be read.
    fn bounds(
        &mut self,
        query: &StoredQuery,
        selection: &WindowSelection,
    ) -> impl Future<Output = Result<Option<(EventTime, EventTime)>, DatabaseError>> + Send;
}

/// Each read by itself, as it stands then: for lists so long that a client takes them bit by bit.
impl WindowSource for Database {
    async fn rows(
        &mut self,
        query: &StoredQuery,
        selection: &WindowSelection,
        limit: u32,
    ) -> Result<Vec<WindowRow>, DatabaseError> {
        self.windows(query, selection, limit).await
    }

    async fn bounds(
        &mut self,
        query: &StoredQuery,
        selection: &WindowSelection,
    ) -> Result<Option<(EventTime, EventTime)>, DatabaseError> {
        self.window_bounds(query, selection).await
    }
}

/// All reads as of one moment: for answers that say by their revision what they show. It holds a
/// connection, so it belongs to a task that nobody cuts off.
#[derive(Debug)]
pub struct WindowSnapshot {
    transaction: Transaction<'static, Postgres>,
    standing: Standing,
    as_of: Option<AsOf>,
}

impl Database {
    /// A snapshot of the query `name`, which is then as it stood at `moment` if there is one.
    ///
    /// # Errors
    /// [`DatabaseError::NoSuchQuery`], [`DatabaseError::NotYet`], [`DatabaseError::BeforeHistory`],
    /// [`DatabaseError::Unreadable`], [`DatabaseError::ReadsBusy`] or [`DatabaseError::Failed`].
    pub async fn window_snapshot(
        &self,
        name: &QueryName,
        moment: Option<EventTime>,
    ) -> Result<WindowSnapshot, DatabaseError> {
        let mut reader = self.reader().await?;
        if let Some(moment) = moment {
            settle(&mut reader, name, moment).await?;
        }
        let begin = "begin transaction isolation level repeatable read, read only".into_sql_str();
        let mut transaction =
            Transaction::begin(reader, Some(begin)).await.doing("begin reading output rows")?;
        let mut standing = standing_find(&mut transaction, name).await?;
        let mut as_of = None;
        if let Some(moment) = moment {
            // It may have been reset since.
            let since = EventTime::from_utc(standing.revision.history_since());
            if moment < since {
                return Err(DatabaseError::BeforeHistory { moment, since });
            }
            let (query, then) = find_as_of(&mut transaction, name, moment).await?;
            (standing.query, as_of) = (query, Some(then));
        }
        Ok(WindowSnapshot { transaction, standing, as_of })
    }
}

impl WindowSnapshot {
    /// The query, and the revision that the snapshot shows.
    pub const fn standing(&self) -> &Standing {
        &self.standing
    }

    /// The moment in the past, if it is of one.
    pub const fn as_of(&self) -> Option<AsOf> {
        self.as_of
    }
}

impl WindowSource for WindowSnapshot {
    async fn rows(
        &mut self,
        query: &StoredQuery,
        selection: &WindowSelection,
        limit: u32,
    ) -> Result<Vec<WindowRow>, DatabaseError> {
        windows_read(&mut self.transaction, query, selection, limit).await
    }

    async fn bounds(
        &mut self,
        query: &StoredQuery,
        selection: &WindowSelection,
    ) -> Result<Option<(EventTime, EventTime)>, DatabaseError> {
        window_bounds_read(&mut self.transaction, query, selection).await
    }
}
