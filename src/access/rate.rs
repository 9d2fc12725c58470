//! How many events a key may post: a bucket that fills at a rate and holds two seconds of it. Pure.

/// How long a key may save up what it does not post, in seconds.
pub const BURST_SECONDS: u32 = 2;

const MICRO: i64 = 1_000_000;

/// What is left in a key's bucket. In millionths of an event; below zero after a request larger than
/// the whole bucket, which is let through when the bucket is full.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bucket {
    left: i64,
    as_of_us: i64,
}

/// What the bucket says of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// The most events at once.
    pub burst_events: u32,
    /// How many events could be posted now, after this request.
    pub left_events: u32,
    /// In how many seconds the bucket is full again.
    pub full_in_seconds: u32,
    /// The request is one too many: after how many seconds to send it again.
    pub retry_after_seconds: Option<u32>,
}

impl Bucket {
    /// A full one.
    pub(super) const fn full(events_per_second: u32) -> Self {
        Self { left: capacity(events_per_second), as_of_us: 0 }
    }

    /// Takes out `events`, unless too few are left, at a moment in microseconds that only grows.
    pub(super) fn take(&mut self, events: usize, events_per_second: u32, now_us: i64) -> Allowance {
        let (rate, capacity) = (i64::from(events_per_second.max(1)), capacity(events_per_second));
        let elapsed_us = now_us.saturating_sub(self.as_of_us).max(0);
        self.left = self.left.saturating_add(elapsed_us.saturating_mul(rate)).min(capacity);
        self.as_of_us = now_us;
        let cost = i64::try_from(events).unwrap_or(i64::MAX).saturating_mul(MICRO);
        let missing = cost.min(capacity).saturating_sub(self.left);
        if missing <= 0 {
            self.left = self.left.saturating_sub(cost);
        }
        Allowance {
            burst_events: whole(capacity),
            left_events: whole(self.left),
            full_in_seconds: seconds(capacity.saturating_sub(self.left), rate),
            retry_after_seconds: (missing > 0).then(|| seconds(missing, rate).max(1)),
        }
    }
}

const fn capacity(events_per_second: u32) -> i64 {
    (events_per_second as i64) * (BURST_SECONDS as i64) * MICRO
}

/// Whole events of what is left, none when it is less than nothing.
fn whole(left: i64) -> u32 {
    u32::try_from((left / MICRO).max(0)).unwrap_or(u32::MAX)
}

/// How many seconds it takes to fill in `missing`, rounded up.
fn seconds(missing: i64, rate: i64) -> u32 {
    let a_second = rate.saturating_mul(MICRO);
    let rounded_up = missing.max(0).saturating_add(a_second - 1) / a_second;
    u32::try_from(rounded_up).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_posts_its_rate_and_may_save_up_two_seconds_of_it() {
        const RATE: u32 = 100;
        let mut bucket = Bucket::full(RATE);
        for (case, at_ms, events, left, retry_after) in [
            ("a first request", 0, 50, 150, None),
            ("all that is saved", 0, 150, 0, None),
            ("one too many", 0, 1, 0, Some(1)),
            ("a refused request costs nothing", 10, 1, 0, None),
            ("half a second later", 510, 50, 0, None),
            ("never more than two seconds", 60_000, 0, 200, None),
            ("more than the bucket holds, when it is full", 60_000, 1_000, 0, None),
            ("which has to be made up for", 61_000, 1, 0, Some(8)),
            ("still", 68_000, 1, 0, Some(1)),
            ("and then it goes on", 68_010, 1, 0, None),
        ] {
            let allowance = bucket.take(events, RATE, at_ms * 1_000);
            let found = (allowance.left_events, allowance.retry_after_seconds);
            assert_eq!(found, (left, retry_after), "{case}");
            assert_eq!(allowance.burst_events, 200, "{case}");
        }
    }

    #[test]
    fn what_is_said_of_the_bucket_follows_from_it() {
        let mut bucket = Bucket::full(10);
        assert_eq!(bucket.take(15, 10, 0).full_in_seconds, 2);
        assert_eq!(bucket.take(usize::MAX, 10, 0).retry_after_seconds, Some(2));
    }
}
