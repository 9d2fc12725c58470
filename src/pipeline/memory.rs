//! What a runner holds between two turns, and when its next turn is due.

use std::pin::Pin;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior, Sleep};
use tracing::{Instrument as _, error_span};

use super::batch::{BatchError, Loaded, Ran};
use super::suspicion::Suspicion;
use crate::database::{Database, DatabaseError, LeaseEpoch};
use crate::domain::{QueryName, Seq, Span, Trigger};

const BACKOFF_FIRST: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(5);
/// No query rests for longer than this.
const REST_MAX: Duration = Duration::from_millis(40);
/// What a query rests for each event of its last batch. At a hundred thousand a second some thousands come
/// meanwhile, which cost hardly more to commit than a few.
const REST_PER_EVENT_US: i64 = 10;

/// Why a runner wakes up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// The query's trigger says so, or the query is still to be read.
    Turn,
    /// Nothing may have been received for as long as the query waits before it closes its windows.
    IdleClosing,
}

/// What the runner holds between two turns.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) loaded: Option<Loaded>,
    pub(super) failures: u32,
    pub(super) suspicion: Suspicion,
    /// The query is not in the table any more.
    pub(super) gone: bool,
    ticks: Option<Interval>,
    /// Between a tick and the moment when nothing is left to read.
    is_catching_up: bool,
    idle_timer: Option<Pin<Box<Sleep>>>,
    /// What a query that has caught up waits for before it looks for more.
    rest: Option<Pin<Box<Sleep>>>,
}

impl Memory {
    /// The query as it is in memory, or else as its last commit left it.
    pub(super) async fn load(
        &mut self,
        database: &Database,
        lease: LeaseEpoch,
        name: &QueryName,
    ) -> Result<&mut Loaded, DatabaseError> {
        let loaded = match self.loaded.take() {
            Some(loaded) => loaded,
            None => {
                let loaded = Loaded::load(database, lease, name).await?;
                self.ticks = match loaded.query.spec.trigger {
                    Trigger::Interval { every } => Some(ticks(every.to_duration())),
                    Trigger::Continuous | Trigger::Manual => None,
                };
                loaded
            }
        };
        Ok(self.loaded.insert(loaded))
    }

    /// Runs the next batch of the query, which must be loaded; a smaller one while a record is
    /// suspected. The raw log had reached `head`.
    ///
    /// # Errors
    /// After any error what is loaded must be thrown away.
    pub(super) async fn run_batch(
        &mut self,
        database: &Database,
        head: Seq,
    ) -> Result<Ran, BatchError> {
        let Self { loaded: Some(loaded), suspicion, .. } = self else { return Ok(Ran::Nothing) };
        let events_max = suspicion.records_max(loaded.query.spec.max_events_per_batch);
        let batch = error_span!(
            "batch",
            query.name = %loaded.query.name,
            batch.id = %loaded.query.next_batch_id,
        );
        let ran = loaded.run_batch(database, head, events_max).instrument(batch).await?;
        suspicion.passed(loaded.query.position);
        self.rest = rest_after(&ran, events_max).map(|rest| Box::pin(tokio::time::sleep(rest)));
        Ok(ran)
    }

    /// How long to wait before the next attempt after a failure.
    pub(super) fn backoff(&self) -> Duration {
        let doublings = self.failures.saturating_sub(1).min(16);
        BACKOFF_FIRST.saturating_mul(1 << doublings).min(BACKOFF_MAX)
    }

    /// After a turn that found nothing to do the next tick is waited for.
    pub(super) const fn caught_up(&mut self) {
        self.is_catching_up = false;
    }

    /// Looks after `wait` whether nothing has been received for long enough.
    pub(super) fn look_for_silence_after(&mut self, wait: Span) {
        self.idle_timer = Some(Box::pin(tokio::time::sleep(wait.to_duration())));
    }

    /// Comes back when something is due.
    pub(super) async fn due(&mut self, head: &mut watch::Receiver<Seq>) -> Due {
        if self.gone {
            return std::future::pending().await;
        }
        let Some(loaded) = &self.loaded else {
            if self.failures > 0 {
                tokio::time::sleep(self.backoff()).await;
            }
            return Due::Turn;
        };
        if loaded.query.paused {
            return std::future::pending().await;
        }
        match loaded.idle_closing() {
            None => self.idle_timer = None,
            Some(wanted) if self.idle_timer.is_none() => {
                self.look_for_silence_after(wanted.timeout);
            }
            Some(_) => {}
        }
        let Self { loaded: Some(loaded), ticks, is_catching_up, idle_timer, rest, .. } = self
        else {
            return Due::Turn;
        };
        let silence = async {
            match idle_timer {
                Some(timer) => timer.as_mut().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = turn_due(loaded, ticks.as_mut(), is_catching_up, rest, head) => Due::Turn,
            () = silence => Due::IdleClosing,
        }
    }
}

/// As long as its batch took, or longer after many events, for a query that read all there was: so under
/// load its batches gather events, and leave most of the time to the rest. One that is behind does not rest.
fn rest_after(ran: &Ran, events_max: u32) -> Option<Duration> {
    let rest_min = Trigger::Continuous.rest_min().to_duration();
    match ran {
        Ran::Batch(batch) if batch.progress.entry.events_in < i64::from(events_max) => {
            let entry = &batch.progress.entry;
            let rest_us =
                entry.durations.total_us.max(entry.events_in.saturating_mul(REST_PER_EVENT_US));
            Some(Duration::from_micros(rest_us.unsigned_abs()).clamp(rest_min, REST_MAX))
        }
        Ran::Nothing => Some(rest_min),
        Ran::Batch(_) | Ran::Skipped => None,
    }
}

/// Comes back when the query's trigger says that a turn is due.
async fn turn_due(
    loaded: &Loaded,
    ticks: Option<&mut Interval>,
    is_catching_up: &mut bool,
    rest: &mut Option<Pin<Box<Sleep>>>,
    head: &mut watch::Receiver<Seq>,
) {
    let query = &loaded.query;
    match ticks {
        Some(_) if *is_catching_up => {}
        Some(ticks) => {
            ticks.tick().await;
            *is_catching_up = true;
        }
        None if query.spec.trigger == Trigger::Manual => std::future::pending().await,
        // An error that is still there may be of a batch that was committed all the same.
        None if query.error.is_some() => {}
        None => {
            if let Some(resting) = rest {
                resting.as_mut().await;
            }
            *rest = None;
            // What came meanwhile moves the watermark as well as the batch without data that is owed.
            if !query.owes_batch_without_data() {
                // A closed channel means that the service stops, which is seen elsewhere.
                let _ = head.wait_for(|head| *head > query.position).await;
            }
        }
    }
}

fn ticks(every: Duration) -> Interval {
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks
}
