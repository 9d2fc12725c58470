//! Settings of `tillmark keys`.

use clap::{Args, Subcommand};

use super::DatabaseSettings;
use crate::domain::{Expiry, KeyId, KeyName, Scope, StoreId};

/// What can be done with API keys.
#[derive(Debug, Clone, Subcommand)]
pub enum KeysCommand {
    /// Makes a key and prints it, this once.
    Create(Box<KeysCreateSettings>),
    /// Lists the keys, the oldest first.
    List(Box<KeysListSettings>),
    /// Revokes a key, for good.
    Revoke(Box<KeyIdSettings>),
    /// Makes a second key that allows the same, and prints it; the first works until it is revoked.
    Rotate(Box<KeyIdSettings>),
}

impl KeysCommand {
    /// Where the keys are.
    pub(super) const fn database(&self) -> &DatabaseSettings {
        match self {
            Self::Create(settings) => &settings.database,
            Self::List(settings) => &settings.database,
            Self::Revoke(settings) | Self::Rotate(settings) => &settings.database,
        }
    }
}

/// What a key is to be.
#[derive(Debug, Clone, Args)]
pub struct KeysCreateSettings {
    /// Whose it is, or where it is used.
    #[arg(long)]
    pub name: KeyName,
    /// What it allows: `events:write`, `sales:read`, `finance`, or `admin` for everything; give it more
    /// than once for more.
    #[arg(long = "scope", required = true, value_name = "SCOPE")]
    pub scopes: Vec<Scope>,
    /// A store that it is bound to; give it more than once for more. Unset: every store.
    #[arg(long = "store", value_name = "STORE_ID")]
    pub stores: Vec<StoreId>,
    /// When it ends to work: after `90 days`, or at `2027-01-31T00:00:00Z`. Unset: never.
    #[arg(long)]
    pub expires: Option<Expiry>,
    /// Where the keys are; with a private Postgres, also while a service runs on it.
    #[command(flatten)]
    pub database: DatabaseSettings,
}

/// Which keys to list.
#[derive(Debug, Clone, Args)]
pub struct KeysListSettings {
    /// Where the keys are.
    #[command(flatten)]
    pub database: DatabaseSettings,
}

/// Which key is meant.
#[derive(Debug, Clone, Args)]
pub struct KeyIdSettings {
    /// The key's id: what stands between `tm_` and the secret.
    #[arg(value_name = "ID")]
    pub key_id: KeyId,
    /// Where the keys are.
    #[command(flatten)]
    pub database: DatabaseSettings,
}
