//! Runs each request to its end, within a deadline, if whoever sends it is let in.
//!
//! The server drops the future of a request when its connection breaks. A transaction dropped in
//! the middle would leave its connection in a bad state, so what is dropped then goes on in a task of
//! its own: the work always runs to its end. For the same reason work past its deadline is
//! not cut off; its statements have time limits of their own, and a handler whose work can end between
//! two steps may ask whether its answer is still [`Awaited`].

use std::any::Any;
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::extract::{FromRequestParts, Request};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{error, warn};

use super::authorize::Door;
use super::problem::Problem;
use super::problem_kind::ProblemKind;
use crate::domain::Span;
use crate::telemetry::LogContext;

/// What it takes to run requests to their ends.
#[derive(Debug, Clone)]
pub(super) struct Detached {
    /// Counts the requests at work.
    pub(super) work: TaskTracker,
    /// How long to wait for one.
    pub(super) request_timeout: Span,
    /// Decides who is let in.
    pub(super) door: Door,
}

/// Whether anybody still waits for the answer of a request.
#[derive(Debug, Clone, Default)]
pub(super) struct Awaited(CancellationToken);

impl Awaited {
    /// Not once the connection is broken or the deadline is past. A client that only closed its half waits.
    pub(super) fn is_awaited(&self) -> bool {
        !self.0.is_cancelled()
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Awaited {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().cloned().unwrap_or_default())
    }
}

/// Runs the rest of the way. A panic there is an internal error; a missed deadline
/// says when to come again.
pub(super) async fn detach(
    Detached { work, request_timeout, door }: &Detached,
    mut request: Request,
    next: Next,
) -> Response {
    let awaited = Awaited::default();
    // Dropped with this future, whoever drops it.
    let _waiting = awaited.0.clone().drop_guard();
    request.extensions_mut().insert(awaited);
    let door = door.clone();
    // A key may have to be looked for in the database, so that is part of the work.
    let answer = async move {
        match door.let_in(request).await {
            Ok(request) => next.run(request).await,
            Err(problem) => problem.into_response(),
        }
    };
    let answer = LogContext::current().scope(AssertUnwindSafe(answer).catch_unwind());
    let answer = RunsOn(Some(Box::pin(work.track_future(answer))));
    let Ok(ended) = tokio::time::timeout(request_timeout.to_duration(), answer).await else {
        warn!("A request missed its deadline; what it began goes on");
        return Problem::of(ProblemKind::DeadlineExceeded).into_response();
    };
    ended.unwrap_or_else(|panic| {
        error!(error = panic_text(&*panic), "A request's work ended without an answer");
        Problem::of(ProblemKind::Internal).into_response()
    })
}

/// Work that goes on in a task of its own once nobody waits for it any more.
struct RunsOn<F: Future<Output: Send> + Send + 'static>(Option<Pin<Box<F>>>);

impl<F: Future<Output: Send> + Send + 'static> Future for RunsOn<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Some(work) = &mut self.0 else { return Poll::Pending };
        let ended = ready!(work.as_mut().poll(context));
        self.0 = None;
        Poll::Ready(ended)
    }
}

impl<F: Future<Output: Send> + Send + 'static> Drop for RunsOn<F> {
    fn drop(&mut self) {
        // Without a runtime the process itself is about to end.
        if let (Some(work), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(work);
        }
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}
