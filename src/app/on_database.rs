//! Commands that work on the data beside a running service or without it.

use super::StartError;
use crate::config::DatabaseSettings;
use crate::embedded::{EmbeddedError, SharedPostgres, folder_without_data};

/// What to do where the data folder holds no database yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoData {
    /// It is another folder, most likely.
    Refuse,
    /// Make one, and say so.
    Make,
}

/// Does `work` on the database that `settings` name, or else on the private Postgres of the data folder,
/// which is started for it unless a service runs it already.
///
/// # Errors
/// Those of `work`, and of what it needs.
pub(crate) fn on_database<T, E>(
    settings: &DatabaseSettings,
    no_data: NoData,
    work: impl AsyncFnOnce(&str) -> Result<T, E>,
) -> Result<T, E>
where
    E: From<StartError> + From<EmbeddedError>,
{
    let runtime = tokio::runtime::Runtime::new().map_err(|source| StartError::System {
        doing: "start the threads of the command",
        source,
    })?;
    let (private, url) = match settings.url() {
        Some(url) => (None, url.to_owned()),
        None => {
            let settings = settings.embedded();
            if let Some(data_dir) = folder_without_data(&settings)? {
                if no_data == NoData::Refuse {
                    return Err(StartError::NoData { data_dir }.into());
                }
                eprintln!(
                    "There is no Tillmark database in {} yet; making one",
                    data_dir.display()
                );
            }
            let private = SharedPostgres::start_or_find(&settings)?;
            let url = private.url().to_owned();
            (Some(private), url)
        }
    };
    let done = runtime.block_on(work(&url));
    runtime.shutdown_background();
    if let Some(private) = private {
        private.stop()?;
    }
    done
}
