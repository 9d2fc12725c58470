//! `tillmark keys`: API keys without the API, for the first of them and for the day it is lost.

use std::io::{self, Write as _};

use crate::access::{self, AccessError, KeyText};
use crate::app::{self, NoData, StartError};
use crate::config::{DatabaseSettings, KeysCommand, KeysCreateSettings};
use crate::database::{Database, DatabaseError, KeyCursor, PoolSizes, StoredKey};
use crate::domain::{Grant, InvalidGrant, KeyId, NewKey};
use crate::embedded::EmbeddedError;

const POOL_SIZES: PoolSizes = PoolSizes { ingest: 1, engine: 1, reads: 1 };
const PAGE: u32 = 500;

/// Why nothing was done to a key.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeysError {
    /// The scopes and stores do not go together.
    #[error(transparent)]
    Grant(#[from] InvalidGrant),
    /// The key cannot be made, found or changed.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The database cannot be used.
    #[error("the database cannot be used")]
    Database(#[from] DatabaseError),
    /// The private Postgres did not start or stop.
    #[error(transparent)]
    Embedded(#[from] EmbeddedError),
    /// The system refused something that every command needs.
    #[error(transparent)]
    Start(#[from] StartError),
    /// What was to be shown cannot be. Of a key that nobody saw nothing is left that works.
    #[error(
        "could not write to standard output (a key that was made and not shown is revoked again)"
    )]
    Write(#[source] io::Error),
}

impl KeysError {
    /// What the process answers: `EX_USAGE`, `EX_DATAERR` for a key that is not there or cannot be
    /// rotated, or `EX_UNAVAILABLE`.
    pub(super) const fn exit_code(&self) -> u8 {
        match self {
            Self::Grant(_)
            | Self::Access(AccessError::ExpiryPassed)
            | Self::Database(DatabaseError::Address(_)) => 64,
            Self::Access(
                AccessError::NoSuchKey(_)
                | AccessError::NotLive(_)
                | AccessError::RotatedAlready { .. },
            ) => 65,
            Self::Embedded(error) if error.is_setting() => 64,
            Self::Write(_) => 74,
            Self::Access(_) | Self::Database(_) | Self::Embedded(_) | Self::Start(_) => 69,
        }
    }
}

/// Does what was asked for.
pub(super) fn run(command: &KeysCommand) -> Result<(), KeysError> {
    match command {
        KeysCommand::Create(settings) => {
            let key = new_key(settings)?;
            let create = async |database| {
                let created = access::create(&database, &key).await?;
                show(&database, &created).await
            };
            on_database(&settings.database, NoData::Make, create)
        }
        KeysCommand::List(settings) => on_database(&settings.database, NoData::Refuse, list),
        KeysCommand::Revoke(settings) => {
            on_database(&settings.database, NoData::Refuse, async |database| {
                let key = access::revoke(&database, &settings.key_id).await?;
                write(&format!(
                    "Revoked {} ({}); within 8 seconds it works nowhere",
                    key.key_id,
                    plain(key.name.as_str())
                ))
            })
        }
        KeysCommand::Rotate(settings) => {
            on_database(&settings.database, NoData::Refuse, async |database| {
                let rotated = access::rotate(&database, &settings.key_id).await?;
                show(&database, &rotated).await
            })
        }
    }
}

fn new_key(settings: &KeysCreateSettings) -> Result<NewKey, InvalidGrant> {
    let stores = Some(&settings.stores).filter(|stores| !stores.is_empty());
    let stores = stores.map(|stores| stores.iter().cloned().collect());
    let grant = Grant::new(settings.scopes.iter().copied().collect(), stores)?;
    Ok(NewKey { name: settings.name.clone(), grant, expiry: settings.expires })
}

/// Opens the database, which may be that of a running service, and closes it afterwards.
fn on_database(
    settings: &DatabaseSettings,
    no_data: NoData,
    work: impl AsyncFnOnce(Database) -> Result<(), KeysError>,
) -> Result<(), KeysError> {
    app::on_database(settings, no_data, async |url| {
        let database = Database::start(url, POOL_SIZES, settings.database_wait).await?;
        let done = work(database.clone()).await;
        database.close().await;
        done
    })
}

/// The key alone on standard output, so that a script can take it; the rest beside it.
async fn show(database: &Database, (key, text): &(StoredKey, KeyText)) -> Result<(), KeysError> {
    eprintln!("{}", facts(key));
    if let Some(old) = &key.rotated_from {
        eprintln!("It takes the place of {old}: once it is in use, `tillmark keys revoke {old}`.");
    }
    eprintln!("This is the only time that it is shown. Send it as `Authorization: Bearer <key>`:");
    let written = write(&text.to_string());
    if written.is_err() {
        access::revoke(database, &key.key_id).await?;
    }
    written
}

/// Writes a line to standard output, where somebody may have stopped to read.
fn write(line: &str) -> Result<(), KeysError> {
    writeln!(io::stdout(), "{line}").map_err(KeysError::Write)
}

async fn list(database: Database) -> Result<(), KeysError> {
    let mut after = None;
    loop {
        let keys = database.keys(after.as_ref(), PAGE).await?;
        for key in &keys {
            write(&facts(key))?;
        }
        let Some(last) = keys.last() else { return Ok(()) };
        after = Some(KeyCursor { created_at: last.created_at, key_id: last.key_id.clone() });
    }
}

/// A key in one line.
fn facts(key: &StoredKey) -> String {
    let scopes: Vec<&str> = key.grant.scopes().iter().map(|scope| scope.as_str()).collect();
    let stores = key.grant.reach().ids().map_or("all".to_owned(), |ids| plain(&ids.join(",")));
    let standing = match (key.revoked_at, key.is_live) {
        (Some(at), _) => format!("revoked {}", moment(at)),
        (None, true) => "live".to_owned(),
        (None, false) => "expired".to_owned(),
    };
    let expires = key.expires_at.map_or("never".to_owned(), moment);
    let used = key.last_used_at.map_or("never".to_owned(), moment);
    let old = key.rotated_from.as_ref().map(KeyId::as_str);
    let rotated = old.map_or(String::new(), |old| format!("  rotated from {old}"));
    format!(
        "{}  {}  scopes {}  stores {stores}  {standing}  created {}  expires {expires}  used {used}{rotated}",
        key.key_id,
        plain(key.name.as_str()),
        scopes.join(","),
        moment(key.created_at),
    )
}

/// A text without what a terminal would obey.
fn plain(text: &str) -> String {
    let parts = text.chars().map(|one| match one {
        '"' | '\'' => one.to_string(),
        other => other.escape_debug().to_string(),
    });
    parts.collect()
}

fn moment(at: impl std::fmt::Display) -> String {
    at.to_string()
}
