//! Which replica runs the queries: the row of `leadership`, held by a lease.
//!
//! Invariants:
//! * Only Postgres's clock says whether a lease has run out.
//! * A new leader has a higher epoch. Whoever moves a query holds the row of their epoch against
//!   that until they commit, so nothing is committed under an epoch that is over.
//! * Every call is one statement that commits by itself: a replica that freezes leaves no lock behind.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::error::Doing;
use super::{Database, DatabaseError};
use crate::domain::Span;

/// The number of a replica's time as the leader, higher than all before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseEpoch(i64);

impl LeaseEpoch {
    /// The number.
    pub const fn get(self) -> i64 {
        self.0
    }
}

/// The lease, just taken.
#[derive(Debug, Clone, Copy)]
pub struct LeaseTaken {
    /// Of the time that begins.
    pub epoch: LeaseEpoch,
    /// Sessions of the leader before that were inside a transaction and were ended.
    pub sessions_ended: usize,
}

/// The row of `leadership`, and whether another may take the lease.
#[derive(Debug, sqlx::FromRow)]
struct LeaseColumns {
    epoch: i64,
    holder: String,
    expires_at: DateTime<Utc>,
    is_free: bool,
}

impl Database {
    /// Takes the lease for `length` if it has run out, or if its holder's session is gone. Nothing while
    /// another leads.
    ///
    /// What the holder before left open is ended first: a transaction of a frozen process would keep
    /// the epoch from changing, and its locks from everybody.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`]; whether it was taken may be unknown then.
    pub async fn lease_acquire(&self, length: Span) -> Result<Option<LeaseTaken>, DatabaseError> {
        // The start of a session of another role may be hidden.
        let lease: LeaseColumns = sqlx::query_as(
            "select epoch, holder, expires_at, expires_at <= clock_timestamp() or not exists (
                 select from pg_stat_activity
                 where pid = session_pid and coalesce(backend_start = session_start, true)
             ) as is_free
             from leadership",
        )
        .fetch_one(&self.lease)
        .await
        .doing("read who leads")?;
        if lease.is_free { self.lease_take(&lease, length).await } else { Ok(None) }
    }

    async fn lease_take(
        &self,
        lease: &LeaseColumns,
        length: Span,
    ) -> Result<Option<LeaseTaken>, DatabaseError> {
        let sessions_ended = self.transactions_end(&lease.holder).await?;
        // A renewal or another replica may have been faster since.
        let epoch: Result<Option<i64>, _> = sqlx::query_scalar(
            "update leadership
             set epoch = epoch + 1, holder = $1, expires_at = clock_timestamp() + $2 * interval '1 microsecond',
                 session_pid = pg_backend_pid(),
                 session_start = (select backend_start from pg_stat_activity where pid = pg_backend_pid())
             where epoch = $3 and expires_at = $4
             returning epoch",
        )
        .bind(&*self.name)
        .bind(length.as_micros())
        .bind(lease.epoch)
        .bind(lease.expires_at)
        .fetch_optional(&self.lease)
        .await
        .doing("take the lease");
        match epoch {
            Ok(epoch) => {
                Ok(epoch.map(|epoch| LeaseTaken { epoch: LeaseEpoch(epoch), sessions_ended }))
            }
            // The holder before commits right now; it is looked at again soon.
            Err(error) if error.is_lock_timeout() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Keeps the lease for `length` from now. False: another has taken it.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`]; renewing again is safe.
    pub async fn lease_renew(
        &self,
        epoch: LeaseEpoch,
        length: Span,
    ) -> Result<bool, DatabaseError> {
        let done = sqlx::query(
            "update leadership
             set expires_at = clock_timestamp() + $2 * interval '1 microsecond',
                 session_pid = pg_backend_pid(),
                 session_start = (select backend_start from pg_stat_activity where pid = pg_backend_pid())
             where epoch = $1",
        )
        .bind(epoch.0)
        .bind(length.as_micros())
        .execute(&self.lease)
        .await
        .doing("renew the lease")?;
        Ok(done.rows_affected() == 1)
    }

    /// Takes one's own lease anew for `length`, under a new name, and ends what was left open under the old
    /// one. Nothing when another has it.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`]; whether it was taken may be unknown then.
    pub async fn lease_retake(
        &self,
        epoch: LeaseEpoch,
        length: Span,
    ) -> Result<Option<LeaseTaken>, DatabaseError> {
        let lease: Option<LeaseColumns> = sqlx::query_as(
            "select epoch, holder, expires_at, true as is_free from leadership where epoch = $1",
        )
        .bind(epoch.0)
        .fetch_optional(&self.lease)
        .await
        .doing("read who leads")?;
        match lease {
            Some(lease) => self.lease_take(&lease, length).await,
            None => Ok(None),
        }
    }

    /// Gives the lease back, so that another can lead at once.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`]; it runs out by itself then.
    pub async fn lease_release(&self, epoch: LeaseEpoch) -> Result<(), DatabaseError> {
        sqlx::query("update leadership set expires_at = clock_timestamp() where epoch = $1")
            .bind(epoch.0)
            .execute(&self.lease)
            .await
            .doing("give the lease back")?;
        Ok(())
    }

    /// Ends the sessions of the holder before that are inside a transaction, and says how many. Of another
    /// process all are meant; when it was this one, under another name, its appends and reads go on.
    async fn transactions_end(&self, holder: &str) -> Result<usize, DatabaseError> {
        let ended: Vec<bool> = sqlx::query_scalar(
            "select pg_terminate_backend(pid) from pg_stat_activity
             where (application_name = $1
                     or application_name = split_part($1, '/', 1) and application_name <> $2)
                 and xact_start is not null
                 and datname = current_database() and usename = current_user",
        )
        .bind(holder)
        .bind(&*self.process)
        .fetch_all(&self.lease)
        .await
        .doing("end what the leader before left open")?;
        Ok(ended.len())
    }
}

/// Makes sure that the caller leads until its transaction ends.
///
/// # Errors
/// [`DatabaseError::LeaseLost`] or [`DatabaseError::Failed`].
pub(super) async fn lease_hold(
    conn: &mut PgConnection,
    epoch: LeaseEpoch,
) -> Result<(), DatabaseError> {
    let held: Option<i64> =
        sqlx::query_scalar("select epoch from leadership where epoch = $1 for key share")
            .bind(epoch.0)
            .fetch_optional(conn)
            .await
            .doing("hold the lease")?;
    held.map(|_| ()).ok_or(DatabaseError::LeaseLost)
}
