//! What the group commit counts of itself.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::Stopwatch;
use crate::database::{Appended, DatabaseError};
use crate::telemetry::Histogram;

/// Upper bounds of the events of a commit.
const EVENTS: [u64; 13] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000];
/// Upper bounds of its time, in microseconds.
const DURATIONS_US: [u64; 12] = [
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000, 5_000_000,
    20_000_000,
];
/// For so long after a failure the disk is taken to be full; then it is worth trying again.
const FULL_DISK_PAUSE: Duration = Duration::from_secs(5);

/// The counts of this process.
#[derive(Debug)]
pub struct CommitFigures {
    /// Events of each commit that was made, duplicates included; a heartbeat or a release counts as one.
    pub events: Histogram<13>,
    /// How long each took, in microseconds.
    pub durations_us: Histogram<12>,
    disk_full: Mutex<Option<Stopwatch>>,
}

impl CommitFigures {
    pub(super) fn new() -> Self {
        let (events, durations_us) = (Histogram::new(&EVENTS), Histogram::new(&DURATIONS_US));
        Self { events, durations_us, disk_full: Mutex::default() }
    }

    /// Counts a commit that was made, and remembers one for which the disk of the database was too full.
    pub(super) fn note(
        &self,
        answers: &Result<Vec<Vec<Appended>>, DatabaseError>,
        watch: Stopwatch,
    ) {
        match answers {
            Ok(answers) => {
                let events: usize = answers.iter().map(Vec::len).sum();
                self.events.count(u64::try_from(events).unwrap_or(u64::MAX));
                self.durations_us.count(watch.elapsed_us().unsigned_abs());
                *self.disk_full() = None;
            }
            Err(error) if error.is_disk_full() => *self.disk_full() = Some(Stopwatch::start()),
            Err(_) => {}
        }
    }

    /// Whether the last commit failed a moment ago because the disk of the database is full.
    pub fn is_disk_full(&self) -> bool {
        self.disk_full().is_some_and(|since| since.elapsed() < FULL_DISK_PAUSE)
    }

    fn disk_full(&self) -> MutexGuard<'_, Option<Stopwatch>> {
        self.disk_full.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
