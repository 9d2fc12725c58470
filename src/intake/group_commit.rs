//! Group commit: whatever many requests are waiting to store becomes one transaction.
//!
//! Handlers hand validated events to a bounded queue and wait. Two long-lived tasks per process, in
//! turn, take everything that is waiting, commit it as soon as the commit before is done (no timer:
//! an idle service commits at once), and only then answer. So:
//! * an answer that says "accepted" follows the commit;
//! * a client that goes away cancels nothing;
//! * memory is bounded: what does not fit into the queue is refused at once.

use std::pin::pin;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tracing::{debug, error};

use super::commit_figures::CommitFigures;
use crate::clock::Stopwatch;
use crate::database::{
    AppendMemory, AppendRequest, Appended, Database, DatabaseError, FutureGuard, LetNext, Release,
};
use crate::domain::{Heartbeat, IdentifiedEvent, Seq};

/// Whatever an append waits for, the other writer waits no longer for its turn.
const TURN_MAX: Duration = Duration::from_secs(2);

/// A writer that waits for longer gives its connection back, and takes one that was looked at.
const SESSION_KEPT: Duration = Duration::from_secs(1);

/// Bounds of the queue between requests and the writer.
#[derive(Debug, Clone, Copy)]
pub struct IntakeSettings {
    /// The most events that may wait.
    pub queue_events_max: u32,
    /// The most bytes of request bodies that may wait.
    pub queue_bytes_max: u32,
    /// The most events of one commit; a single request may have more.
    pub commit_events_max: usize,
    /// What may come from the future.
    pub future_guard: FutureGuard,
}

/// Why a request's events were not stored, or may not have been.
#[derive(Debug, Clone, thiserror::Error)]
pub enum IntakeError {
    /// The queue is full; nothing was stored.
    #[error("the queue of events waiting to be stored is full")]
    QueueFull,
    /// The service is stopping; nothing was stored.
    #[error("the service is stopping")]
    Stopping,
    /// The commit failed; whether it happened is not known. Posting the same events is safe.
    #[error("the outcome of storing the events is not known")]
    Unknown(#[source] Arc<DatabaseError>),
    /// Postgres refused these events, though they passed every check; nothing was stored.
    #[error("the database refused the events")]
    Refused(#[source] Arc<DatabaseError>),
}

type Answer = Result<Vec<Appended>, IntakeError>;

/// A request in the queue. Its permits are given back when it is answered and dropped.
#[derive(Debug)]
struct Waiting {
    request: AppendRequest,
    answer: oneshot::Sender<Answer>,
    _room: (OwnedSemaphorePermit, OwnedSemaphorePermit),
}

/// The way to the writer. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Intake {
    queue: mpsc::Sender<Waiting>,
    events_room: Arc<Semaphore>,
    bytes_room: Arc<Semaphore>,
    events_max: u32,
    bytes_max: u32,
    figures: Arc<CommitFigures>,
}

/// How full the queue is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueDepth {
    /// Events in it.
    pub events: u32,
    /// Bytes of the bodies that they came in.
    pub bytes: u32,
}

impl Intake {
    /// Starts the writer. `appended` is told the newest position after each commit. The task ends
    /// once every clone of the handle is gone and the queue is empty.
    pub fn start(
        database: Database,
        settings: IntakeSettings,
        appended: watch::Sender<Seq>,
    ) -> (Self, JoinHandle<()>) {
        let events_max = usize::try_from(settings.queue_events_max).unwrap_or(usize::MAX);
        let bytes_max = usize::try_from(settings.queue_bytes_max).unwrap_or(usize::MAX);
        let (queue, waiting) = mpsc::channel(events_max);
        let figures = Arc::new(CommitFigures::new());
        let writer = Writer {
            database,
            queue: Arc::new(Mutex::new(waiting)),
            commit_events_max: settings.commit_events_max,
            future_guard: settings.future_guard,
            memory: AppendMemory::default(),
            appended,
            figures: Arc::clone(&figures),
        };
        let intake = Self {
            queue,
            events_room: Arc::new(Semaphore::new(events_max)),
            bytes_room: Arc::new(Semaphore::new(bytes_max)),
            events_max: settings.queue_events_max,
            bytes_max: settings.queue_bytes_max,
            figures,
        };
        let other = tokio::spawn(writer.another().run());
        let running = tokio::spawn(async move {
            writer.run().await;
            // One that panicked has dropped its askers, who were told.
            drop(other.await);
        });
        (intake, running)
    }

