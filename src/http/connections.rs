//! The connections of clients: so many at a time, and none held for long by a client that lets the others
//! wait.
//!
//! A connection waits for its client while that sends a head or a body, takes an answer, or does nothing.
//! Heads and idle connections have a deadline of their own. When all places are taken, and when the service
//! stops, those that have waited for longer than a head may take are closed, whatever they wait for.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use hyper::body::{Frame, Incoming, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use tracing::info;

use crate::clock::Stopwatch;

/// How often to look for connections to close while all places are taken.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Stands for "the client has done its part".
const AT_WORK: i64 = i64::MAX;

/// All connections. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Connections(Arc<Places>);

#[derive(Debug)]
struct Places {
    room: Arc<Semaphore>,
    clock: Stopwatch,
    next_number: AtomicU64,
    taken: Mutex<HashMap<u64, Arc<Wait>>>,
}

/// Since when a connection waits for its client, and its task, which is to be aborted to close it.
#[derive(Debug)]
struct Wait {
    /// By the clock of all, or [`AT_WORK`].
    since_us: AtomicI64,
    task: OnceLock<AbortHandle>,
}

/// The place of one connection; given back when dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    number: u64,
    wait: Arc<Wait>,
    _permit: OwnedSemaphorePermit,
}

impl Connections {
    /// Room for so many.
    pub(super) fn new(max: usize) -> Self {
        Self(Arc::new(Places {
            room: Arc::new(Semaphore::new(max)),
            clock: Stopwatch::start(),
            next_number: AtomicU64::default(),
            taken: Mutex::default(),
        }))
    }

    /// How many there are.
    pub(super) fn open(&self) -> usize {
        self.0.taken().len()
    }

    /// Room for a connection, once there is some. While there is none, connections that have waited for
    /// their clients for longer than `patience` are closed.
    pub(super) async fn room(&self, patience: Duration) -> OwnedSemaphorePermit {
        loop {
            let permit = Arc::clone(&self.0.room).acquire_owned();
            // Closed by nobody, so there is always a permit in the end.
            if let Ok(Ok(permit)) = tokio::time::timeout(LOOK_EVERY, permit).await {
                return permit;
            }
            self.0.close_those_that_wait(patience);
        }
    }

    /// Closes connections that have waited for their clients for longer than `patience`, as long as it is
    /// polled.
    pub(super) async fn close_those_that_wait(&self, patience: Duration) {
        loop {
            self.0.close_those_that_wait(patience);
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// The place of a connection that takes this room.
    pub(super) fn enter(&self, permit: OwnedSemaphorePermit) -> Place {
        let places = Arc::clone(&self.0);
        let number = places.next_number.fetch_add(1, Ordering::Relaxed);
        let since_us = AtomicI64::new(places.clock.elapsed_us());
        let wait = Arc::new(Wait { since_us, task: OnceLock::new() });
        places.taken().insert(number, Arc::clone(&wait));
        Place { places, number, wait, _permit: permit }
    }
}

impl Places {
    fn taken(&self) -> MutexGuard<'_, HashMap<u64, Arc<Wait>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close_those_that_wait(&self, patience: Duration) {
        let patience_us = i64::try_from(patience.as_micros()).unwrap_or(i64::MAX);
        let latest_us = self.clock.elapsed_us().saturating_sub(patience_us);
        let mut n_closed = 0_u32;
        for wait in self.taken().values() {
            if wait.since_us.load(Ordering::Relaxed) >= latest_us {
                continue;
            }
            if let Some(task) = wait.task.get() {
                task.abort();
                // It may take a moment to be gone; its client is not waited for meanwhile.
                wait.since_us.store(AT_WORK, Ordering::Relaxed);
                n_closed += 1;
            }
        }
        if n_closed > 0 {
            info!(
                connections.n_closed = n_closed,
                "Closed connections whose clients keep others waiting"
            );
        }
    }
}

impl Place {
    /// The connection waits for its client from now on.
    pub(super) fn waits(&self) {
        self.wait.since_us.store(self.places.clock.elapsed_us(), Ordering::Relaxed);
    }

    /// The client has done its part.
    fn works(&self) {
        self.wait.since_us.store(AT_WORK, Ordering::Relaxed);
    }

    /// The task that serves the connection, so that it can be closed.
    pub(super) fn served_by(&self, task: AbortHandle) {
        // Set once, right after the place was taken.
        let _ = self.wait.task.set(task);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken().remove(&self.number);
    }
}

/// A request's body: once it has come, its connection waits for its client no more.
#[derive(Debug)]
pub(super) struct Coming {
    body: Incoming,
    place: Arc<Place>,
}

impl Coming {
    /// The body of a request of the connection at `place`.
    pub(super) fn new(body: Incoming, place: Arc<Place>) -> Self {
        let coming = Self { body, place };
        coming.note();
        coming
    }

    fn note(&self) {
        if self.body.is_end_stream() {
            self.place.works();
        }
    }
}

impl HttpBody for Coming {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        match &frame {
            Poll::Ready(None) => self.place.works(),
            Poll::Ready(Some(_)) => self.note(),
            Poll::Pending => {}
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// An answer's body: with each part that its client takes the waiting begins anew.
#[derive(Debug)]
pub(super) struct Going<B> {
    body: B,
    place: Arc<Place>,
}

impl<B> Going<B> {
    /// The body of an answer to the client at `place`.
    pub(super) fn new(body: B, place: Arc<Place>) -> Self {
        place.waits();
        Self { body, place }
    }
}

impl<B: HttpBody<Data = Bytes> + Unpin> HttpBody for Going<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if frame.is_ready() {
            self.place.waits();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection that is served for ever.
    fn serve(place: Place) -> (Arc<Place>, tokio::task::JoinHandle<()>) {
        let place = Arc::new(place);
        let served = Arc::clone(&place);
        let task = tokio::spawn(async move {
            let _served = served;
            std::future::pending().await
        });
        place.served_by(task.abort_handle());
        (place, task)
    }

    #[tokio::test]
    async fn room_is_made_by_closing_what_waits_and_not_what_is_at_work() {
        let connections = Connections::new(2);
        let patience = Duration::from_millis(20);
        let (place, at_work) = serve(connections.enter(connections.room(patience).await));
        place.works();
        let (_, waiting) = serve(connections.enter(connections.room(patience).await));
        assert_eq!(connections.open(), 2);
        let room = connections.room(patience).await;
        assert!(waiting.await.is_err_and(|error| error.is_cancelled()));
        assert!(!at_work.is_finished());
        assert_eq!(connections.open(), 1);
        at_work.abort();
        assert!(at_work.await.is_err());
        drop((room, place));
        assert_eq!(connections.open(), 0);
    }
}
