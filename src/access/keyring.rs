//! The keys that work, in memory: read again every two seconds, so that requests ask no database.

use std::collections::HashMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::Duration;

use futures_util::FutureExt as _;
use subtle::ConstantTimeEq as _;
use tracing::{error, warn};

use super::rate::{Allowance, Bucket};
use super::secret;
use crate::clock::Stopwatch;
use crate::database::{Database, DatabaseError, LiveKey, LiveKeys, SecretHash};
use crate::domain::{Grant, KeyId};

/// How often the keys are read; a key revoked on another replica works for so long at most.
const READ_EVERY: Duration = Duration::from_secs(2);
/// What was read longer ago counts no more: who may do what is not known then.
const AGE_US_MAX: i64 = 8_000_000;
/// A key that is not known is looked for in the database, but not more often than this.
const LOOK_AGAIN_US: i64 = 250_000;
/// Nor for longer: whoever shows keys that are none must not pile up requests here.
const LOOK_MAX: Duration = Duration::from_millis(500);
/// That a key was used is written at most so often.
const NOTE_EVERY_US: i64 = 60_000_000;

/// How requests are let in.
#[derive(Debug, Clone, Copy)]
pub struct AccessSettings {
    /// Whether everybody may do everything while there is no key at all.
    pub open_without_keys: bool,
    /// Whether only this machine reaches the service, so that nobody has another name for it.
    pub is_local: bool,
    /// How many events a key may post a second; nothing: as many as it likes.
    pub key_events_per_second: Option<u32>,
}

/// Why a request is not let in.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// It shows no key.
    #[error("the request shows no key")]
    NoKey,
    /// It shows one that is unknown, wrong, revoked or expired: which of these is not told.
    #[error("the request shows a key that does not work")]
    WrongKey,
    /// The keys could not be read for too long.
    #[error("the keys cannot be read")]
    Unknown,
}

/// The keys. Cheap to clone.
#[derive(Clone)]
pub struct Keyring(Arc<Shared>);

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyring").field("settings", &self.0.settings).finish_non_exhaustive()
    }
}

struct Shared {
    database: Database,
    settings: AccessSettings,
    since: Stopwatch,
    ring: RwLock<Arc<Ring>>,
    /// Held while the keys are read, so that many who miss one read them once.
    reading: tokio::sync::Mutex<()>,
}

/// The keys as they were read at one moment.
struct Ring {
    read_at_us: i64,
    has_keys: bool,
    keys: HashMap<KeyId, Arc<Entry>>,
}

struct Entry {
    key: LiveKey,
    was_used: AtomicBool,
    noted_at_us: Option<i64>,
    bucket: Arc<Mutex<Bucket>>,
}

/// Who makes a request: a key, or, while there is none at all, anybody.
#[derive(Clone)]
pub struct Caller(Option<(Arc<Entry>, Option<u32>, Stopwatch)>);

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Caller").field(&self.key_id().map(KeyId::as_str)).finish()
    }
}

impl Caller {
    /// Somebody who needs no key.
    pub const ANYBODY: Self = Self(None);

    /// The id of the key.
    pub fn key_id(&self) -> Option<&KeyId> {
        self.0.as_ref().map(|(entry, ..)| &entry.key.key_id)
    }

    /// What the key allows; nothing: everything.
    pub fn grant(&self) -> Option<&Grant> {
        self.0.as_ref().map(|(entry, ..)| &entry.key.grant)
    }

    /// Takes `events` from what the key may post; nothing when that is not limited.
    pub fn take(&self, events: usize) -> Option<Allowance> {
        let (entry, events_per_second, since) = self.0.as_ref()?;
        let mut bucket = entry.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        Some(bucket.take(events, (*events_per_second)?, since.elapsed_us()))
    }
}

