//! One log line per request, and what all lines about it say.

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderValue, Method};
use axum::response::Response;
use tracing::{Level, event};

use super::request_id::RequestId;
use super::trace::{TRACEPARENT, Trace};
use super::traffic::{Active, Traffic};
use crate::clock::Stopwatch;
use crate::telemetry::LogContext;

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
    context: LogContext,
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
            context: context(request, trace.as_ref()),
            passed_on: trace.and_then(|trace| trace.passed_on()),
            method: request.method().clone(),
            route: request.extensions().get().cloned(),
        }
    }

    /// What all lines about the request say.
    pub(super) fn context(&self) -> LogContext {
        self.context.clone()
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
        self.context.sync_scope(|| {
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

/// The request's id, and its place in a trace.
fn context(request: &Request, trace: Option<&Trace<'_>>) -> LogContext {
    let id = request.extensions().get::<RequestId>().map_or("", RequestId::as_str);
    let mut fields = vec![("request.id", id.to_owned())];
    if let Some(trace) = trace {
        fields.push(("trace.id", trace.id.to_owned()));
        fields.push(("trace.parent_id", trace.parent_id.to_owned()));
        fields.push(("trace.span_id", format!("{:016x}", trace.span_id)));
    }
    LogContext::new(fields)
}
