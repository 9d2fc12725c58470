//! What a random stream draws from: a seed, or bytes that a fuzzer chose.

use std::ops::{Bound, RangeBounds};

use fastrand::Rng;

#[derive(Debug)]
pub(crate) enum Choices {
    Seeded(Box<Rng>),
    /// What is left of the bytes; after them everything is the first of its choices.
    #[cfg_attr(test, expect(dead_code, reason = "made by tests/engine/fuzz.rs"))]
    Chosen(std::vec::IntoIter<u8>),
}

impl Choices {
    pub(super) fn bool(&mut self) -> bool {
        match self {
            Self::Seeded(rng) => rng.bool(),
            Self::Chosen(_) => self.i64(0..2) == 1,
        }
    }

    pub(super) fn i64(&mut self, range: impl RangeBounds<i64>) -> i64 {
        match self {
            Self::Seeded(rng) => rng.i64(range),
            Self::Chosen(bytes) => chosen(bytes, &range),
        }
    }

    pub(super) fn u32(&mut self, range: impl RangeBounds<u32>) -> u32 {
        match self {
            Self::Seeded(rng) => rng.u32(range),
            Self::Chosen(bytes) => {
                let (low, high) = (range.start_bound(), range.end_bound());
                chosen(bytes, &(low.map(|low| i64::from(*low)), high.map(|high| i64::from(*high))))
                    .try_into()
                    .expect("within the range")
            }
        }
    }

    pub(super) fn usize(&mut self, range: impl RangeBounds<usize>) -> usize {
        match self {
            Self::Seeded(rng) => rng.usize(range),
            Self::Chosen(bytes) => {
                let plain = |bound: &usize| i64::try_from(*bound).expect("a few");
                let bounds = (range.start_bound().map(plain), range.end_bound().map(plain));
                chosen(bytes, &bounds).try_into().expect("within the range")
            }
        }
    }

    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        match self {
            Self::Seeded(rng) => rng.shuffle(items),
            Self::Chosen(_) => {
                for index in 1..items.len() {
                    items.swap(index, self.usize(..=index));
                }
            }
        }
    }
}

/// A number of the range by as many bytes as it needs, from 0 where the range has no start.
fn chosen(bytes: &mut std::vec::IntoIter<u8>, range: &impl RangeBounds<i64>) -> i64 {
    let low = match range.start_bound() {
        Bound::Included(low) => *low,
        Bound::Excluded(low) => low + 1,
        Bound::Unbounded => 0,
    };
    let high = match range.end_bound() {
        Bound::Included(high) => *high,
        Bound::Excluded(high) => high - 1,
        Bound::Unbounded => panic!("a range has an end"),
    };
    let count = (i128::from(high) - i128::from(low) + 1).unsigned_abs();
    let (mut number, mut reach) = (0_u128, 1_u128);
    while reach < count {
        number = number << 8 | u128::from(bytes.next().unwrap_or_default());
        reach <<= 8;
    }
    low + i64::try_from(number % count).expect("within the range")
}
