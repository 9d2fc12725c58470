//! What can go wrong while the private Postgres starts, runs and stops.

use std::io;
use std::path::{Path, PathBuf};

/// Why the private Postgres could not be started or stopped. Each text is a sentence for the operator.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    /// No server programs anywhere.
    #[error(
        "no PostgreSQL server programs (postgres and initdb, version 15 or newer) were found: install them \
         (on Debian and Ubuntu the package `postgresql`, with Homebrew `postgresql@17`), name their folder in \
         PG_BIN_DIR, or set DATABASE_URL to use a server of your own"
    )]
    NoPrograms,
    /// `PG_BIN_DIR` names a folder without them.
    #[error("PG_BIN_DIR is {}, which does not hold working `postgres` and `initdb` programs", folder.display())]
    NotPrograms {
        /// The folder that was named.
        folder: PathBuf,
    },
    /// Only old server programs.
    #[error(
        "the newest PostgreSQL server programs found are version {major}, in {}; version 15 or newer is needed",
        folder.display()
    )]
    ProgramsTooOld {
        /// Their major version.
        major: u32,
        /// Their folder.
        folder: PathBuf,
    },
    /// The data was made by another major version than the programs at hand.
    #[error(
        "the data folder {} was made by PostgreSQL {data_major}, but the server programs found are version {found}: \
         install version {data_major} or name its folder in PG_BIN_DIR, or choose another TILLMARK_DATA_DIR",
        data_dir.display()
    )]
    OtherMajorVersion {
        /// The data folder.
        data_dir: PathBuf,
        /// The major version that made it.
        data_major: u32,
        /// The major versions found, as text.
        found: String,
    },
    /// Another instance holds the data folder.
    #[error("the data folder {} is in use by another Tillmark, process {holder}", data_dir.display())]
    InUse {
        /// The data folder.
        data_dir: PathBuf,
        /// The process id of the holder as its lock file names it, or `unknown`.
        holder: String,
    },
    /// The folder holds something else.
    #[error(
        "{} is not empty and was not made by Tillmark: TILLMARK_DATA_DIR must name an empty folder, or one that does \
         not exist yet",
        data_dir.display()
    )]
    ForeignFolder {
        /// The folder that was named.
        data_dir: PathBuf,
    },
    /// The folder was made under another user.
    #[error(
        "the data folder {} belongs to user id {actual}, but Postgres would run as {expected}: start Tillmark as the \
         same user as before, or choose another TILLMARK_DATA_DIR",
        data_dir.display()
    )]
    ForeignOwner {
        /// The data folder.
        data_dir: PathBuf,
        /// Who owns it.
        actual: u32,
        /// The user of the server, with its id.
        expected: String,
    },
    /// The folder cannot be made, or not be made ours.
    #[error("TILLMARK_DATA_DIR cannot be used: could not {doing} {}", path.display())]
    UnusableFolder {
        /// What was being tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// A folder on the way cannot be entered by the user of the server.
    #[error(
        "{} cannot be used: the user {user}, under which Postgres runs, may not enter {}; choose a folder elsewhere \
         (for the data with TILLMARK_DATA_DIR, for the programs with PG_BIN_DIR)",
        target.display(), blocked.display()
    )]
    Unreachable {
        /// The folder that is needed.
        target: PathBuf,
        /// The folder on the way to it that keeps the user out.
        blocked: PathBuf,
        /// The user's name.
        user: String,
    },
    /// As root, there is no user to run the server under.
    #[error(
        "Postgres does not run as root, and neither a user `postgres` nor a user `nobody` exists"
    )]
    NoServerUser,
    /// Every name for the socket folder is taken by someone else.
    #[error("could not make a folder for the Postgres socket: {} and its alternatives belong to another user", folder.display())]
    SocketFolderTaken {
        /// The first name tried.
        folder: PathBuf,
    },
    /// `initdb`, or the making of the database after it, failed.
    #[error("could not make the data folder {}: {program} ended with {status}\n{log_tail}", data_dir.display())]
    MakeCluster {
        /// The data folder.
        data_dir: PathBuf,
        /// The program that failed.
        program: &'static str,
        /// Its exit status.
        status: std::process::ExitStatus,
        /// The last lines it wrote.
        log_tail: String,
    },
    /// The server ended while it was starting.
    #[error("Postgres ended with {status} while starting; the last lines of {} are:\n{log_tail}", log.display())]
    EndedEarly {
        /// Its exit status.
        status: std::process::ExitStatus,
        /// The log file.
        log: PathBuf,
        /// The last lines it wrote.
        log_tail: String,
    },
    /// The server did not become ready in time.
    #[error("Postgres was not ready after {seconds} seconds; the last lines of {} are:\n{log_tail}", log.display())]
    NotReady {
        /// How long it was given, in seconds.
        seconds: u64,
        /// The log file.
        log: PathBuf,
        /// The last lines it wrote.
        log_tail: String,
    },
    /// A server left over from last time stays.
    #[error("a Postgres left over from last time, process {pid}, still runs on {} and does not stop", data_dir.display())]
    LeftoverStays {
        /// Its process id.
        pid: i32,
        /// The data folder.
        data_dir: PathBuf,
    },
    /// The server had to be killed.
    #[error(
        "Postgres did not stop within {seconds} seconds and was killed; its data is recovered at the next start"
    )]
    StopTimedOut {
        /// How long it was given, in seconds.
        seconds: u64,
    },
    /// The system gave no thread.
    #[error("could not start the thread that keeps the private Postgres")]
    Thread {
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// The thread that owns the server is gone.
    #[error("the thread that keeps the private Postgres has ended")]
    KeeperGone,
    /// The system refused something.
    #[error("could not {doing} {}", path.display())]
    Io {
        /// What was being tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
}

impl EmbeddedError {
    /// For `map_err`: says what was being done to `path` when the system refused.
    pub(super) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source }
    }

    /// The same where another data folder would help.
    pub(super) fn unusable(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::UnusableFolder { doing, path, source }
    }

    /// Whether `PG_BIN_DIR` or `TILLMARK_DATA_DIR` is to blame; the text names it.
    pub const fn is_setting(&self) -> bool {
        matches!(
            self,
            Self::NotPrograms { .. }
                | Self::ForeignFolder { .. }
                | Self::ForeignOwner { .. }
                | Self::UnusableFolder { .. }
                | Self::Unreachable { .. }
        )
    }
}
