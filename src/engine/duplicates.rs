//! The keys that a duplicates rule remembers, for as long as the watermark asks for.

use std::collections::BTreeSet;

use crate::domain::{DuplicateKey, EventTime, Watermark};

/// A key and the time from which on it is forgotten: its first event's time and the delay.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Remembered {
    /// Once the watermark reaches this, an event with the key counts again.
    pub expires_at: EventTime,
    /// The key.
    pub key: DuplicateKey,
}

/// Remembered keys. Their number is bounded by what arrives within the watermark's delay.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Duplicates {
    known: BTreeSet<DuplicateKey>,
    by_expiry: BTreeSet<Remembered>,
}

impl Duplicates {
    pub(super) fn restore(remembered: impl IntoIterator<Item = Remembered>) -> Self {
        let by_expiry: BTreeSet<Remembered> = remembered.into_iter().collect();
        let known = by_expiry.iter().map(|remembered| remembered.key.clone()).collect();
        Self { known, by_expiry }
    }

    pub(super) fn len(&self) -> u64 {
        self.known.len().try_into().unwrap_or(u64::MAX)
    }

    /// Remembers a key that is not remembered yet; says whether that was so.
    pub(super) fn remember(&mut self, key: &DuplicateKey, expires_at: EventTime) -> bool {
        let is_new = self.known.insert(key.clone());
        if is_new {
            self.by_expiry.insert(Remembered { expires_at, key: key.clone() });
        }
        is_new
    }

    /// Forgets the keys whose time has come; says how many.
    pub(super) fn forget(&mut self, watermark: Watermark) -> u64 {
        let mut forgotten: u64 = 0;
        while let Some(first) = self.by_expiry.first() {
            if first.expires_at > watermark.as_event_time() {
                break;
            }
            if let Some(Remembered { key, .. }) = self.by_expiry.pop_first() {
                self.known.remove(&key);
                forgotten = forgotten.saturating_add(1);
            }
        }
        forgotten
    }
}
