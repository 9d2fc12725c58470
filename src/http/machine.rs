//! What the machine has left: file descriptors for connections, and room on the private Postgres's disk.

use std::path::{Path, PathBuf};

use rustix::fs::statvfs;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::warn;

/// Descriptors that connections of clients may not take: those to the database, logs and files.
const DESCRIPTORS_KEPT: u64 = 128;
/// A disk with less than this and less than [`NEARLY_FULL_SHARE`] left is nearly full.
const NEARLY_FULL_BYTES: u64 = 5 << 30;
/// A twentieth.
const NEARLY_FULL_SHARE: u64 = 20;

/// How many connections of clients there may be, at most `wanted`: raises how many files this process may
/// have open, as far as it may, and says so in the log where that is not enough.
pub fn connections_within_limits(wanted: usize) -> usize {
    let needed = u64::try_from(wanted).unwrap_or(u64::MAX).saturating_add(DESCRIPTORS_KEPT);
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let Some(current) = current.filter(|current| *current < needed) else { return wanted };
    let raised = maximum.map_or(needed, |maximum| maximum.min(needed));
    let is_raised = setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum }).is_ok();
    let descriptors = if is_raised { raised } else { current };
    if descriptors >= needed {
        return wanted;
    }
    let room = descriptors.saturating_sub(DESCRIPTORS_KEPT).max(descriptors / 2);
    warn!(
        connections.n_max = room,
        "The system lets this process open {descriptors} files, so at most {room} connections are \
         taken at a time; raise its limit (`ulimit -n`, `LimitNOFILE=`) for TILLMARK_CONNECTIONS_MAX"
    );
    usize::try_from(room).unwrap_or(wanted)
}

/// The disk of the private Postgres, if there is one.
#[derive(Debug, Clone, Default)]
pub struct DataDisk(Option<PathBuf>);

/// How much room a disk has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DiskSpace {
    /// Bytes left for those who are not root.
    pub(super) free_bytes: u64,
    /// Bytes of all.
    pub(super) total_bytes: u64,
}

impl DataDisk {
    /// The disk that `folder` is on.
    pub fn of(folder: Option<&Path>) -> Self {
        Self(folder.map(Path::to_owned))
    }

    /// How much room it has; nothing where there is none, or nobody can tell.
    pub(super) fn space(&self) -> Option<DiskSpace> {
        let found = statvfs(self.0.as_deref()?).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        Some(DiskSpace { free_bytes: bytes(found.f_bavail), total_bytes: bytes(found.f_blocks) })
    }
}

impl DiskSpace {
    /// Whether somebody should make room soon.
    pub(super) const fn is_nearly_full(self) -> bool {
        self.free_bytes < NEARLY_FULL_BYTES
            && self.free_bytes < self.total_bytes / NEARLY_FULL_SHARE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_nearly_full_when_little_is_left_and_little_of_it() {
        const GIB: u64 = 1 << 30;
        for (case, free_bytes, total_bytes, nearly_full) in [
            ("small, half full", GIB, 2 * GIB, false),
            ("small, a twentieth left", GIB / 10, 2 * GIB, false),
            ("small, less left", GIB / 10 - 1, 2 * GIB, true),
            ("large, plenty left though it is a small share", 5 * GIB, 1_000 * GIB, false),
            ("large, less left", 5 * GIB - 1, 1_000 * GIB, true),
            ("full", 0, GIB, true),
        ] {
            let space = DiskSpace { free_bytes, total_bytes };
            assert_eq!(space.is_nearly_full(), nearly_full, "{case}");
        }
    }

    #[test]
    fn a_folder_is_on_a_disk_that_has_bytes() {
        let space = DataDisk::of(Some(&std::env::temp_dir())).space().expect("a disk");
        assert!(space.free_bytes <= space.total_bytes && space.total_bytes > 0, "{space:?}");
        assert_eq!(DataDisk::default().space(), None);
    }
}
