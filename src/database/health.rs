//! Whether the server can still do what it was checked for at the start.

use sqlx::PgConnection;

use super::connect::migrations;
use super::error::Doing;
use super::{Database, DatabaseError};

/// What is wrong with a server that answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServerFault {
    /// It takes no writes: a standby, or somebody has said so.
    ReadOnly,
    /// Its tables are not, or not all, of this version.
    NotMigrated,
    /// `fsync` was turned off.
    FsyncOff,
    /// `full_page_writes` was turned off.
    FullPageWritesOff,
    /// `synchronous_commit` was turned off.
    SynchronousCommitOff,
}

impl ServerFault {
    /// All faults.
    pub const ALL: [Self; 5] = [
        Self::ReadOnly,
        Self::NotMigrated,
        Self::FsyncOff,
        Self::FullPageWritesOff,
        Self::SynchronousCommitOff,
    ];
}

impl Database {
    /// Asks the server what is wrong with it; one that is well answers nothing.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`] when it does not answer.
    pub async fn server_faults(&self) -> Result<Vec<ServerFault>, DatabaseError> {
        let mut conn = self.readiness.acquire().await.doing("reach the database")?;
        let (read_only, fsync, pages, commit): (bool, bool, bool, bool) = sqlx::query_as(
            "select current_setting('transaction_read_only')::bool, not current_setting('fsync')::bool,
                 not current_setting('full_page_writes')::bool,
                 current_setting('synchronous_commit') = 'off'",
        )
        .fetch_one(&mut *conn)
        .await
        .doing("read the server's settings")?;
        let is_migrated = is_migrated(&mut conn).await?;
        if read_only {
            // The next connection may lead to the server that took its place.
            drop(conn.close().await);
        }
        let found = [
            (read_only, ServerFault::ReadOnly),
            (!is_migrated, ServerFault::NotMigrated),
            (fsync, ServerFault::FsyncOff),
            (pages, ServerFault::FullPageWritesOff),
            (commit, ServerFault::SynchronousCommitOff),
        ];
        Ok(found.into_iter().filter_map(|(is_so, fault)| is_so.then_some(fault)).collect())
    }
}

/// Whether all migrations of this version have been made.
async fn is_migrated(conn: &mut PgConnection) -> Result<bool, DatabaseError> {
    let made: Result<bool, sqlx::Error> = sqlx::query_scalar(
        "select count(*) = cardinality($1) from _sqlx_migrations where success and version = any ($1)",
    )
    .bind(migrations())
    .fetch_one(conn)
    .await;
    match made {
        // There is no such table: somebody has put an empty database in the place of this one.
        Err(sqlx::Error::Database(error)) if error.code().is_some_and(|code| code == "42P01") => {
            Ok(false)
        }
        made => made.doing("read which migrations were made"),
    }
}
