//! What the rest of the service may ask of the pipeline, on whichever replica it is.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

use super::figures::BatchFigures;
use super::leadership::Keeper;
use super::term::Term;
use crate::database::{CommittedProgress, Database, DatabaseError, LeaseEpoch, RunReply};
use crate::domain::{QueryName, Seq, Span};

/// How often to look for the leader's answer to a run.
const ANSWER_LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long giving the lease back may take.
const RELEASE_MAX: Duration = Duration::from_secs(1);

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

impl From<DatabaseError> for RunError {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::NoSuchQuery(name) => Self::NoSuchQuery(name),
            error => Self::Failed(error.chain()),
        }
    }
}

/// The way to the runners, here or on the replica that leads. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Pipeline {
    shared: Arc<Shared>,
}

/// What the tasks of the pipeline share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) database: Database,
    /// How long the lease lasts without being renewed.
    pub(super) lease: Span,
    /// This process's time as the leader, while it is.
    pub(super) term: watch::Sender<Option<Arc<Term>>>,
    pub(super) stop: CancellationToken,
    head: watch::Sender<Seq>,
    end_runs: CancellationToken,
    tasks: TaskTracker,
    figures: Arc<BatchFigures>,
}

impl Shared {
    /// Begins to run the queries.
    pub(super) fn begin_term(&self, epoch: LeaseEpoch, database: Database) {
        let tokens = (self.stop.child_token(), self.end_runs.clone());
        let shared = (self.tasks.clone(), Arc::clone(&self.figures));
        let term = Term::new(epoch, database, self.head.clone(), tokens, shared);
        let term = Arc::new(term);
        self.tasks.spawn(Arc::clone(&term).look_now_and_then());
        self.term.send_replace(Some(term));
    }

    /// Ends it. A batch under way gives up by itself, at its commit at the latest.
    pub(super) fn end_term(&self, term: &Term) {
        term.ended.cancel();
        self.term.send_replace(None);
    }
}

impl Pipeline {
    /// Takes the lease if it is free and resumes every query where its last commit left it; else waits
    /// for the lease, which lasts for `lease` unless it is renewed. `head` says how far the raw log goes;
    /// whoever appends moves it.
    pub async fn start(database: Database, head: watch::Sender<Seq>, lease: Span) -> Self {
        let shared = Arc::new(Shared {
            database,
            lease,
            term: watch::Sender::new(None),
            stop: CancellationToken::new(),
            head,
            end_runs: CancellationToken::new(),
            tasks: TaskTracker::new(),
            figures: Arc::new(BatchFigures::new()),
        });
        let mut keeper = Keeper::new(Arc::clone(&shared));
        keeper.take().await;
        shared.tasks.spawn(keeper.keep());
        Self { shared }
    }

    /// Whether this process runs the queries now, as far as it knows.
    pub fn leads(&self) -> bool {
        self.shared.term.borrow().is_some()
    }

    fn term(&self) -> Option<Arc<Term>> {
        self.shared.term.borrow().clone()
    }

    /// What was counted of the micro-batches that this process ran.
    pub fn figures(&self) -> &BatchFigures {
        &self.shared.figures
    }

    /// Has everything run that is available to the query now, the batch without data included, or
    /// `batches_max` batches, and returns their progress entries. Runs of one query take turns. The
    /// leader runs it, whichever replica is asked.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn run(
        &self,
        name: &QueryName,
        batches_max: Option<u32>,
    ) -> Result<Vec<CommittedProgress>, RunError> {
        if let Some(term) = self.term()
            && let Some(ran) = term.run(name, batches_max).await
        {
            return ran;
        }
        let elsewhere = self.run_elsewhere(name, batches_max);
        let ran = self.shared.end_runs.run_until_cancelled(elsewhere).await;
        ran.unwrap_or(Err(RunError::Stopping))
    }

    /// Leaves the run to whoever leads, or will.
    async fn run_elsewhere(
        &self,
        name: &QueryName,
        batches_max: Option<u32>,
    ) -> Result<Vec<CommittedProgress>, RunError> {
        let database = &self.shared.database;
        let run_id = database.run_request_put(name, batches_max).await?;
        let reply = loop {
            tokio::time::sleep(ANSWER_LOOK_EVERY).await;
            if let Some(reply) = database.run_request_collect(run_id, name).await? {
                break reply;
            }
        };
        match reply {
            RunReply::Ran(batches) => Ok(database.progress_of_batches(name, &batches).await?),
            RunReply::Paused => Err(RunError::Paused),
            RunReply::Busy => Err(RunError::Busy),
            RunReply::Failed(error) => Err(RunError::Failed(error)),
        }
    }

    /// Makes the runners match the table of queries, after a change to it. Where another replica leads,
    /// it sees the change by itself.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`]; the runners are matched again soon in any case.
    pub async fn sync(&self) -> Result<(), DatabaseError> {
        match self.term() {
            Some(term) => term.sync().await,
            None => Ok(()),
        }
    }

    /// Ends runs by request after the batch that each is at, so that nobody waits for them to the end
    /// while the service stops.
    pub fn end_runs(&self) {
        self.shared.end_runs.cancel();
    }

    /// Lets every runner finish or give up its batch, for at most `wait_max`, and gives the lease back.
    pub async fn stop(&self, wait_max: Duration) {
        self.end_runs();
        self.shared.stop.cancel();
        self.shared.tasks.close();
        if tokio::time::timeout(wait_max, self.shared.tasks.wait()).await.is_err() {
            info!("Some batches are still running; they are left to roll back");
        }
        let Some(term) = self.shared.term.send_replace(None) else { return };
        let released = self.shared.database.lease_release(term.epoch);
        match tokio::time::timeout(RELEASE_MAX, released).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => warn!(error = %error.chain(), "The lease is left to run out"),
            Err(_) => warn!("The lease is left to run out: the database does not answer"),
        }
    }
}
