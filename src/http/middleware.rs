//! What happens around every handler: ids, logs, deadlines, panics, and the shape of problems.

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tracing::{Instrument, info, info_span};

use super::problem::{PendingProblem, Problem, ProblemKind};
use super::state::AppState;
use crate::clock::Stopwatch;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Outermost: gives the request its id, logs it once, and writes problems out in full.
pub(super) async fn identify(request: Request, next: Next) -> Response {
    let watch = Stopwatch::start();
    let request_id = request_id(&request);
    let route =
        request.extensions().get::<MatchedPath>().map_or("", |path| path.as_str()).to_owned();
    let method = request.method().clone();
    let traceparent = request
        .headers()
        .get(TRACEPARENT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let span = info_span!("request", request.id = %request_id, trace.parent = traceparent);
    let mut response = next.run(request).instrument(span.clone()).await;
    if let Some(problem) = response.extensions_mut().remove::<PendingProblem>() {
        response = keep_allow(&response, problem.into_response_for(&request_id));
    } else if is_bare_failure(&response) {
        let problem = rejection(response.status()).into_response();
        response = match problem.into_parts().0.extensions.remove::<PendingProblem>() {
            Some(problem) => keep_allow(&response, problem.into_response_for(&request_id)),
            None => response,
        };
    }
    if let Ok(value) = HeaderValue::from_str(&request_id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    span.in_scope(|| {
        info!(
            http.method = %method,
            http.route = route,
            http.status = response.status().as_u16(),
            http.duration_us = watch.elapsed_us(),
            "Answered {method} {route} with {}", response.status(),
        );
    });
    response
}

/// The caller's id when it is short and printable, else a new one.
fn request_id(request: &Request) -> String {
    let is_sane = |text: &&str| {
        (1..=128).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
    };
    request
        .headers()
        .get(REQUEST_ID)
        .and_then(|value| value.to_str().ok())
        .filter(is_sane)
        .map_or_else(|| uuid::Uuid::new_v4().to_string(), str::to_owned)
}

/// The framework answers 405 with the methods allowed; that header stays.
fn keep_allow(from: &Response, mut to: Response) -> Response {
    if let Some(allow) = from.headers().get(header::ALLOW) {
        to.headers_mut().insert(header::ALLOW, allow.clone());
    }
    to
}

/// A failure that a library answered by itself, not yet as a problem.
fn is_bare_failure(response: &Response) -> bool {
    let status = response.status();
    status.is_client_error() || status.is_server_error()
}

fn rejection(status: StatusCode) -> Problem {
    match status {
        StatusCode::NOT_FOUND => {
            Problem::new(ProblemKind::NotFound, "No resource has this address.")
        }
        StatusCode::METHOD_NOT_ALLOWED => method_not_allowed(),
        StatusCode::PAYLOAD_TOO_LARGE => {
            Problem::new(ProblemKind::TooLarge, "The request is too large.")
        }
        StatusCode::UNSUPPORTED_MEDIA_TYPE => Problem::new(
            ProblemKind::UnsupportedMediaType,
            "Send `content-type: application/json`.",
        ),
        status if status.is_client_error() => {
            Problem::new(ProblemKind::BadRequest, "The request cannot be understood.")
        }
        _ => Problem::from_cause(ProblemKind::Internal, "a library answered 5xx"),
    }
}

/// For methods that an address does not take.
pub(super) fn method_not_allowed() -> Problem {
    Problem::new(
        ProblemKind::MethodNotAllowed,
        "This address does not take this method; see `Allow`.",
    )
}

/// Runs the handler in a task of its own, up to the deadline. So a client that goes away cancels
/// nothing, a panic becomes a problem, and what started before the deadline comes to its end.
pub(super) async fn detach(
    State(state): State<AppState>,
    request: Request,
    next: Next,
) -> Response {
    let deadline = state.settings().request_timeout.to_duration();
    let task = tokio::spawn(next.run(request).in_current_span());
    match tokio::time::timeout(deadline, task).await {
        Ok(Ok(response)) => response,
        Ok(Err(panic)) => {
            Problem::from_cause(ProblemKind::Internal, &panic.to_string()).into_response()
        }
        Err(_) => {
            Problem::from_cause(ProblemKind::DeadlineExceeded, "the deadline of the request passed")
                .into_response()
        }
    }
}
