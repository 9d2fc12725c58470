//! The long-lived task of one query.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::batch::{BatchError, Ran};
use super::figures::BatchFigures;
use super::handle::RunError;
use super::memory::{Due, Memory};
use super::suspicion::Verdict;
use crate::database::{
    CommittedProgress, Database, DatabaseError, LeaseEpoch, Silence, StoredQuery,
};
use crate::domain::{QueryName, Seq};

/// What a runner can be asked.
#[derive(Debug)]
pub(super) enum Command {
    /// Run what is available and answer with its progress; no answer: the lease was lost first.
    Run {
        batches_max: Option<u32>,
        answer: oneshot::Sender<Result<Vec<CommittedProgress>, RunError>>,
    },
    /// The query was changed from outside: read it again.
    Reload,
}

/// The task of one query; it is the only one that runs its batches while the lease is held.
pub(super) struct Runner {
    pub(super) name: QueryName,
    pub(super) database: Database,
    pub(super) lease: LeaseEpoch,
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) head: watch::Receiver<Seq>,
    /// Cancelled when this process no longer leads, by this runner if it is the first to know.
    pub(super) ended: CancellationToken,
    pub(super) end_runs: CancellationToken,
    pub(super) memory: Memory,
    pub(super) figures: Arc<BatchFigures>,
}

impl Runner {
    /// Runs until the lease is lost or given back, or the query is deleted.
    pub(super) async fn run(mut self) {
        loop {
            tokio::select! {
                biased;
                () = self.ended.cancelled() => break,
                command = self.commands.recv() => match command {
                    Some(Command::Reload) => self.memory = Memory::default(),
                    Some(Command::Run { batches_max, answer }) => {
                        let run = AssertUnwindSafe(self.run_available(batches_max)).catch_unwind();
                        let ran = match run.await {
                            Ok(ran) => ran,
                            Err(_) => Some(Err(RunError::Failed(self.note_panic().await))),
                        };
                        if let Some(ran) = ran {
                            // Nobody waits any more where the client went away; the batches are committed.
                            let _ = answer.send(ran);
                        }
                    }
                    None => break,
                },
                due = self.memory.due(&mut self.head) => match due {
                    Due::Turn => {
                        if AssertUnwindSafe(self.take_turn()).catch_unwind().await.is_err() {
                            self.note_panic().await;
                        }
                    }
                    Due::IdleClosing => self.close_if_idle().await,
                },
            }
        }
    }

    /// A panic is a failure like others: told, and tried again. Answers what is told.
    async fn note_panic(&mut self) -> String {
        let error = BatchError::Panicked;
        let told = error.chain();
        self.note(error).await;
        told
    }

    /// One turn by the query's own trigger, or reading the query if that is still to be done, so
    /// that its trigger is known. Failures are noted and waited out.
    async fn take_turn(&mut self) {
        let failures = self.memory.failures;
        let turn = match self.memory.loaded {
            None => {
                let loaded = self.memory.load(&self.database, self.lease, &self.name).await;
                loaded.map(|_| None).map_err(BatchError::from)
            }
            Some(_) => {
                let head = *self.head.borrow();
                self.run_batch(head).await.map(Some)
            }
        };
        match turn {
            Ok(None) => self.memory.failures = failures,
            Ok(Some(Ran::Nothing)) => {
                self.memory.failures = 0;
                self.memory.caught_up();
            }
            Ok(Some(Ran::Skipped | Ran::Batch(_))) => self.memory.failures = 0,
            Err(error) => self.note(error).await,
        }
    }

    /// Runs the next batch of the query, which must be loaded, and counts it.
    async fn run_batch(&mut self, head: Seq) -> Result<Ran, BatchError> {
        let ran = self.memory.run_batch(&self.database, head).await?;
        if let Ran::Batch(batch) = &ran {
            self.figures.note(batch);
        }
        Ok(ran)
    }

    /// Closes windows by the wall clock, if nothing has been received for as long as the query says.
    async fn close_if_idle(&mut self) {
        let Some(loaded) = &self.memory.loaded else { return };
        let Some(wanted) = loaded.idle_closing() else { return };
        match self.database.idle_heartbeat_append(self.lease, &loaded.query, wanted).await {
            Ok(Silence::TooShort(wait)) => self.memory.look_for_silence_after(wait),
            Ok(Silence::Appended(seq)) => {
                info!(query.name = %self.name, heartbeat.seq = %seq, "Nothing came for {}", wanted.timeout);
                self.memory.look_for_silence_after(wanted.timeout);
            }
            Err(error) => self.note(error.into()).await,
        }
    }

