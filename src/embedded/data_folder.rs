//! The folder that holds everything of the private Postgres, and the lock that makes it ours.
//!
//! ```text
//! <data>/tillmark.lock   locked while an instance runs; holds its process id
//!        pg/             the cluster; pg.new while it is being made
//!        postgres.log    what the server programs print; postgres.log.1 is the one before
//!        postgres.url    the address that psql takes, while the server runs
//! ```
//! When root hands the folder to another user, that user may put links into it: no link is followed when a file is opened.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::{EmbeddedError, Owner};

/// A log longer than this is set aside at the next start.
const LOG_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// How much of the log an error quotes.
const LOG_TAIL_LINES: usize = 8;

/// A data folder that this instance has locked.
#[derive(Debug)]
pub(super) struct DataFolder {
    path: PathBuf,
    owner: Owner,
    /// Held, not used: closing it gives the folder free.
    _lock: File,
}

impl DataFolder {
    /// Makes the folder if need be, checks that it is ours, and locks it.
    pub(super) fn open(path: &Path, owner: &Owner) -> Result<Self, EmbeddedError> {
        let path = std::path::absolute(path).map_err(EmbeddedError::unusable("resolve", path))?;
        owner.require_reachable(&path)?;
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)
                .map_err(EmbeddedError::unusable("make the folder", parent))?;
        }
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(EmbeddedError::unusable("make the folder", &path)(error));
            }
            _ => {}
        }
        // Again, without symbolic links and with the parents that were just made.
        let path = path.canonicalize().map_err(EmbeddedError::unusable("resolve", &path))?;
        owner.require_reachable(&path)?;
        take_over(&path, owner)?;
        let lock = lock(&path, owner)?;
        let folder = Self { path, owner: owner.clone(), _lock: lock };
        folder.remove_url();
        Ok(folder)
    }

    /// The folder: absolute, without symbolic links.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The complete cluster, once there is one.
    pub(super) fn cluster(&self) -> PathBuf {
        self.path.join("pg")
    }

    /// The cluster while it is being made.
    pub(super) fn unfinished_cluster(&self) -> PathBuf {
        self.path.join("pg.new")
    }

    /// What the server programs print.
    pub(super) fn log(&self) -> Log {
        Log { path: self.path.join("postgres.log"), owner: self.owner.clone() }
    }

    /// The major version that made the cluster; `None` if there is none yet.
    pub(super) fn major_version(&self) -> Result<Option<u32>, EmbeddedError> {
        if !self.cluster().exists() {
            return Ok(None);
        }
        let path = self.cluster().join("PG_VERSION");
        fs::read_to_string(&path)
            .and_then(|text| {
                text.trim().parse().map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
            })
            .map(Some)
            .map_err(EmbeddedError::io("read the version of the data in", &path))
    }

    /// Makes the unfinished cluster the cluster.
    pub(super) fn finish_cluster(&self) -> Result<(), EmbeddedError> {
        fs::rename(self.unfinished_cluster(), self.cluster())
            .and_then(|()| File::open(&self.path)?.sync_all())
            .map_err(EmbeddedError::io("rename the new cluster to", &self.cluster()))
    }

    /// Writes the address for `psql`, readable by its owner alone.
    pub(super) fn write_url(&self, url: &str) -> Result<(), EmbeddedError> {
        self.remove_url();
        let path = self.url_file();
        // `create_new` follows no link.
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        file.and_then(|mut file| writeln!(file, "{url}"))
            .map_err(EmbeddedError::io("write", &path))?;
        self.owner.give(&path)
    }

    /// Removes the address, if there is one.
    pub(super) fn remove_url(&self) {
        // A stale address only fails to connect: nothing depends on its absence.
        let _ = fs::remove_file(self.url_file());
    }

    fn url_file(&self) -> PathBuf {
        self.path.join("postgres.url")
    }
}