    /// What was counted of the commits.
    pub fn figures(&self) -> &CommitFigures {
        &self.figures
    }

    /// How much is waiting to be stored, or being stored.
    pub fn depth(&self) -> QueueDepth {
        let taken = |max: u32, room: &Semaphore| {
            max.saturating_sub(u32::try_from(room.available_permits()).unwrap_or(u32::MAX))
        };
        QueueDepth {
            events: taken(self.events_max, &self.events_room),
            bytes: taken(self.bytes_max, &self.bytes_room),
        }
    }

    /// Stores the events of one request, `bytes` long as it was posted, in one atomic step, and
    /// returns what became of each, in their order.
    ///
    /// # Errors
    /// [`IntakeError`]; after [`IntakeError::Unknown`] the events may or may not be stored.
    pub async fn append(
        &self,
        events: Vec<IdentifiedEvent>,
        bytes: usize,
        all_or_nothing: bool,
    ) -> Answer {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        self.send(AppendRequest::Events { events, all_or_nothing }, bytes).await
    }

    /// Stores a heartbeat. [`Appended::Quarantined`]: it is too far ahead, and nothing is stored.
    ///
    /// # Errors
    /// [`IntakeError`]; sending the same again is safe.
    pub async fn heartbeat(&self, heartbeat: Heartbeat) -> Result<Appended, IntakeError> {
        self.send_one(AppendRequest::Heartbeat(heartbeat)).await
    }

    /// Lets an event out of quarantine into the log, unless none of this id waits there.
    ///
    /// # Errors
    /// [`IntakeError`]; after [`IntakeError::Unknown`] it may have been released.
    pub async fn release(&self, release: Release) -> Result<Appended, IntakeError> {
        self.send_one(AppendRequest::Release(release)).await
    }

    async fn send_one(&self, request: AppendRequest) -> Result<Appended, IntakeError> {
        let answers = self.send(request, 0).await?;
        answers.first().copied().ok_or(IntakeError::Stopping)
    }

    /// Hands a request to the writer, its body `bytes` long, and waits for its commit.
    async fn send(&self, request: AppendRequest, bytes: usize) -> Answer {
        let room = self.reserve(request.events().len().max(1), bytes)?;
        let (answer, answered) = oneshot::channel();
        let waiting = Waiting { request, answer, _room: room };
        self.queue.try_send(waiting).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => IntakeError::QueueFull,
            mpsc::error::TrySendError::Closed(_) => IntakeError::Stopping,
        })?;
        answered.await.unwrap_or(Err(IntakeError::Stopping))
    }

    fn reserve(
        &self,
        events: usize,
        bytes: usize,
    ) -> Result<(OwnedSemaphorePermit, OwnedSemaphorePermit), IntakeError> {
        let permits = |count: usize| u32::try_from(count).map_err(|_| IntakeError::QueueFull);
        let take = |room: &Arc<Semaphore>, count| {
            Arc::clone(room).try_acquire_many_owned(count).map_err(|_| IntakeError::QueueFull)
        };
        Ok((take(&self.events_room, permits(events)?)?, take(&self.bytes_room, permits(bytes)?)?))
    }
}

/// Whom to answer, and the room that the request takes up until then.
type Asker = (oneshot::Sender<Answer>, (OwnedSemaphorePermit, OwnedSemaphorePermit));

/// The queue, in the hands of the writer whose turn it is.
type Queue = OwnedMutexGuard<mpsc::Receiver<Waiting>>;

/// One of the two tasks of a process that append to the raw log, in turn.
struct Writer {
    database: Database,
    queue: Arc<Mutex<mpsc::Receiver<Waiting>>>,
    commit_events_max: usize,
    future_guard: FutureGuard,
    memory: AppendMemory,
    appended: watch::Sender<Seq>,
    figures: Arc<CommitFigures>,
}

impl Writer {
    /// One more for the same queue.
    fn another(&self) -> Self {
        Self {
            database: self.database.clone(),
            queue: Arc::clone(&self.queue),
            memory: AppendMemory::default(),
            appended: self.appended.clone(),
            figures: Arc::clone(&self.figures),
            ..*self
        }
    }

    async fn run(mut self) {
        loop {
            let (mut queue, first) = self.turn().await;
            let Some(first) = first else { break };
            let batch = self.take_waiting(first, &mut queue);
            fault_point!("ingest.taken");
            self.commit(batch, queue).await;
            fault_point!("ingest.answered");
        }
        debug!("Every request is answered; the writer ends");
    }

