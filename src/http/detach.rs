//! Runs each request in a task of its own, within a deadline, if whoever sends it is let in.
//!
//! The server drops the future of a request when its client goes away. A transaction dropped in
//! the middle would leave its connection in a bad state, so the future dropped is only one that
//! waits: the work itself always runs to its end. For the same reason work past its deadline is
//! not cut off; its statements have time limits of their own, and a handler whose work can end between
//! two steps may ask whether its answer is still [`Awaited`]. Work that waits for nothing needs no task.

use std::any::Any;
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::task::Poll;

use axum::extract::{FromRequestParts, Request};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use futures_util::{FutureExt as _, poll};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{error, warn};

use super::authorize::Door;
use super::problem::Problem;
use super::problem_kind::ProblemKind;
use crate::domain::Span;
use crate::telemetry::LogContext;

/// What it takes to run requests in tasks of their own.
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
    /// Not once the client is gone or the deadline is past.
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

/// Runs the rest of the way in its own task. A panic there is an internal error; a missed deadline
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
    let mut answer = Box::pin(work.track_future(answer));
    let ended = match poll!(&mut answer) {
        Poll::Ready(ended) => ended,
        Poll::Pending => {
            match tokio::time::timeout(request_timeout.to_duration(), tokio::spawn(answer)).await {
                Ok(Ok(ended)) => ended,
                // Panics are caught inside, so the runtime has cancelled it: it is about to end.
                Ok(Err(_)) => Err(Box::new("cancelled".to_owned()) as _),
                Err(_) => {
                    warn!("A request missed its deadline; its work goes on");
                    return Problem::of(ProblemKind::DeadlineExceeded).into_response();
                }
            }
        }
    };
    ended.unwrap_or_else(|panic| {
        error!(error = panic_text(&*panic), "A request's work ended without an answer");
        Problem::of(ProblemKind::Internal).into_response()
    })
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}
