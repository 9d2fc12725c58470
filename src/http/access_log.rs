//! One span and one log line per request.

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderValue, Method};
use axum::response::Response;
use tracing::field::Empty;
use tracing::{Level, Span, error_span, event};

use super::request_id::RequestId;
use super::trace::{TRACEPARENT, Trace};
use super::traffic::{Active, Traffic};
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

/// A request from its head to the head of its answer.
pub(super) struct Watched {
    traffic: Traffic,
    _active: Active,
    watch: Stopwatch,
    span: Span,
    /// Of the trace, in the answer.
    passed_on: Option<HeaderValue>,
    method: Method,
    route: Option<MatchedPath>,
}

impl Watched {
    /// Begins to count and to time a request.
    pub(super) fn begin(traffic: &Traffic, request: &Request) -> Self {
        let trace = Trace::of(request.headers());
        Self {
            traffic: traffic.clone(),
            _active: traffic.begin(),
            watch: Stopwatch::start(),
            span: span(request, trace.as_ref()),
            passed_on: trace.and_then(|trace| trace.passed_on()),
            method: request.method().clone(),
            route: request.extensions().get().cloned(),
        }
    }

    /// What all lines about the request are in.
    pub(super) fn span(&self) -> Span {
        self.span.clone()
    }

    /// Logs once how the request was answered, counts it, and passes its trace on.
    pub(super) fn answered(self, mut response: Response) -> Response {
        if let Some(passed_on) = self.passed_on {
            response.headers_mut().insert(TRACEPARENT, passed_on);
        }
        let (method, route) = (self.method, self.route);
        let route = route.as_ref().map_or("no route", MatchedPath::as_str);
        let (status, duration_us) = (response.status(), self.watch.elapsed_us());
        self.traffic.answered(route, &method, status, duration_us);
        self.span.in_scope(|| {
            // Tills post all day: what went well is worth a line only to somebody who looks for it.
            if status.is_client_error() || status.is_server_error() {
                answered!(Level::INFO, method, route, status, duration_us);
            } else {
                answered!(Level::DEBUG, method, route, status, duration_us);
            }
        });
        response
    }
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
