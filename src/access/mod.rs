//! Who may come in: API keys, what they allow, and how many events each may post.
//!
//! A key is `tm_<id>_<secret>`. The database has a SHA-256 of the secret; a key that is shown is looked
//! up by its id and its hash compared in constant time. The keys that work are held in memory and read
//! again every two seconds, so that a request asks no database, and nobody can make it do so by
//! guessing.
//!
//! Invariants:
//! * An unknown key and a wrong one get the same answer.
//! * A revoked or expired key works for 8 seconds at most, on every replica; when the keys cannot be
//!   read for longer, nobody is let in.
//! * A secret is shown once, to whoever makes the key, and is in no log and no `Debug`.
//! * Once there was a key, there is no way in without one.
//!
//! Absent on purpose: which address needs which scope. That stands beside the addresses, in `http`.

mod keyring;
mod rate;
mod secret;

pub use keyring::{AccessSettings, Caller, Keyring, Refused};
pub use rate::{Allowance, BURST_SECONDS};
pub use secret::{KeyText, NoRandomness};

use crate::database::{Database, DatabaseError, Rotated, StoredKey};
use crate::domain::{KeyId, NewKey};

/// Why there is no new key.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// It cannot be made.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
    /// It cannot be stored.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// It would have expired already.
    #[error("the expiry is in the past, so the key would never work")]
    ExpiryPassed,
    /// There is no key of this id.
    #[error("there is no key {0}")]
    NoSuchKey(KeyId),
    /// The key that should be rotated does not work any more.
    #[error("the key {0} was revoked or has expired, so it cannot be rotated; create a new one")]
    NotLive(KeyId),
    /// The key has a living successor already.
    #[error(
        "the key {key_id} was rotated already, and {successor} took its place; revoke one of the two first"
    )]
    RotatedAlready {
        /// The key.
        key_id: KeyId,
        /// The other that works.
        successor: KeyId,
    },
}

/// Makes and stores a key; its text is nowhere but in the answer.
///
/// # Errors
/// [`AccessError`].
pub async fn create(
    database: &Database,
    key: &NewKey,
) -> Result<(StoredKey, KeyText), AccessError> {
    let minted = secret::mint()?;
    let stored = database.key_create(&minted.key_id, &minted.secret_hash, key).await?;
    Ok((stored.ok_or(AccessError::ExpiryPassed)?, minted.text))
}

/// Revokes a key. It stays in the list.
///
/// # Errors
/// [`AccessError::NoSuchKey`] or [`AccessError::Database`].
pub async fn revoke(database: &Database, key_id: &KeyId) -> Result<StoredKey, AccessError> {
    let revoked = database.key_revoke(key_id).await?;
    revoked.ok_or_else(|| AccessError::NoSuchKey(key_id.clone()))
}

/// Makes a second key that allows the same; both work until one of them is revoked or expires.
///
/// # Errors
/// [`AccessError`].
pub async fn rotate(
    database: &Database,
    key_id: &KeyId,
) -> Result<(StoredKey, KeyText), AccessError> {
    let minted = secret::mint()?;
    match database.key_rotate(key_id, &minted.key_id, &minted.secret_hash).await? {
        Rotated::Done(stored) => Ok((stored, minted.text)),
        Rotated::NoSuchKey => Err(AccessError::NoSuchKey(key_id.clone())),
        Rotated::NotLive => Err(AccessError::NotLive(key_id.clone())),
        Rotated::Already(successor) => {
            Err(AccessError::RotatedAlready { key_id: key_id.clone(), successor })
        }
    }
}
