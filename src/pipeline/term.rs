//! A time of this process as the leader: the runners, and the look at what other replicas did.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::warn;

use super::figures::BatchFigures;
use super::handle::RunError;
use super::memory::Memory;
use super::runner::{Command, Runner};
use crate::database::{
    CommittedProgress, Database, DatabaseError, LeaseEpoch, QueryVersion, RunReply, RunRequest,
};
use crate::domain::{QueryName, Seq};

/// How often to look for what other replicas appended, changed or were asked.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Requests to one runner that may wait.
const COMMANDS_MAX: usize = 64;

/// Everything that this process does as the leader under one epoch. Nothing of it outlives the epoch:
/// the next leader reads every query anew, this process included.
#[derive(Debug)]
pub(super) struct Term {
    pub(super) epoch: LeaseEpoch,
    pub(super) database: Database,
    pub(super) head: watch::Sender<Seq>,
    /// Cancelled when the term ends, by whoever learns first that it has.
    pub(super) ended: CancellationToken,
    pub(super) end_runs: CancellationToken,
    pub(super) tasks: TaskTracker,
    pub(super) figures: Arc<BatchFigures>,
    runners: Mutex<HashMap<QueryName, RunnerHandle>>,
}

#[derive(Debug)]
struct RunnerHandle {
    version: QueryVersion,
    commands: mpsc::Sender<Command>,
}

impl Term {
    pub(super) fn new(
        epoch: LeaseEpoch,
        database: Database,
        head: watch::Sender<Seq>,
        (ended, end_runs): (CancellationToken, CancellationToken),
        (tasks, figures): (TaskTracker, Arc<BatchFigures>),
    ) -> Self {
        Self { epoch, database, head, ended, end_runs, tasks, figures, runners: Mutex::default() }
    }

    /// Has a query run; nothing when the term ends before the run does.
    pub(super) async fn run(
        &self,
        name: &QueryName,
        batches_max: Option<u32>,
    ) -> Option<Result<Vec<CommittedProgress>, RunError>> {
        let commands = match self.ended.run_until_cancelled(self.commands(name)).await? {
            Ok(commands) => commands,
            Err(error) => return Some(Err(error)),
        };
        let (answer, answered) = oneshot::channel();
        match commands.try_send(Command::Run { batches_max, answer }) {
            Ok(()) => answered.await.ok(),
            Err(mpsc::error::TrySendError::Full(_)) => Some(Err(RunError::Busy)),
            Err(mpsc::error::TrySendError::Closed(_)) => None,
        }
    }

    async fn commands(&self, name: &QueryName) -> Result<mpsc::Sender<Command>, RunError> {
        let known =
            async || self.runners.lock().await.get(name).map(|runner| runner.commands.clone());
        if let Some(commands) = known().await {
            return Ok(commands);
        }
        // Another replica may have created it a moment ago.
        self.sync().await?;
        known().await.ok_or_else(|| RunError::NoSuchQuery(name.clone()))
    }

    /// Makes the runners match the table of queries.
    pub(super) async fn sync(&self) -> Result<(), DatabaseError> {
        let mut runners = self.runners.lock().await;
        let versions = self.database.query_versions().await?;
        runners.retain(|name, _| versions.iter().any(|(stored, _)| stored == name));
        for (name, version) in versions {
            match runners.get_mut(&name) {
                Some(runner) if runner.commands.is_closed() => {
                    warn!(query.name = %name, "A query's task ended; starting another");
                    runner.commands = self.spawn_runner(name);
                    runner.version = version;
                }
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
            database: self.database.clone(),
            lease: self.epoch,
            commands: received,
            head: self.head.subscribe(),
            ended: self.ended.clone(),
            end_runs: self.end_runs.clone(),
            memory: Memory::default(),
            figures: Arc::clone(&self.figures),
        };
        self.tasks.spawn(runner.run());
        commands
    }

    /// Looks for what other replicas appended, changed or were asked.
    pub(super) async fn look(self: &Arc<Self>) -> Result<(), DatabaseError> {
        let known = *self.head.borrow();
        let newest = self.database.raw_log_head().await?;
        if newest < known {
            // Another server has taken over, and has lost what came last.
            self.database.raw_log_forget();
        }
        self.head.send_if_modified(|head| {
            let moved = newest > *head;
            *head = newest.max(*head);
            moved
        });
        self.sync().await?;
        for request in self.database.run_requests_take(self.epoch).await? {
            self.tasks.spawn(Arc::clone(self).answer(request));
        }
        Ok(())
    }

    /// Does a run that another replica was asked for. Without an answer the next leader does it.
    async fn answer(self: Arc<Self>, request: RunRequest) {
        let reply = match self.run(&request.query, request.batches_max).await {
            None | Some(Err(RunError::NoSuchQuery(_) | RunError::Stopping)) => return,
            Some(Ok(progress)) => {
                RunReply::Ran(progress.iter().map(|done| done.entry.batch_id).collect())
            }
            Some(Err(RunError::Paused)) => RunReply::Paused,
            Some(Err(RunError::Busy)) => RunReply::Busy,
            Some(Err(RunError::Failed(error))) => RunReply::Failed(error),
        };
        if let Err(error) = self.database.run_request_answer(request.run_id, &reply).await {
            warn!(query.name = %request.query, error = %error.chain(), "Could not answer a run");
        }
    }

    /// Looks now and then until the term ends. Cut off from the database a look may never come back, so
    /// the keeper of the lease does not wait for it.
    pub(super) async fn look_now_and_then(self: Arc<Self>) {
        let look = async {
            loop {
                if let Err(error) = self.look().await {
                    self.database.raw_log_forget();
                    warn!(error = %error.chain(), "Could not look for what other replicas did");
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        self.ended.run_until_cancelled(look).await;
    }
}
