//! One span and one log line per request.

use axum::extract::{MatchedPath, Request};
use axum::response::Response;
use tracing::field::Empty;
use tracing::{Instrument as _, Level, Span, error_span, event};

use super::request_id::RequestId;
use super::trace::{TRACEPARENT, Trace};
use super::traffic::Traffic;
use crate::clock::Stopwatch;

macro_rules! answered {
    ($level:expr, $method:ident, $route:ident, $status:ident, $duration_us:ident) => {
        event!(
            $level,
            http.method = %$method,
            http.route = $route,
            http.status = $status.as_u16(),
            http.duration_us = $duration_us,
            "Answered {} {} with {}", $method, $route, $status,
        )
    };
}

/// Handles the request in a span of its own, logs once how it was answered, counts it, and passes its trace on.
pub(super) async fn access_log(
    traffic: &Traffic,
    request: Request,
    next: impl AsyncFnOnce(Request) -> Response,
) -> Response {
    let _active = traffic.begin();
    let watch = Stopwatch::start();
    let trace = Trace::of(request.headers());
    let (span, passed_on) =
        (span(&request, trace.as_ref()), trace.and_then(|trace| trace.passed_on()));
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let mut response = next(request).instrument(span.clone()).await;
    if let Some(passed_on) = passed_on {
        response.headers_mut().insert(TRACEPARENT, passed_on);
    }
    let route = route.as_ref().map_or("no route", MatchedPath::as_str);
    let (status, duration_us) = (response.status(), watch.elapsed_us());
    traffic.answered(route, &method, status, duration_us);
    span.in_scope(|| {
        // Tills post all day: what went well is worth a line only to somebody who looks for it.
        if status.is_client_error() || status.is_server_error() {
            answered!(Level::INFO, method, route, status, duration_us);
        } else {
            answered!(Level::DEBUG, method, route, status, duration_us);
        }
    });
    response
}

/// The span of a request: its id, and its place in a trace. It is there for every level of lines in it.
fn span(request: &Request, trace: Option<&Trace<'_>>) -> Span {
    let id = request.extensions().get::<RequestId>().map_or("", RequestId::as_str);
    let span = error_span!(
        "request",
        request.id = id,
        trace.id = Empty,
        trace.parent_id = Empty,
        trace.span_id = Empty,
    );
    if let Some(trace) = trace {
        span.record("trace.id", trace.id);
        span.record("trace.parent_id", trace.parent_id);
        span.record("trace.span_id", format!("{:016x}", trace.span_id));
    }
    span
}
