//! The runners of this process, and what the rest of the service may ask of them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

use super::figures::BatchFigures;
use super::memory::Memory;
use super::runner::{Command, Runner};
use crate::database::{CommittedProgress, Database, DatabaseError, QueryVersion};
use crate::domain::{QueryName, Seq};

/// How often to look for what other replicas appended or changed.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Requests to one runner that may wait.
const COMMANDS_MAX: usize = 64;

/// Why a run of a query did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is no query of this name.
    #[error("there is no query `{0}`")]
    NoSuchQuery(QueryName),
    /// The query is paused.
    #[error("the query is paused")]
    Paused,
    /// Too many runs of this query are waiting.
    #[error("too many runs of this query are waiting")]
    Busy,
    /// The service is stopping.
    #[error("the service is stopping")]
    Stopping,
    /// A batch failed, for this reason; the query has it as its error and tries again by itself.
    #[error("a micro-batch of the query failed: {0}")]
    Failed(String),
}

/// The way to the runners. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Pipeline {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    database: Database,
    head: watch::Sender<Seq>,
    runners: Mutex<HashMap<QueryName, RunnerHandle>>,
    stop: CancellationToken,
    end_runs: CancellationToken,
    tasks: TaskTracker,
    figures: Arc<BatchFigures>,
}

#[derive(Debug)]
struct RunnerHandle {
    version: QueryVersion,
    commands: mpsc::Sender<Command>,
}

impl Pipeline {
    /// Resumes every query where its last commit left it. `head` says how far the raw log goes;
    /// whoever appends moves it.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`].
    pub async fn start(
        database: Database,
        head: watch::Sender<Seq>,
    ) -> Result<Self, DatabaseError> {
        let shared = Shared {
            database,
            head,
            runners: Mutex::default(),
            stop: CancellationToken::new(),
            end_runs: CancellationToken::new(),
            tasks: TaskTracker::new(),
            figures: Arc::new(BatchFigures::new()),
        };
        let pipeline = Self { shared: Arc::new(shared) };
        pipeline.look().await?;
        pipeline.shared.tasks.spawn(pipeline.clone().look_now_and_then());
        Ok(pipeline)
    }

    /// What was counted of the micro-batches that this process ran.
    pub fn figures(&self) -> &BatchFigures {
        &self.shared.figures
    }

    /// Runs everything that is available to the query now, the batch without data included, or
    /// `batches_max` batches, and returns their progress entries. Runs of one query take turns.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn run(
        &self,
        name: &QueryName,
        batches_max: Option<u32>,
    ) -> Result<Vec<CommittedProgress>, RunError> {
        let commands = self.commands(name).await?;
        let (answer, answered) = oneshot::channel();
        commands.try_send(Command::Run { batches_max, answer }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => RunError::Busy,
            mpsc::error::TrySendError::Closed(_) => RunError::Stopping,
        })?;
        answered.await.unwrap_or(Err(RunError::Stopping))
    }

    async fn commands(&self, name: &QueryName) -> Result<mpsc::Sender<Command>, RunError> {
        let known = async || {
            self.shared.runners.lock().await.get(name).map(|runner| runner.commands.clone())
        };
        if let Some(commands) = known().await {
            return Ok(commands);
        }
        // Another replica may have created it a moment ago.
        self.sync().await.map_err(|error| RunError::Failed(error.chain()))?;
        known().await.ok_or_else(|| RunError::NoSuchQuery(name.clone()))
    }

    /// Makes the runners match the table of queries, after a change to it.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`]; the runners are matched again soon in any case.
    pub async fn sync(&self) -> Result<(), DatabaseError> {
        let mut runners = self.shared.runners.lock().await;
        let versions = self.shared.database.query_versions().await?;
        runners.retain(|name, _| versions.iter().any(|(stored, _)| stored == name));
        for (name, version) in versions {
            match runners.get_mut(&name) {
                Some(runner) if runner.version == version => {}
                // A full queue is looked at again at the next turn.
                Some(runner) if runner.commands.try_send(Command::Reload).is_ok() => {
                    runner.version = version
                }
                Some(_) => {}
                None => {
                    let commands = self.spawn_runner(name.clone());
                    runners.insert(name, RunnerHandle { version, commands });
                }
            }
        }
        Ok(())
    }

    fn spawn_runner(&self, name: QueryName) -> mpsc::Sender<Command> {
        let (commands, received) = mpsc::channel(COMMANDS_MAX);
        let runner = Runner {
            name,
            database: self.shared.database.clone(),
            commands: received,
            head: self.shared.head.subscribe(),
            stop: self.shared.stop.clone(),
            end_runs: self.shared.end_runs.clone(),
            memory: Memory::default(),
            figures: Arc::clone(&self.shared.figures),
        };
        self.shared.tasks.spawn(runner.run());
        commands
    }

    async fn look(&self) -> Result<(), DatabaseError> {
        let newest = self.shared.database.raw_log_head().await?;
        self.shared.head.send_if_modified(|head| {
            let moved = newest > *head;
            *head = newest.max(*head);
            moved
        });
        self.sync().await
    }

    async fn look_now_and_then(self) {
        while self.shared.stop.run_until_cancelled(tokio::time::sleep(LOOK_EVERY)).await.is_some() {
            if let Err(error) = self.look().await {
                warn!(error = %error.chain(), "Could not look for what other replicas did");
            }
        }
    }

    /// Ends runs by request after the batch that each is at, so that nobody waits for them to the end
    /// while the service stops.
    pub fn end_runs(&self) {
        self.shared.end_runs.cancel();
    }

    /// Lets every runner finish or give up its batch, for at most `wait_max`.
    pub async fn stop(&self, wait_max: Duration) {
        self.shared.stop.cancel();
        self.shared.tasks.close();
        if tokio::time::timeout(wait_max, self.shared.tasks.wait()).await.is_err() {
            info!("Some batches are still running; they are left to roll back");
        }
    }
}
