//! One span and one log line per request.

use axum::extract::{MatchedPath, Request};
use axum::http::HeaderMap;
use axum::response::Response;
use tracing::field::Empty;
use tracing::{Instrument as _, Level, Span, event, info_span};

use super::request_id::RequestId;
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

/// Handles the request in a span of its own, logs once how it was answered, and counts it.
pub(super) async fn access_log(
    traffic: &Traffic,
    request: Request,
    next: impl AsyncFnOnce(Request) -> Response,
) -> Response {
    let _active = traffic.begin();
    let (watch, span) = (Stopwatch::start(), span(&request));
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let response = next(request).instrument(span.clone()).await;
    let route = route.as_ref().map_or("no route", MatchedPath::as_str);
    let (status, duration_us) = (response.status(), watch.elapsed_us());
    traffic.answered(route, &method, status, duration_us);
    span.in_scope(|| {
        // Tills post and dashboards ask all day: what went well is worth a line only to somebody who looks for it.
        if status.is_success() || status.is_redirection() {
            answered!(Level::DEBUG, method, route, status, duration_us);
        } else {
            answered!(Level::INFO, method, route, status, duration_us);
        }
    });
    response
}

/// The span of a request: its id, and the trace it belongs to.
fn span(request: &Request) -> Span {
    let id = request.extensions().get::<RequestId>().map_or("", RequestId::as_str);
    let span = info_span!("request", request.id = id, trace.id = Empty, trace.parent_id = Empty,);
    if let Some((trace_id, parent_id)) = trace_parent(request.headers()) {
        span.record("trace.id", trace_id).record("trace.parent_id", parent_id);
    }
    span
}

/// The trace id and parent id of a `traceparent` header (W3C Trace Context, version 00).
fn trace_parent(headers: &HeaderMap) -> Option<(&str, &str)> {
    let text = headers.get("traceparent")?.to_str().ok()?;
    let mut parts = text.split('-');
    let (version, trace, parent, flags) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_id = |text: &str, length: usize| {
        let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        text.len() == length && text.bytes().all(hex) && text.bytes().any(|byte| byte != b'0')
    };
    let is_whole = version == "00" && flags.len() == 2 && parts.next().is_none();
    (is_whole && is_id(trace, 32) && is_id(parent, 16)).then_some((trace, parent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_taken_over_only_when_its_header_is_whole() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        for (header, taken) in [
            (format!("00-{trace}-00f067aa0ba902b7-01"), true),
            (format!("00-{trace}-0000000000000000-01"), false),
            (format!("01-{trace}-00f067aa0ba902b7-01"), false),
            (format!("00-{trace}"), false),
            ("nonsense".to_owned(), false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("traceparent", header.parse().expect("a header"));
            assert_eq!(trace_parent(&headers).is_some(), taken, "{header}");
        }
    }
}
