//! When requests are due.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::clock::Stopwatch;

/// The shortest pause between two looks at the clock: what is due together is sent together.
const PAUSE_MIN: Duration = Duration::from_micros(200);
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// Tells each connection when to send.
#[derive(Debug)]
pub(super) struct Pace {
    since: Stopwatch,
    until_us: u64,
    open_loop: Option<OpenLoop>,
}

/// A constant rate, whatever the answers do.
#[derive(Debug)]
struct OpenLoop {
    /// Requests that are due and not yet taken.
    due: Semaphore,
    /// The number of the request that is taken next.
    next: AtomicU64,
    released: AtomicU64,
    requests_max: u64,
    events_per_request: u64,
    events_per_second: u64,
}

impl Pace {
    /// Each connection sends again as soon as it has its answer.
    pub(super) const fn closed_loop(since: Stopwatch, until_us: u64) -> Self {
        Self { since, until_us, open_loop: None }
    }

    /// `rate` events a second in requests of `batch` events, up to `events_max` in all.
    pub(super) fn open_loop(
        since: Stopwatch,
        until_us: u64,
        rate: u32,
        batch: u16,
        events_max: u32,
    ) -> Self {
        let open_loop = OpenLoop {
            due: Semaphore::new(0),
            next: AtomicU64::new(0),
            released: AtomicU64::new(0),
            requests_max: u64::from(events_max.div_ceil(u32::from(batch))),
            events_per_request: u64::from(batch),
            events_per_second: u64::from(rate),
        };
        Self { since, until_us, open_loop: Some(open_loop) }
    }

    /// Starts the thread that counts what is due: timers of the runtime are a millisecond coarse.
    pub(super) fn start(self: Arc<Self>) -> std::io::Result<()> {
        if self.open_loop.is_some() {
            let pace = std::thread::Builder::new().name("bench-pace".to_owned());
            pace.spawn(move || self.release_until_over())?;
        }
        Ok(())
    }

    /// Comes back when a request is due, with the microsecond of the run at which it was; with
    /// nothing once the run is over.
    pub(super) async fn turn(&self) -> Option<u64> {
        match &self.open_loop {
            None => Some(self.elapsed_us()).filter(|elapsed_us| *elapsed_us < self.until_us),
            Some(open_loop) => {
                open_loop.due.acquire().await.ok()?.forget();
                Some(open_loop.due_us(open_loop.next.fetch_add(1, Ordering::Relaxed)))
            }
        }
    }

    /// Requests that were due and never sent.
    pub(super) fn not_sent(&self) -> u64 {
        let Some(open_loop) = &self.open_loop else { return 0 };
        let sent = open_loop.next.load(Ordering::Relaxed);
        open_loop.released.load(Ordering::Relaxed).saturating_sub(sent)
    }

    /// Microseconds since the start of the run.
    pub(super) fn elapsed_us(&self) -> u64 {
        self.since.elapsed_us().unsigned_abs()
    }

    fn release_until_over(&self) {
        let Some(open_loop) = &self.open_loop else { return };
        loop {
            let elapsed_us = self.elapsed_us();
            let released = open_loop.release(elapsed_us.min(self.until_us - 1));
            if elapsed_us >= self.until_us || released == open_loop.requests_max {
                break;
            }
            let wait_us = open_loop.due_us(released).saturating_sub(self.elapsed_us());
            sleep(Duration::from_micros(wait_us).clamp(PAUSE_MIN, PAUSE_MAX));
        }
        while self.elapsed_us() < self.until_us && open_loop.due.available_permits() > 0 {
            sleep(PAUSE_MAX);
        }
        open_loop.due.close();
    }
}

impl OpenLoop {
    /// The microsecond at which a request is due.
    const fn due_us(&self, number: u64) -> u64 {
        number * self.events_per_request * 1_000_000 / self.events_per_second
    }

    /// Lets go what is due by now; answers how many were let go so far.
    fn release(&self, elapsed_us: u64) -> u64 {
        let per_request = self.events_per_request * 1_000_000;
        let due = (elapsed_us * self.events_per_second / per_request + 1).min(self.requests_max);
        let released = self.released.swap(due, Ordering::Relaxed);
        self.due.add_permits(usize::try_from(due.saturating_sub(released)).unwrap_or(0));
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_due_is_a_matter_of_the_clock_alone() {
        let pace = Pace::open_loop(Stopwatch::start(), 1_000_000, 1_000, 10, 35);
        let open_loop = pace.open_loop.as_ref().unwrap();
        for (elapsed_us, due) in [(0, 1), (9_999, 1), (10_000, 2), (25_000, 3), (900_000, 4)] {
            assert_eq!(open_loop.release(elapsed_us), due, "{elapsed_us}");
        }
        assert_eq!([pace.turn().await, pace.turn().await], [Some(0), Some(10_000)]);
        assert_eq!(pace.not_sent(), 2);
    }
}
