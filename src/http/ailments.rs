//! What ails a service that runs: why it is not ready, or ready but not as it should be.

use std::collections::BTreeSet;

use super::App;
use crate::database::{DatabaseError, ServerFault};

/// Something that is wrong, now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ailment {
    /// The server has this fault.
    Server(ServerFault),
    /// The database has no room to store anything.
    DiskFull,
    /// The private Postgres's disk has little room left.
    DiskNearlyFull,
}

/// What is said of an ailment.
#[derive(Debug, Clone, Copy)]
pub(super) struct AilmentFacts {
    /// A stable word for programs.
    pub(super) code: &'static str,
    /// What is wrong and what to do, in one sentence for people.
    pub(super) detail: &'static str,
    /// Whether the service can do its work all the same.
    pub(super) is_ready: bool,
}

impl Ailment {
    /// All that can be.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let of_server = ServerFault::ALL.into_iter().map(Self::Server);
        of_server.chain([Self::DiskFull, Self::DiskNearlyFull])
    }

    /// What is said of it.
    pub(super) const fn facts(self) -> AilmentFacts {
        let (code, is_ready, detail) = match self {
            Self::Server(ServerFault::ReadOnly) => (
                "read_only",
                false,
                "The database takes no writes: it is a standby, or `default_transaction_read_only` is on",
            ),
            Self::Server(ServerFault::NotMigrated) => (
                "not_migrated",
                false,
                "The tables in the database are not those of this version; starting the service makes them",
            ),
            Self::DiskFull => (
                "disk_full",
                false,
                "The disk of the database is full, so nothing can be stored; make room on it",
            ),
            Self::Server(ServerFault::FsyncOff) => (
                "fsync_off",
                true,
                "`fsync` is off, so a crash could lose answered events; turn it on",
            ),
            Self::Server(ServerFault::FullPageWritesOff) => (
                "full_page_writes_off",
                true,
                "`full_page_writes` is off, so a crash could damage the log; turn it on",
            ),
            Self::Server(ServerFault::SynchronousCommitOff) => (
                "synchronous_commit_off",
                true,
                "`synchronous_commit` is off, so a crash could lose answered events; turn it on",
            ),
            Self::DiskNearlyFull => (
                "disk_nearly_full",
                true,
                "The disk of the private Postgres has less than 5 GiB and less than 5 % left; make room on it",
            ),
        };
        AilmentFacts { code, detail, is_ready }
    }
}

impl App {
    /// What ails the service now.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`] when the database does not answer.
    pub(super) async fn ailments(&self) -> Result<BTreeSet<Ailment>, DatabaseError> {
        let faults = self.database.server_faults().await?;
        let mut ailments: BTreeSet<Ailment> = faults.into_iter().map(Ailment::Server).collect();
        if self.intake.figures().is_disk_full() {
            ailments.insert(Ailment::DiskFull);
        }
        if self.data_disk.space().is_some_and(super::machine::DiskSpace::is_nearly_full) {
            ailments.insert(Ailment::DiskNearlyFull);
        }
        self.readiness.note(&ailments);
        Ok(ailments)
    }
}
