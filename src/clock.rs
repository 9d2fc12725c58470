//! The only place that reads a clock; what is stored takes its times from Postgres.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::domain::EventTime;

/// The time by the clock of this machine, for made-up events; before 1970 it is 1970.
#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the wall clock")]
pub fn now() -> EventTime {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    EventTime::from_micros(i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX))
}

/// Measures how long something takes.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts measuring.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the monotonic clock"
    )]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    /// Microseconds since the start.
    pub fn elapsed_us(&self) -> i64 {
        i64::try_from(self.elapsed().as_micros()).unwrap_or(i64::MAX)
    }
}
