//! When windows closed, relative to their ends.

use std::collections::BTreeMap;

use crate::domain::Lag;

/// The most different lags that are kept apart.
const LAGS_MAX: usize = 50_000;

/// How long after its end each window closed: the number, the median and the worst.
///
/// The median is exact as long as there are at most 50,000 different lags, to the millisecond; with
/// more, neighbours are counted together, and [`resolution_ms`](Self::resolution_ms) says how many.
#[derive(Debug)]
pub struct Closings {
    /// By lag in units of the resolution.
    counts: BTreeMap<i64, u64>,
    resolution_ms: i64,
    windows: u64,
    worst_ms: Option<i64>,
}

impl Default for Closings {
    fn default() -> Self {
        Self { counts: BTreeMap::new(), resolution_ms: 1, windows: 0, worst_ms: None }
    }
}

impl Closings {
    /// Counts one window.
    pub(super) fn count(&mut self, lag: Lag) {
        self.windows += 1;
        self.worst_ms = self.worst_ms.max(Some(lag.as_millis()));
        *self.counts.entry(lag.as_millis().div_euclid(self.resolution_ms)).or_default() += 1;
        while self.counts.len() > LAGS_MAX {
            self.coarsen();
        }
    }

    fn coarsen(&mut self) {
        self.resolution_ms = self.resolution_ms.saturating_mul(2);
        let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
        for (lag, count) in std::mem::take(&mut self.counts) {
            *counts.entry(lag.div_euclid(2)).or_default() += count;
        }
        self.counts = counts;
    }

    /// How many windows closed.
    pub const fn windows(&self) -> u64 {
        self.windows
    }

    /// The lag that half of the windows, or more, did not exceed; nothing when none closed.
    pub fn median(&self) -> Option<Lag> {
        let mut up_to = 0;
        let (lag, _) = self.counts.iter().find(|(_, count)| {
            up_to += **count;
            up_to >= self.windows.div_ceil(2)
        })?;
        Some(Lag::from_millis(lag.saturating_mul(self.resolution_ms)))
    }

    /// The longest lag.
    pub fn worst(&self) -> Option<Lag> {
        self.worst_ms.map(Lag::from_millis)
    }

    /// To how many milliseconds the median is exact.
    pub const fn resolution_ms(&self) -> i64 {
        self.resolution_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_lags_as_are_kept_apart_are_exact_and_one_more_is_not() {
        let mut closings = Closings::default();
        for (lag, resolution_ms) in (0..=50_000).map(|lag| (lag, if lag < 50_000 { 1 } else { 2 }))
        {
            closings.count(Lag::from_millis(lag));
            assert_eq!(closings.resolution_ms(), resolution_ms, "{lag}");
        }
    }

    #[test]
    fn the_median_is_exact_until_there_are_too_many_lags_to_keep_apart() {
        let mut closings = Closings::default();
        assert_eq!(closings.median(), None);
        for lag in [-3, 10, 20, 5] {
            closings.count(Lag::from_millis(lag));
        }
        let seen = (closings.windows(), closings.median(), closings.worst());
        assert_eq!(seen, (4, Some(Lag::from_millis(5)), Some(Lag::from_millis(20))));
        for lag in 0..199_996 {
            closings.count(Lag::from_millis(lag * 7));
        }
        assert!(closings.counts.len() <= LAGS_MAX);
        let (median, resolution) =
            (closings.median().expect("some").as_millis(), closings.resolution_ms());
        assert!((median..median + resolution).contains(&(99_995 * 7)), "{median} ± {resolution}");
        assert_eq!(closings.worst(), Some(Lag::from_millis(199_995 * 7)));
    }
}