    /// Runs what was in the log when this began, then the batch without data if one is owed. Nothing
    /// when the lease is lost before that is done.
    async fn run_available(
        &mut self,
        batches_max: Option<u32>,
    ) -> Option<Result<Vec<CommittedProgress>, RunError>> {
        let refused = match self.try_run_available(batches_max).await {
            Ok(progress) => {
                self.memory.failures = 0;
                return Some(Ok(progress));
            }
            Err(refused) => refused,
        };
        Some(Err(match refused {
            Refused::Paused => RunError::Paused,
            Refused::Stopping => RunError::Stopping,
            Refused::Batch(BatchError::Database(DatabaseError::NoSuchQuery(name))) => {
                self.memory = Memory::default();
                self.memory.gone = true;
                RunError::NoSuchQuery(name)
            }
            Refused::Batch(error) => {
                let copy = error.chain();
                self.note(error).await;
                if self.ended.is_cancelled() {
                    return None;
                }
                RunError::Failed(copy)
            }
        }))
    }

    async fn try_run_available(
        &mut self,
        batches_max: Option<u32>,
    ) -> Result<Vec<CommittedProgress>, Refused> {
        let head = self.database.raw_log_head().await?;
        let mut progress = Vec::new();
        while batches_max
            .is_none_or(|max| progress.len() < usize::try_from(max).unwrap_or(usize::MAX))
        {
            if self.end_runs.is_cancelled() {
                return Err(Refused::Stopping);
            }
            let loaded = self.memory.load(&self.database, self.lease, &self.name).await?;
            if loaded.query.paused {
                return Err(Refused::Paused);
            }
            // What is appended from now on can wait; only a watermark still owed cannot.
            let last = loaded.query.position >= head;
            match self.run_batch(head).await {
                Ok(Ran::Batch(batch)) => progress.push(batch.progress),
                Ok(Ran::Skipped) => {}
                Ok(Ran::Nothing) => break,
                Err(BatchError::Database(DatabaseError::ProgressMoved)) => {
                    self.memory.loaded = None;
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
            if last {
                break;
            }
        }
        Ok(progress)
    }

    /// Throws the state away, and says why the turn failed to everybody who asks after the query.
    async fn note(&mut self, error: BatchError) {
        let loaded = self.memory.loaded.take();
        match error {
            BatchError::Database(DatabaseError::ProgressMoved) => {
                info!(query.name = %self.name, "The query was moved on elsewhere; reading it again");
            }
            BatchError::Database(DatabaseError::NoSuchQuery(_)) => self.memory.gone = true,
            BatchError::Database(DatabaseError::LeaseLost) => self.ended.cancel(),
            // Another leads now, or the service stops: nobody is waiting to hear of it here.
            error if self.ended.is_cancelled() => {
                info!(query.name = %self.name, error = %error.chain(), "A micro-batch was given up");
            }
            error => {
                self.memory.failures = self.memory.failures.saturating_add(1);
                let chain = error.chain();
                let batch_id = loaded.as_ref().map(|loaded| loaded.query.next_batch_id.get());
                warn!(
                    query.name = %self.name,
                    batch.id = batch_id,
                    query.n_failures = self.memory.failures,
                    error = %chain,
                    "A micro-batch failed; trying again in {:?}", self.memory.backoff(),
                );
                // While the database is away there is nobody to tell either.
                let _ = self.database.query_failed(self.lease, &self.name, &chain).await;
                if let Some(loaded) = loaded.filter(|loaded| loaded.blames_a_record(&error)) {
                    self.suspect(&loaded.query, &chain).await;
                }
            }
        }
    }

    /// A record may be to blame: makes the next batch smaller, or goes on without the record once
    /// it is alone.
    async fn suspect(&mut self, query: &StoredQuery, reason: &str) {
        let events_max = query.spec.max_events_per_batch;
        match self.memory.suspicion.failed(query.position, events_max) {
            Verdict::TryAgain => {}
            // Looking for it takes many failures, none of which makes the next less promising.
            Verdict::Halve => self.memory.failures = 1,
            Verdict::SetAside => {
                match self.database.poison_set_aside(self.lease, query, reason).await {
                    Ok(seq) => {
                        let seq = seq.map(Seq::get);
                        warn!(query.name = %self.name, poison.seq = seq, "Going on without a record");
                        self.memory.failures = 0;
                    }
                    Err(error) => warn!(
                        query.name = %self.name,
                        error = %error.chain(),
                        "Could not set a record aside; looking for it again",
                    ),
                }
            }
        }
    }
}

/// Why a run by request stopped short.
enum Refused {
    Paused,
    Stopping,
    Batch(BatchError),
}

impl<E: Into<BatchError>> From<E> for Refused {
    fn from(error: E) -> Self {
        Self::Batch(error.into())
    }
}