impl Keyring {
    /// Reads the keys, and from then on again and again while anybody has the keyring.
    ///
    /// # Errors
    /// [`DatabaseError`] when they cannot be read.
    pub async fn start(
        database: Database,
        settings: AccessSettings,
    ) -> Result<Self, DatabaseError> {
        let live = database.keys_live().await?;
        let since = Stopwatch::start();
        let (ring, _) = Ring::of(live, None, since.elapsed_us(), settings.key_events_per_second);
        let (ring, reading) = (RwLock::new(Arc::new(ring)), tokio::sync::Mutex::default());
        let keyring = Self(Arc::new(Shared { database, settings, since, ring, reading }));
        tokio::spawn(read_now_and_then(Arc::downgrade(&keyring.0)));
        Ok(keyring)
    }

    /// Whether only this machine reaches the service.
    pub fn is_local(&self) -> bool {
        self.0.settings.is_local
    }

    /// Whether there is any key, one that does not work any more included.
    pub fn has_keys(&self) -> bool {
        self.0.ring().has_keys
    }

    /// Says who shows this key, or none.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn admit(&self, shown: Option<&str>) -> Result<Caller, Refused> {
        let ring = self.0.ring();
        if !ring.has_keys && self.0.settings.open_without_keys {
            return Ok(Caller::ANYBODY);
        }
        if self.0.age_us(&ring) > AGE_US_MAX {
            return Err(Refused::Unknown);
        }
        let Some((key_id, hash)) = secret::read(shown.ok_or(Refused::NoKey)?) else {
            return Err(Refused::WrongKey);
        };
        let entry = match ring.find(&key_id, &hash) {
            Some(entry) => entry,
            None if ring.keys.contains_key(&key_id) => return Err(Refused::WrongKey),
            None => {
                self.look_again().await;
                self.0.ring().find(&key_id, &hash).ok_or(Refused::WrongKey)?
            }
        };
        entry.was_used.store(true, Ordering::Relaxed);
        Ok(Caller(Some((entry, self.0.settings.key_events_per_second, self.0.since))))
    }

    /// Whether somebody who was let in would be let in still: for those who stay. What they may do never
    /// changes as long as their key works.
    pub fn lets_stay(&self, caller: &Caller) -> bool {
        let ring = self.0.ring();
        match &caller.0 {
            None => !ring.has_keys && self.0.settings.open_without_keys,
            Some((entry, ..)) => {
                let key = &entry.key;
                self.0.age_us(&ring) <= AGE_US_MAX
                    && ring.find(&key.key_id, &key.secret_hash).is_some()
            }
        }
    }

    /// Reads the keys now, after a change to them.
    ///
    /// # Errors
    /// [`DatabaseError`]; they are read again soon in any case.
    pub async fn read(&self) -> Result<(), DatabaseError> {
        let _reading = self.0.reading.lock().await;
        self.0.read().await
    }

    /// For a key that was made a moment ago, elsewhere. A failure leaves what is known.
    async fn look_again(&self) {
        let asked_at_us = self.0.since.elapsed_us();
        let look = async {
            let _reading = self.0.reading.lock().await;
            let ring = self.0.ring();
            // Read for somebody else who asked later than this.
            if ring.read_at_us >= asked_at_us {
                return;
            }
            let rest_us = LOOK_AGAIN_US.saturating_sub(self.0.age_us(&ring));
            tokio::time::sleep(Duration::from_micros(u64::try_from(rest_us).unwrap_or(0))).await;
            drop(self.0.read().await);
        };
        drop(tokio::time::timeout(LOOK_MAX, look).await);
    }
}