    /// Waits for a turn and for the first request of it. A connection that nobody needs is given back
    /// meanwhile: the pool closes only with all of them, and one that rests may end.
    async fn turn(&mut self) -> (Queue, Option<Waiting>) {
        let shared = Arc::clone(&self.queue);
        let mut turn = pin!(async move {
            let mut queue = shared.lock_owned().await;
            let first = queue.recv().await;
            (queue, first)
        });
        if let Ok(turn) = tokio::time::timeout(SESSION_KEPT, turn.as_mut()).await {
            return turn;
        }
        self.memory.rest();
        turn.await
    }

    /// Whatever is waiting now, up to the bound of one commit.
    fn take_waiting(&self, first: Waiting, queue: &mut mpsc::Receiver<Waiting>) -> Vec<Waiting> {
        let mut events = first.request.events().len();
        let mut batch = vec![first];
        while events < self.commit_events_max {
            let Ok(next) = queue.try_recv() else { break };
            events += next.request.events().len();
            batch.push(next);
        }
        batch
    }

    /// Commits and answers.
    async fn commit(&mut self, batch: Vec<Waiting>, queue: Queue) {
        let (mut requests, mut askers) = (Vec::new(), Vec::new());
        for Waiting { request, answer, _room } in batch {
            requests.push(request);
            askers.push((answer, _room));
        }
        match self.append_in_turn(&requests, queue).await {
            Ok(appended) => {
                self.database.append_remember(requests, &appended, &mut self.memory);
                self.move_head(&appended);
                fault_point!("ingest.answering");
                for ((answer, _room), appended) in askers.into_iter().zip(appended) {
                    // Nobody waits any more where the client went away; the events are stored.
                    let _ = answer.send(Ok(appended));
                }
            }
            Err(error) if error.is_refusal() && requests.len() > 1 => {
                self.commit_one_by_one(requests, askers).await;
            }
            Err(error) => {
                let error = failure(error);
                for (answer, _room) in askers {
                    let _ = answer.send(Err(error.clone()));
                }
            }
        }
    }

    /// Finds the request whose data Postgres refused, so that the others are stored all the same.
    async fn commit_one_by_one(&mut self, requests: Vec<AppendRequest>, askers: Vec<Asker>) {
        for (request, (answer, _room)) in requests.into_iter().zip(askers) {
            let appended = self.append(std::slice::from_ref(&request), &mut || {}).await;
            appended.iter().for_each(|appended| self.move_head(appended));
            let _ =
                answer.send(appended.map(|mut one| one.pop().unwrap_or_default()).map_err(failure));
        }
    }

    /// Appends, and gives the other writer its turn once it would not have to wait for the ids of this append:
    /// what comes meanwhile gathers, for large appends cost less per event.
    async fn append_in_turn(
        &mut self,
        requests: &[AppendRequest],
        queue: Queue,
    ) -> Result<Vec<Vec<Appended>>, DatabaseError> {
        let turn = std::sync::Mutex::new(Some(queue));
        let end_turn = || drop(turn.lock().unwrap_or_else(PoisonError::into_inner).take());
        let mut let_next = end_turn;
        let mut appending = pin!(self.append(requests, &mut let_next));
        match tokio::time::timeout(TURN_MAX, appending.as_mut()).await {
            Ok(appended) => appended,
            Err(_) => {
                end_turn();
                appending.await
            }
        }
    }

    async fn append(
        &mut self,
        requests: &[AppendRequest],
        let_next: LetNext<'_>,
    ) -> Result<Vec<Vec<Appended>>, DatabaseError> {
        let watch = Stopwatch::start();
        let appended =
            self.database.append(requests, self.future_guard, &mut self.memory, let_next).await;
        self.figures.note(&appended, watch);
        appended
    }

    /// Tells those who follow the log how far it goes.
    fn move_head(&self, appended: &[Vec<Appended>]) {
        let newest = appended.iter().flatten().filter_map(Appended::accepted);
        if let Some(newest) = newest.max() {
            self.appended.send_if_modified(|head| {
                let moved = newest > *head;
                *head = newest.max(*head);
                moved
            });
        }
    }
}

fn failure(error: DatabaseError) -> IntakeError {
    error!(error = %error.chain(), "Could not append to the raw log");
    if error.is_refusal() {
        IntakeError::Refused(Arc::new(error))
    } else {
        IntakeError::Unknown(Arc::new(error))
    }
}
