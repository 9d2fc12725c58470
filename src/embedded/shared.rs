//! The private Postgres of a data folder, whoever runs it: a tool beside a running service uses the
//! service's.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use super::{EmbeddedError, EmbeddedPostgres, EmbeddedSettings, Owner};

/// The pause between two looks at a folder whose service is starting or ending.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How many looks it gets: 30 seconds.
const LOOKS_MAX: u32 = 600;

/// A private Postgres to work on.
#[derive(Debug)]
pub enum SharedPostgres {
    /// Started for us; it ends with us.
    Own(EmbeddedPostgres),
    /// Run by a service on the same data folder; it ends with that service.
    Running {
        /// Its address.
        url: String,
    },
}

impl SharedPostgres {
    /// Starts the private Postgres, or finds that of the service which holds the data folder.
    /// Blocks, up to half a minute while such a service is starting or ending.
    ///
    /// # Errors
    /// [`EmbeddedError`], as of [`EmbeddedPostgres::start`].
    pub fn start_or_find(settings: &EmbeddedSettings) -> Result<Self, EmbeddedError> {
        let mut looks = 0;
        loop {
            let (data_dir, holder) = match EmbeddedPostgres::start(settings) {
                Ok(own) => return Ok(Self::Own(own)),
                Err(EmbeddedError::InUse { data_dir, holder }) => (data_dir, holder),
                Err(error) => return Err(error),
            };
            if let Some(url) = url_in(&data_dir) {
                return Ok(Self::Running { url });
            }
            looks += 1;
            if looks == LOOKS_MAX {
                return Err(EmbeddedError::InUse { data_dir, holder });
            }
            sleep(LOOK_EVERY);
        }
    }

    /// The address.
    #[must_use]
    pub fn url(&self) -> &str {
        match self {
            Self::Own(own) => own.url(),
            Self::Running { url } => url,
        }
    }

    /// Stops the server if it is our own.
    ///
    /// # Errors
    /// As of [`EmbeddedPostgres::stop`].
    pub fn stop(self) -> Result<(), EmbeddedError> {
        match self {
            Self::Own(own) => own.stop(),
            Self::Running { .. } => Ok(()),
        }
    }
}

/// The address of the private Postgres that a service runs; nothing when none runs on the data
/// folder that `settings` name.
#[must_use]
pub fn running_url(settings: &EmbeddedSettings) -> Option<String> {
    match &settings.data_dir {
        Some(data_dir) => url_in(data_dir),
        None => url_in(Owner::of_server().ok()?.default_data_dir()),
    }
}

/// The data folder that `settings` name, when there is no private Postgres in it yet.
///
/// # Errors
/// [`EmbeddedError`] where there is no default folder.
pub fn folder_without_data(settings: &EmbeddedSettings) -> Result<Option<PathBuf>, EmbeddedError> {
    let data_dir = match &settings.data_dir {
        Some(data_dir) => data_dir.clone(),
        None => Owner::of_server()?.default_data_dir().to_owned(),
    };
    Ok(Some(data_dir).filter(|data_dir| !data_dir.join("pg").exists()))
}

fn url_in(data_dir: &Path) -> Option<String> {
    let text = fs::read_to_string(data_dir.join("postgres.url")).ok()?;
    // It is written in two steps; the line's end says that it is whole.
    text.strip_suffix('\n').map(str::to_owned)
}
