//! How often something was how large, or took how long.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts by fixed bounds. Counting takes no lock; all counts are since the start of the process.
#[derive(Debug)]
pub struct Histogram<const N: usize> {
    /// The largest value of each bucket, ascending.
    bounds: &'static [u64; N],
    /// By the first bound that they do not exceed.
    buckets: [AtomicU64; N],
    /// Those that exceed every bound.
    above: AtomicU64,
    sum: AtomicU64,
}

/// What a histogram has counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// Each bound, and how many values were not above it.
    pub up_to: Vec<(u64, u64)>,
    /// How many values there were.
    pub count: u64,
    /// All of them together.
    pub sum: u64,
}

impl<const N: usize> Histogram<N> {
    /// A histogram that has counted nothing yet.
    pub fn new(bounds: &'static [u64; N]) -> Self {
        let buckets = std::array::from_fn(|_| AtomicU64::default());
        Self { bounds, buckets, above: AtomicU64::default(), sum: AtomicU64::default() }
    }

    /// Counts one value.
    pub fn count(&self, value: u64) {
        let at = self.bounds.partition_point(|bound| *bound < value);
        self.buckets.get(at).unwrap_or(&self.above).fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// What it has counted so far.
    pub fn counted(&self) -> Counted {
        let mut count = 0;
        let mut up_to = Vec::with_capacity(N);
        for (bound, bucket) in self.bounds.iter().zip(&self.buckets) {
            count += bucket.load(Ordering::Relaxed);
            up_to.push((*bound, count));
        }
        count += self.above.load(Ordering::Relaxed);
        Counted { up_to, count, sum: self.sum.load(Ordering::Relaxed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_counted_up_to_each_bound_that_it_does_not_exceed() {
        let histogram = Histogram::new(&[5, 10]);
        for value in [0, 5, 6, 10, 11, 1_000] {
            histogram.count(value);
        }
        let counted = Counted { up_to: vec![(5, 2), (10, 4)], count: 6, sum: 1_032 };
        assert_eq!(histogram.counted(), counted);
    }
}
