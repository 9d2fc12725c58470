//! One micro-batch: read, step, commit.

use tracing::{debug, info};

use crate::clock::Stopwatch;
use crate::database::{
    BatchDurations, CommittedProgress, Database, DatabaseError, ProgressEntry, StoredQuery,
};
use crate::domain::{QueryName, Seq};
use crate::engine::{self, Batch, Outcome, Rules, State};

/// A query as its last commit left it, in memory.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) query: StoredQuery,
    rules: Rules,
    state: State,
}

/// What one turn of the loop did.
#[derive(Debug)]
pub(super) enum Ran {
    /// There was nothing to do.
    Nothing,
    /// Events were read, and none of them passes the filter: only the position moved.
    Skipped,
    /// A micro-batch was committed.
    Batch(Box<CommittedProgress>),
}

impl Loaded {
    /// Reads the query's last commit.
    pub(super) async fn load(database: &Database, name: &QueryName) -> Result<Self, DatabaseError> {
        let (query, state) = database.checkpoint_load(name).await?;
        debug!(query.name = %name, query.position = %query.position, "Loaded a query");
        Ok(Self { rules: Rules::from(&query.spec), query, state })
    }

    /// Runs the next micro-batch, if there is one.
    ///
    /// # Errors
    /// After any error this value is behind or ahead of the database and must be thrown away.
    pub(super) async fn run_batch(&mut self, database: &Database) -> Result<Ran, DatabaseError> {
        let total = Stopwatch::start();
        let events_max = self.query.spec.max_events_per_batch;
        let batch = database.raw_log_batch(&self.rules, self.query.position, events_max).await?;
        let read_us = total.elapsed_us();
        let position = batch.last_seq().unwrap_or(self.query.position);
        let compute = Stopwatch::start();
        let outcome = self.step(&batch);
        let compute_us = compute.elapsed_us();
        match outcome {
            None if batch.is_empty() => Ok(Ran::Nothing),
            None => {
                database.checkpoint_skip(&self.query, position).await?;
                self.query.position = position;
                Ok(Ran::Skipped)
            }
            Some(outcome) => {
                let spent = BatchDurations { read_us, compute_us, ..BatchDurations::default() };
                let progress = self.commit(database, &outcome, position, spent, total).await?;
                Ok(Ran::Batch(Box::new(progress)))
            }
        }
    }

    /// Steps the engine without holding up the other tasks of this thread.
    fn step(&mut self, batch: &Batch) -> Option<Outcome> {
        tokio::task::block_in_place(|| engine::step(&self.rules, &mut self.state, batch))
    }

    async fn commit(
        &mut self,
        database: &Database,
        outcome: &Outcome,
        position: Seq,
        mut durations: BatchDurations,
        total: Stopwatch,
    ) -> Result<CommittedProgress, DatabaseError> {
        let commit = Stopwatch::start();
        let prepared = database.checkpoint_prepare(&self.query, position, outcome).await?;
        durations.commit_us = commit.elapsed_us();
        durations.total_us = total.elapsed_us();
        let positions = (self.query.position, position);
        let entry = ProgressEntry::of(self.query.next_batch_id, outcome, positions, durations);
        let timestamp = prepared.commit(&entry).await?;
        info!(
            query.name = %self.query.name,
            batch.id = %entry.batch_id,
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
        Ok(CommittedProgress { query: self.query.name.clone(), timestamp, entry })
    }
}