/// Refuses a folder that holds something else or belongs to someone else; hands an empty one to `owner`.
fn take_over(path: &Path, owner: &Owner) -> Result<(), EmbeddedError> {
    let lists = EmbeddedError::unusable("list", path);
    let entries: Result<Vec<_>, io::Error> = match fs::read_dir(path) {
        Ok(entries) => entries.map(|entry| entry.map(|entry| entry.file_name())).collect(),
        // Not ours, then: the owner check below says so better.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(Vec::new()),
        Err(error) => Err(error),
    };
    let entries = entries.map_err(lists)?;
    // A freshly made file system is not empty either.
    let empty = entries.iter().all(|name| name == "lost+found");
    if !empty && !entries.iter().any(|name| name == "tillmark.lock") {
        return Err(EmbeddedError::ForeignFolder { data_dir: path.to_owned() });
    }
    if empty {
        owner.give(path)?;
    }
    let actual = path.metadata().map_err(EmbeddedError::unusable("look at", path))?.uid();
    if actual != owner.uid() {
        return Err(EmbeddedError::ForeignOwner {
            data_dir: path.to_owned(),
            actual,
            expected: owner.description(),
        });
    }
    fs::set_permissions(path, Permissions::from_mode(0o700))
        .map_err(EmbeddedError::unusable("close to others", path))
}

fn lock(folder: &Path, owner: &Owner) -> Result<File, EmbeddedError> {
    let path = folder.join("tillmark.lock");
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let mut file = open_without_following(&mut options, &path)
        .map_err(EmbeddedError::unusable("open", &path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            // The holder may be between its lock and its process id.
            let holder = match file.read_to_string(&mut text) {
                Ok(length) if length > 0 => text.trim().to_owned(),
                _ => "unknown".to_owned(),
            };
            return Err(EmbeddedError::InUse { data_dir: folder.to_owned(), holder });
        }
        Err(TryLockError::Error(error)) => return Err(EmbeddedError::io("lock", &path)(error)),
    }
    owner.give(&path)?;
    let written = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
    written.map_err(EmbeddedError::io("write", &path))?;
    Ok(file)
}

fn open_without_following(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    options.mode(0o600).custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed()).open(path)
}

/// The file that takes the output of the server programs.
#[derive(Debug, Clone)]
pub(super) struct Log {
    path: PathBuf,
    owner: Owner,
}

impl Log {
    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens it at its end.
    pub(super) fn open(&self) -> Result<File, EmbeddedError> {
        let file = open_without_following(OpenOptions::new().append(true).create(true), &self.path)
            .map_err(EmbeddedError::io("open", &self.path))?;
        self.owner.give(&self.path)?;
        Ok(file)
    }

    /// Its length in bytes, from which [`Log::tail_from`] will quote.
    pub(super) fn bytes(&self) -> u64 {
        self.path.symlink_metadata().map_or(0, |metadata| metadata.len())
    }

    /// The last lines written after `offset`, for an error.
    pub(super) fn tail_from(&self, offset: u64) -> String {
        let mut bytes = Vec::new();
        let read = open_without_following(OpenOptions::new().read(true), &self.path).and_then(
            |mut file| {
                file.seek(SeekFrom::Start(offset))?;
                file.take(LOG_BYTES_MAX).read_to_end(&mut bytes)
            },
        );
        if read.is_err() {
            return "(the log cannot be read)".to_owned();
        }
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        lines.get(lines.len().saturating_sub(LOG_TAIL_LINES)..).unwrap_or_default().join("\n")
    }

    /// Sets a long log aside, so that at most two of them are kept.
    pub(super) fn rotate(&self) -> Result<(), EmbeddedError> {
        if self.bytes() <= LOG_BYTES_MAX {
            return Ok(());
        }
        fs::rename(&self.path, self.path.with_extension("log.1"))
            .map_err(EmbeddedError::io("set aside", &self.path))
    }
}
