//! What was made once, for all who ask for the same at the same time and for as long as there is room.
//!
//! Keys name the revision that is shown, so nothing here is ever out of date; what nobody asks for any
//! more is pushed out by what they ask for.

use std::fmt;
use std::hash::Hash;

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

use super::problem::Problem;

/// An answer or two that are asked for by everybody; the count is only a first guess.
const ITEMS_ESTIMATED: usize = 256;
/// More would leave too little room to each for a page of 1,000 rows.
const SHARDS: usize = 2;

/// Something kept, of which it is known how many bytes it takes.
pub(super) trait Weighed {
    /// About so many bytes, its key included.
    fn bytes(&self) -> usize;
}

#[derive(Debug, Clone, Copy)]
struct Bytes;

impl<K, V: Weighed> Weighter<K, V> for Bytes {
    fn weight(&self, _: &K, value: &V) -> u64 {
        u64::try_from(value.bytes()).unwrap_or(u64::MAX)
    }
}

/// Values by keys, together of at most so many bytes.
pub(super) struct Kept<K, V: Weighed>(Cache<K, V, Bytes>);

impl<K, V: Weighed> fmt::Debug for Kept<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kept(…)")
    }
}

impl<K: Hash + Eq + Clone, V: Weighed + Clone> Kept<K, V> {
    /// Nothing yet.
    pub(super) fn new(bytes_max: u64) -> Self {
        let options = OptionsBuilder::new()
            .estimated_items_capacity(ITEMS_ESTIMATED)
            .weight_capacity(bytes_max)
            .shards(SHARDS)
            .build();
        Self(match options {
            Ok(options) => Cache::with_options(
                options,
                Bytes,
                DefaultHashBuilder::default(),
                DefaultLifecycle::default(),
            ),
            // All that can be missing was said above.
            Err(_) => Cache::with_weighter(ITEMS_ESTIMATED, bytes_max, Bytes),
        })
    }

    /// The value of a key, made by whoever asks first; the others wait for it, and one of them makes it
    /// where that fails.
    ///
    /// # Errors
    /// The problem of making it.
    pub(super) async fn get(
        &self,
        key: &K,
        make: impl AsyncFnOnce() -> Result<V, Problem>,
    ) -> Result<V, Problem> {
        if let Some(value) = self.0.get(key) {
            return Ok(value);
        }
        // Making it is a large future: in a place of its own only who makes it pays for that.
        self.0.get_or_insert_async(key, async { Box::pin(make()).await }).await
    }
}
