//! One micro-batch: read, step, commit.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tracing::debug;

use crate::clock::Stopwatch;
use crate::database::{
    BatchDurations, CommittedProgress, Database, DatabaseError, IdleClosing, LeaseEpoch,
    ProgressEntry, StoredQuery,
};
use crate::domain::{Amount, Currency, OutputMode, QueryName, Seq};
use crate::engine::{self, Batch, Dropped, DroppedReason, Outcome, Rules, State};

/// From so many records on, which take the engine about a millisecond, the thread's other tasks move to
/// another one meanwhile.
const BLOCKING_RECORDS_MIN: usize = 4_000;

/// A query as its last commit left it, in memory.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) query: StoredQuery,
    /// Under which its batches are committed.
    lease: LeaseEpoch,
    rules: Rules,
    state: State,
    /// Whether the last batch read a record, or failed to.
    has_read: bool,
}

/// Why a micro-batch was not committed, or may not have been.
#[derive(Debug, thiserror::Error)]
pub(super) enum BatchError {
    /// Reading or writing failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The service has a fault that this batch shows.
    #[error("the batch panicked; the log says where")]
    Panicked,
}

impl BatchError {
    /// Whether a record of the batch may be to blame.
    fn may_blame_a_record(&self) -> bool {
        match self {
            Self::Database(error) => error.may_blame_a_record(),
            Self::Panicked => true,
        }
    }

    /// The whole chain of causes in one line.
    pub(super) fn chain(&self) -> String {
        match self {
            Self::Database(error) => error.chain(),
            Self::Panicked => self.to_string(),
        }
    }
}

/// What one turn of the loop did.
#[derive(Debug)]
pub(super) enum Ran {
    /// There was nothing to do.
    Nothing,
    /// Events were read, and none of them passes the filter: only the position moved.
    Skipped,
    /// A micro-batch was committed.
    Batch(Box<Committed>),
}

/// A micro-batch that was committed.
#[derive(Debug)]
pub(super) struct Committed {
    pub(super) progress: CommittedProgress,
    /// Currency and amount of each late event, once however many windows it missed.
    pub(super) late: Vec<(Currency, Amount)>,
    /// How long writing took, the commit itself included.
    pub(super) commit_us: i64,
}

impl Loaded {
    /// Reads the query's last commit.
    pub(super) async fn load(
        database: &Database,
        lease: LeaseEpoch,
        name: &QueryName,
    ) -> Result<Self, DatabaseError> {
        let (query, state) = database.checkpoint_load(name).await?;
        debug!(query.name = %name, query.position = %query.position, "Loaded a query");
        Ok(Self { rules: Rules::from(&query.spec), query, lease, state, has_read: false })
    }

    /// What silence could do for the query; nothing when it does not want that, or nothing is open.
    pub(super) fn idle_closing(&self) -> Option<IdleClosing> {
        let spec = &self.query.spec;
        let timeout = spec.idle_timeout.filter(|_| spec.output_mode != OutputMode::Complete)?;
        let closes_at = self.state.first_window_end()?.plus(spec.watermark_delay);
        Some(IdleClosing { timeout, closes_at })
    }

    /// Runs the next micro-batch of at most `events_max` records, if there is one. The raw log had
    /// reached `head`.
    ///
    /// # Errors
    /// After any error this value is behind or ahead of the database and must be thrown away.
    pub(super) async fn run_batch(
        &mut self,
        database: &Database,
        head: Seq,
        events_max: u32,
    ) -> Result<Ran, BatchError> {
        let total = Stopwatch::start();
        self.has_read = true;
        let batch =
            database.raw_log_batch(&self.rules, self.query.position, head, events_max).await?;
        fault_point!("engine.read");
        let read_us = total.elapsed_us();
        let position = batch.last_seq().unwrap_or(self.query.position);
        let compute = Stopwatch::start();
        self.has_read = !batch.is_empty();
        let outcome = self.step(&batch)?;
        fault_point!("engine.stepped");
        let compute_us = compute.elapsed_us();
        match outcome {
            None if batch.is_empty() && self.query.error.is_none() => Ok(Ran::Nothing),
            None => {
                // Also takes back an error whose batch was committed all the same.
                database.checkpoint_skip(self.lease, &self.query, position).await?;
                fault_point!("engine.skipped");
                self.query.position = position;
                self.query.error = None;
                Ok(if batch.is_empty() { Ran::Nothing } else { Ran::Skipped })
            }
            Some(outcome) => {
                let spent = BatchDurations { read_us, compute_us, ..BatchDurations::default() };
                let batch = self.commit(database, &outcome, position, spent, total).await?;
                Ok(Ran::Batch(Box::new(batch)))
            }
        }
    }

    /// Steps the engine without holding up the other tasks of this thread. A panic there is a
    /// failure of this batch, not the end of the runner.
    fn step(&mut self, batch: &Batch) -> Result<Option<Outcome>, BatchError> {
        let (rules, state) = (&self.rules, &mut self.state);
        let step = AssertUnwindSafe(|| engine::step(rules, state, batch));
        let stepped = if batch.records().len() < BLOCKING_RECORDS_MIN {
            catch_unwind(step)
        } else {
            tokio::task::block_in_place(|| catch_unwind(step))
        };
        stepped.map_err(|_| BatchError::Panicked)
    }

    /// Whether `error`, which ended the last batch, may be the fault of a record.
    pub(super) fn blames_a_record(&self, error: &BatchError) -> bool {
        self.has_read && error.may_blame_a_record()
    }

    async fn commit(
        &mut self,
        database: &Database,
        outcome: &Outcome,
        position: Seq,
        mut durations: BatchDurations,
        total: Stopwatch,
    ) -> Result<Committed, DatabaseError> {
        let commit = Stopwatch::start();
        durations.total_us = total.elapsed_us();
        let positions = (self.query.position, position);
        let entry = ProgressEntry::of(self.query.next_batch_id, outcome, positions, durations);
        let progress = database.checkpoint_commit(self.lease, &self.query, outcome, entry).await?;
        fault_point!("engine.committed");
        let commit_us = commit.elapsed_us();
        let entry = &progress.entry;
        debug!(
            batch.n_events_in = entry.events_in,
            batch.n_late = entry.late_events,
            batch.n_rows = entry.rows_written,
            batch.watermark = %entry.watermark,
            batch.duration_us = entry.durations.total_us,
            "Committed a micro-batch of {} events", entry.events_in,
        );
        self.query.position = position;
        self.query.next_batch_id = entry.batch_id.next();
        self.query.watermarks = outcome.watermarks;
        self.query.newest_event_time = outcome.newest_event_time;
        self.query.error = None;
        Ok(Committed { progress, late: late_money(&outcome.dropped), commit_us })
    }
}

/// The money of late events. The entries of one event stand together.
fn late_money(dropped: &[Dropped]) -> Vec<(Currency, Amount)> {
    let mut late: Vec<&Dropped> =
        dropped.iter().filter(|entry| entry.reason == DroppedReason::Late).collect();
    late.dedup_by_key(|entry| entry.seq);
    late.into_iter().map(|entry| (entry.key.currency, entry.amount)).collect()
}