impl Shared {
    fn ring(&self) -> Arc<Ring> {
        Arc::clone(&self.ring.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn age_us(&self, ring: &Ring) -> i64 {
        self.since.elapsed_us().saturating_sub(ring.read_at_us)
    }

    async fn read(&self) -> Result<(), DatabaseError> {
        // The age counts from before the reading: what is revoked meanwhile may not be in it.
        let read_at_us = self.since.elapsed_us();
        let live = self.database.keys_live().await?;
        let before = self.ring();
        let rate = self.settings.key_events_per_second;
        let (ring, used) = Ring::of(live, Some(&before), read_at_us, rate);
        *self.ring.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(ring);
        if used.is_empty() { Ok(()) } else { self.database.keys_used(&used).await }
    }
}

impl Ring {
    /// What was read now, with what is known of the same keys from `before`; and those of them of
    /// which it is to be written that they were used.
    fn of(
        live: LiveKeys,
        before: Option<&Self>,
        read_at_us: i64,
        events_per_second: Option<u32>,
    ) -> (Self, Vec<KeyId>) {
        let mut used = Vec::new();
        let keys = live.keys.into_iter().map(|key| {
            let known = before.and_then(|ring| ring.keys.get(&key.key_id));
            let was_used = known.is_some_and(|entry| entry.was_used.load(Ordering::Relaxed));
            let noted_at_us = known.and_then(|entry| entry.noted_at_us);
            let is_due = noted_at_us.is_none_or(|noted| read_at_us - noted >= NOTE_EVERY_US);
            let bucket = known.map_or_else(
                || Arc::new(Mutex::new(Bucket::full(events_per_second.unwrap_or(0)))),
                |entry| Arc::clone(&entry.bucket),
            );
            let notes = was_used && is_due;
            if notes {
                used.push(key.key_id.clone());
            }
            let entry = Entry {
                was_used: AtomicBool::new(was_used && !notes),
                noted_at_us: if notes { Some(read_at_us) } else { noted_at_us },
                bucket,
                key,
            };
            (entry.key.key_id.clone(), Arc::new(entry))
        });
        let keys = keys.collect();
        (Self { read_at_us, has_keys: live.any, keys }, used)
    }

    /// The key of this id, if its secret hashes to this. An unknown id takes as long as a wrong secret.
    fn find(&self, key_id: &KeyId, hash: &SecretHash) -> Option<Arc<Entry>> {
        let entry = self.keys.get(key_id);
        let stored = entry.map_or([0; 32], |entry| entry.key.secret_hash);
        let is_right = bool::from(stored.ct_eq(hash));
        entry.filter(|_| is_right).cloned()
    }
}

/// Reads the keys until nobody has the keyring any more.
async fn read_now_and_then(shared: Weak<Shared>) {
    loop {
        tokio::time::sleep(READ_EVERY).await;
        let Some(shared) = shared.upgrade() else { return };
        let keyring = Keyring(shared);
        // A key that cannot be read must not be the last that was looked at.
        match AssertUnwindSafe(keyring.read()).catch_unwind().await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                warn!(error = %error.chain(), "Could not read the API keys; trying again");
            }
            Err(_) => error!("Reading the API keys panicked; trying again"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Scope;

    fn live(ids: &[&str]) -> LiveKeys {
        let keys = ids.iter().map(|id| LiveKey {
            key_id: id.parse().expect("an id"),
            secret_hash: [7; 32],
            grant: Grant::new([Scope::SalesRead].into(), None).expect("a scope"),
        });
        LiveKeys { any: true, keys: keys.collect() }
    }

    #[test]
    fn a_key_is_found_by_its_id_and_its_secret_only() {
        let (ring, _) = Ring::of(live(&["0123456789ab"]), None, 0, None);
        for (case, id, hash, found) in [
            ("right", "0123456789ab", [7; 32], true),
            ("wrong", "0123456789ab", [8; 32], false),
            ("unknown", "ffffffffffff", [7; 32], false),
            ("unknown, and nothing for a secret", "ffffffffffff", [0; 32], false),
        ] {
            let id = id.parse().expect("an id");
            assert_eq!(ring.find(&id, &hash).is_some(), found, "{case}");
        }
    }

    #[test]
    fn that_a_key_was_used_is_written_once_a_minute() {
        let minute = NOTE_EVERY_US;
        let (mut ring, _) = Ring::of(live(&["0123456789ab"]), None, 0, None);
        let key_id: KeyId = "0123456789ab".parse().expect("an id");
        for (at_us, uses, writes) in [
            (1, false, false),
            (2, true, true),
            (3, true, false),
            (minute, false, false),
            (minute + 2, false, true),
            (3 * minute, false, false),
        ] {
            ring.keys[&key_id].was_used.fetch_or(uses, Ordering::Relaxed);
            let (next, used) = Ring::of(live(&["0123456789ab"]), Some(&ring), at_us, None);
            assert_eq!(!used.is_empty(), writes, "{at_us}");
            ring = next;
        }
    }
}
