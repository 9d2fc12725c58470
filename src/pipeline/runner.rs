//! The long-lived task of one query.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::RunError;
use super::batch::{Loaded, Ran};
use crate::database::{CommittedProgress, Database, DatabaseError};
use crate::domain::{QueryName, Seq, Trigger};

const BACKOFF_FIRST: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(5);

/// What a runner can be asked.
#[derive(Debug)]
pub(super) enum Command {
    /// Run what is available and answer with its progress.
    Run {
        batches_max: Option<u32>,
        answer: oneshot::Sender<Result<Vec<CommittedProgress>, RunError>>,
    },
    /// The query was changed from outside: read it again.
    Reload,
}

/// The task of one query; it is the only one in this process that runs its batches.
pub(super) struct Runner {
    pub(super) name: QueryName,
    pub(super) database: Database,
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) head: watch::Receiver<Seq>,
    pub(super) stop: CancellationToken,
    pub(super) memory: Memory,
}

/// What the runner holds between two turns.
#[derive(Debug, Default)]
pub(super) struct Memory {
    loaded: Option<Loaded>,
    ticks: Option<Interval>,
    failures: u32,
    /// The query is not in the table any more.
    gone: bool,
}

impl Runner {
    /// Runs until the service stops or the query is no longer this process's.
    pub(super) async fn run(mut self) {
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                command = self.commands.recv() => match command {
                    Some(Command::Reload) => self.memory = Memory::default(),
                    Some(Command::Run { batches_max, answer }) => {
                        let ran = self.run_available(batches_max).await;
                        // Nobody waits any more where the client went away; the batches are committed.
                        let _ = answer.send(ran);
                    }
                    None => break,
                },
                () = self.memory.due(&mut self.head) => self.take_turn().await,
            }
        }
    }

    /// One turn by the query's own trigger, or reading the query if that is still to be done, so
    /// that its trigger is known. Failures are noted and waited out.
    async fn take_turn(&mut self) {
        let failures = self.memory.failures;
        let turn = match &mut self.memory.loaded {
            None => self.memory.load(&self.database, &self.name).await.map(|_| failures),
            Some(loaded) if self.memory.ticks.is_some() => {
                run_all(loaded, &self.database).await.map(|()| 0)
            }
            Some(loaded) => loaded.run_batch(&self.database).await.map(|_| 0),
        };
        match turn {
            Ok(failures) => self.memory.failures = failures,
            Err(error) => self.note(error).await,
        }
    }

    /// Runs what was in the log when this began, then the batch without data if one is owed.
    async fn run_available(
        &mut self,
        batches_max: Option<u32>,
    ) -> Result<Vec<CommittedProgress>, RunError> {
        let ran = self.try_run_available(batches_max).await;
        match ran {
            Ok(progress) => {
                self.memory.failures = 0;
                Ok(progress)
            }
            Err(Refused::Paused) => Err(RunError::Paused),
            Err(Refused::Database(DatabaseError::NoSuchQuery(name))) => {
                self.memory = Memory { gone: true, ..Memory::default() };
                Err(RunError::NoSuchQuery(name))
            }
            Err(Refused::Database(error)) => {
                let copy = error.chain();
                self.note(error).await;
                Err(RunError::Failed(copy))
            }
        }
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
            let loaded = self.memory.load(&self.database, &self.name).await?;
            if loaded.query.paused {
                return Err(Refused::Paused);
            }
            // What is appended from now on can wait; only a watermark still owed cannot.
            let last = loaded.query.position >= head;
            match loaded.run_batch(&self.database).await {
                Ok(Ran::Batch(entry)) => progress.push(*entry),
                Ok(Ran::Skipped) => {}
                Ok(Ran::Nothing) => break,
                Err(DatabaseError::ProgressMoved) => {
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
    async fn note(&mut self, error: DatabaseError) {
        self.memory.loaded = None;
        match error {
            DatabaseError::ProgressMoved => {
                info!(query.name = %self.name, "The query was moved on elsewhere; reading it again");
            }
            DatabaseError::NoSuchQuery(_) => self.memory.gone = true,
            error => {
                self.memory.failures = self.memory.failures.saturating_add(1);
                let chain = error.chain();
                warn!(
                    query.name = %self.name,
                    query.n_failures = self.memory.failures,
                    error = %chain,
                    "A micro-batch failed; trying again in {:?}", self.memory.backoff(),
                );
                // While the database is away there is nobody to tell either.
                let _ = self.database.query_failed(&self.name, &chain).await;
            }
        }
    }
}

/// Why a run by request stopped short.
enum Refused {
    Paused,
    Database(DatabaseError),
}

impl From<DatabaseError> for Refused {
    fn from(error: DatabaseError) -> Self {
        Self::Database(error)
    }
}

impl Memory {
    /// The query as it is in memory, or else as its last commit left it.
    async fn load(
        &mut self,
        database: &Database,
        name: &QueryName,
    ) -> Result<&mut Loaded, DatabaseError> {
        let loaded = match self.loaded.take() {
            Some(loaded) => loaded,
            None => {
                let loaded = Loaded::load(database, name).await?;
                self.ticks = match loaded.query.spec.trigger {
                    Trigger::Interval { every } => Some(ticks(every.to_duration())),
                    Trigger::Continuous | Trigger::Manual => None,
                };
                loaded
            }
        };
        Ok(self.loaded.insert(loaded))
    }

    fn backoff(&self) -> Duration {
        let doublings = self.failures.saturating_sub(1).min(16);
        BACKOFF_FIRST.saturating_mul(1 << doublings).min(BACKOFF_MAX)
    }

    /// Comes back when the query's trigger says that a turn is due.
    async fn due(&mut self, head: &mut watch::Receiver<Seq>) {
        if self.gone {
            return std::future::pending().await;
        }
        let waits =
            |loaded: &Loaded| loaded.query.paused || loaded.query.spec.trigger == Trigger::Manual;
        if self.loaded.as_ref().is_some_and(waits) {
            return std::future::pending().await;
        }
        if self.failures > 0 {
            return tokio::time::sleep(self.backoff()).await;
        }
        let Some(Loaded { query, .. }) = &self.loaded else { return };
        if let Some(ticks) = &mut self.ticks {
            ticks.tick().await;
        } else if !query.owes_batch_without_data() {
            // A closed channel means that the service stops, which is seen elsewhere.
            let _ = head.wait_for(|head| *head > query.position).await;
        }
    }
}

fn ticks(every: Duration) -> Interval {
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks
}

/// Everything that is there at one tick.
async fn run_all(loaded: &mut Loaded, database: &Database) -> Result<(), DatabaseError> {
    while !matches!(loaded.run_batch(database).await?, Ran::Nothing) {}
    Ok(())
}
