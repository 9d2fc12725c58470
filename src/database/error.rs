//! What can go wrong with Postgres, said as what was being tried, with the cause behind it.

use std::borrow::Cow;

use super::connect::doubt_connections;
use crate::domain::{EventTime, QueryName, Span};

/// A failure of the database layer.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// A statement, or the way to the server, failed. Its outcome may be unknown.
    #[error("could not {doing}")]
    Failed {
        /// What was being tried, as it follows "could not".
        doing: &'static str,
        /// Why.
        #[source]
        source: sqlx::Error,
    },
    /// The tables could not be brought to this version.
    #[error("could not migrate the database")]
    Migrate(#[source] sqlx::migrate::MigrateError),
    /// The address is not one.
    #[error("DATABASE_URL is not an address such as postgres://user:password@host/database")]
    Address(#[source] sqlx::Error),
    /// Nothing answered at the start.
    #[error("no database answered within {waited}")]
    NoAnswer {
        /// How long it was tried.
        waited: Span,
        /// The last failure.
        #[source]
        source: sqlx::Error,
    },
    /// Every connection for reading is in use; the server itself answers.
    #[error("every connection for reading is in use")]
    ReadsBusy,
    /// The server cannot keep what Tillmark promises.
    #[error("this Postgres will not do: {0}")]
    Unsuitable(String),
    /// Another has moved the query on since it was read: reload and go on from there.
    #[error("the progress of the query is no longer where this batch started")]
    ProgressMoved,
    /// Another replica has taken the lease; nothing was written.
    #[error("another replica runs the queries now")]
    LeaseLost,
    /// There is no query of this name.
    #[error("there is no query `{0}`")]
    NoSuchQuery(QueryName),
    /// A moment that has not come yet cannot be read as of.
    #[error("{moment} is in the future: the database's clock says {now}")]
    NotYet {
        /// The moment asked for.
        moment: EventTime,
        /// The database's clock.
        now: EventTime,
    },
    /// Of an earlier moment the query has no history.
    #[error(
        "{moment} is before {since}, when the query was created or reset: its history begins there"
    )]
    BeforeHistory {
        /// The moment asked for.
        moment: EventTime,
        /// The first moment that can be read.
        since: EventTime,
    },
    /// A report would have more lines than fit into memory with others beside it.
    #[error("the report would have more than {max} windows")]
    TooManyWindows {
        /// The most.
        max: usize,
    },
    /// Something stored does not read back as what it must be.
    #[error("the stored {what} cannot be read: {detail}")]
    Unreadable {
        /// What was read.
        what: &'static str,
        /// What is wrong with it.
        detail: String,
    },
}

impl DatabaseError {
    /// Whether Postgres is away or unable to work, so that trying again later may help.
    pub fn is_outage(&self) -> bool {
        match self {
            Self::Failed { source, .. } => is_outage(source),
            Self::NoAnswer { .. } => true,
            Self::Migrate(_)
            | Self::Address(_)
            | Self::ReadsBusy
            | Self::Unsuitable(_)
            | Self::ProgressMoved
            | Self::LeaseLost
            | Self::NoSuchQuery(_)
            | Self::NotYet { .. }
            | Self::BeforeHistory { .. }
            | Self::TooManyWindows { .. }
            | Self::Unreadable { .. } => false,
        }
    }

    /// Whether the server gave a statement up for the time it took.
    pub fn is_too_slow(&self) -> bool {
        self.code().is_some_and(|code| code == "57014")
    }

    /// Whether the server has no room on its disk.
    pub fn is_disk_full(&self) -> bool {
        self.code().is_some_and(|code| code == "53100")
    }

    /// Whether the data itself was refused, so that trying the same again cannot help.
    pub fn is_refusal(&self) -> bool {
        self.code().is_some_and(|code| code.starts_with("22") || code.starts_with("23"))
    }

    /// Whether a lock was not to be had in time; nothing was stored.
    pub(super) fn is_lock_timeout(&self) -> bool {
        self.code().is_some_and(|code| code == "55P03")
    }

    /// Whether the server itself says that it failed.
    pub fn is_of_the_server(&self) -> bool {
        self.code().is_some()
    }

    fn code(&self) -> Option<Cow<'_, str>> {
        let Self::Failed { source: sqlx::Error::Database(error), .. } = self else { return None };
        error.code()
    }

    /// Whether something that was read or written may be to blame, so that leaving it out could
    /// help: data that Postgres cannot take, or that does not read back.
    pub fn may_blame_a_record(&self) -> bool {
        let Self::Failed { source: sqlx::Error::Database(error), .. } = self else {
            return matches!(self, Self::Unreadable { .. });
        };
        let code = error.code().unwrap_or_default();
        // Data exceptions, a broken check, and values beyond a limit of Postgres.
        code.starts_with("22") || code == "23514" || code.starts_with("54")
    }

    /// The whole chain of causes in one line, for logs and for a query's `error`.
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            // sqlx repeats its cause in its own text.
            let cause_text = error.to_string();
            if !text.ends_with(&cause_text) {
                text = format!("{text}: {cause_text}");
            }
            cause = error.source();
        }
        text
    }
}

fn is_outage(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(error) => {
            let code = error.code().unwrap_or_default();
            // Connection failures, resources used up, stopped by an operator, read-only after a
            // failover, internal damage; and a database or a role that is not there any more.
            ["08", "53", "57", "58", "25006", "XX", "3D000", "28"]
                .iter()
                .any(|class| code.starts_with(class))
        }
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => true,
        _ => false,
    }
}

/// Whether the server takes no writes (any more).
fn is_read_only(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else { return false };
    error.code().is_some_and(|code| code == "25006")
}

/// Says what was being tried when a statement failed.
pub(super) trait Doing<T> {
    /// Wraps the failure: "could not {doing}".
    fn doing(self, doing: &'static str) -> Result<T, DatabaseError>;
}

impl<T> Doing<T> for Result<T, sqlx::Error> {
    fn doing(self, doing: &'static str) -> Result<T, DatabaseError> {
        self.map_err(|source| {
            if is_read_only(&source) {
                doubt_connections();
            }
            DatabaseError::Failed { doing, source }
        })
    }
}
