//! The private Postgres that serves when no `DATABASE_URL` is set.
//!
//! A small launcher over server programs that are already installed; nothing is downloaded. The server is a direct
//! child, listens on a Unix socket in a folder that only its owner may enter, and writes as durably as Postgres can.
//!
//! Invariants:
//! * One instance per data folder: `tillmark.lock` is held from before the first file is touched until after the stop.
//! * `<data>/pg` is always a complete cluster: it is made in `<data>/pg.new` and renamed when it is whole.
//! * The server never outlives the service. A stop waits for it; on Linux the kernel ends it when the service is
//!   killed; elsewhere the next start ends it first.
//! * A server that ends unasked is started again.
//!
//! Absent on purpose: SQL, async, the environment (`config` passes in what is needed), and the clock (waits count
//! their own pauses).

mod data_folder;
mod error;
mod keeper;
mod owner;
mod postmaster;
mod programs;
mod server;
mod shared;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use data_folder::DataFolder;
pub use error::EmbeddedError;
use keeper::Keeper;
use owner::Owner;
use programs::Programs;
use server::{Server, SocketFolder};
pub use shared::{SharedPostgres, folder_without_data, running_url};

/// What the private Postgres needs to know before it starts.
#[derive(Debug, Clone, Default)]
pub struct EmbeddedSettings {
    /// Where the data is kept. Default: `./tillmark-data`, or `/var/lib/tillmark` when running as root.
    pub data_dir: Option<PathBuf>,
    /// The folder of the server programs (`postgres`, `initdb`). Default: the newest found in the usual places.
    pub pg_bin_dir: Option<PathBuf>,
    /// The value of `PATH`, searched last for server programs. Default: nothing is searched there.
    pub search_path: Option<OsString>,
}

/// A running private Postgres. Dropping it stops the server, as [`EmbeddedPostgres::stop`] does, without the report.
#[derive(Debug)]
pub struct EmbeddedPostgres {
    url: String,
    keeper: Option<Keeper>,
    // Fields drop in this order: the lock on the data folder goes last.
    _socket: SocketFolder,
    folder: DataFolder,
}

impl EmbeddedPostgres {
    /// Starts the server, making its data folder first if need be, and returns once it takes connections.
    ///
    /// May be called from any thread: the server belongs to a thread of its own, which lives until the stop (the
    /// kernel's parent-death signal follows the *thread* that started the child, not the process). Blocks, about a
    /// second the first time and well under 100 ms after that.
    ///
    /// # Errors
    /// [`EmbeddedError`], each a sentence for the person who started the service.
    pub fn start(settings: &EmbeddedSettings) -> Result<Self, EmbeddedError> {
        let owner = Owner::of_server()?;
        let data_dir = settings.data_dir.as_deref().unwrap_or_else(|| owner.default_data_dir());
        let folder = DataFolder::open(data_dir, &owner)?;
        let data_major = folder.major_version()?;
        let programs = Programs::find(settings, data_major.map(|major| (major, folder.path())))?;
        owner.require_reachable(programs.folder())?;
        postmaster::stop_leftover(&folder)?;
        folder.log().rotate()?;
        if data_major.is_none() {
            server::make_cluster(&programs, &folder, &owner)?;
        }

        let socket = SocketFolder::make(&folder, &owner)?;
        let keeper = Keeper::start(Server::new(&programs, &folder, &socket, &owner))?;
        let url = server::url(&socket);
        folder.write_url(&url)?;
        Ok(Self { url, keeper: Some(keeper), _socket: socket, folder })
    }

    /// The address, for both `psql` and the service: `postgres:///tillmark?host=…`. Also in `<data>/postgres.url`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The data folder, absolute and without symbolic links.
    #[must_use]
    pub fn data_dir(&self) -> &Path {
        self.folder.path()
    }

    /// Stops the server: open connections are ended, then a checkpoint is written. Blocks until it is gone.
    ///
    /// # Errors
    /// [`EmbeddedError::StopTimedOut`] if the server had to be killed; its data is safe and is recovered at the next start.
    pub fn stop(mut self) -> Result<(), EmbeddedError> {
        self.shut_down()
    }

    fn shut_down(&mut self) -> Result<(), EmbeddedError> {
        let Some(keeper) = self.keeper.take() else { return Ok(()) };
        self.folder.remove_url();
        keeper.stop()
    }
}

impl Drop for EmbeddedPostgres {
    fn drop(&mut self) {
        if let Err(error) = self.shut_down() {
            tracing::warn!(error = %error, "The private Postgres did not stop cleanly: {error}");
        }
    }
}
