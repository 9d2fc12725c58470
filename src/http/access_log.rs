//! One span and one log line per request.

use std::time::Duration;

use axum::extract::{MatchedPath, Request};
use axum::http::HeaderMap;
use axum::response::Response;
use tracing::field::Empty;
use tracing::{Span, info, info_span};

use super::request_id::RequestId;

/// The span of a request: its id, method and route, and the trace it belongs to.
pub(super) fn span(request: &Request) -> Span {
    let id = request.extensions().get::<RequestId>().map_or("", RequestId::as_str);
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str);
    let span = info_span!(
        "request",
        request.id = id,
        request.method = %request.method(),
        request.route = route,
        trace.id = Empty,
        trace.parent_id = Empty,
    );
    if let Some((trace_id, parent_id)) = trace_parent(request.headers()) {
        span.record("trace.id", trace_id).record("trace.parent_id", parent_id);
    }
    span
}

/// The log line of an answered request, inside its span.
pub(super) fn answered(response: &Response, duration: Duration, span: &Span) {
    span.in_scope(|| {
        info!(
            response.status = response.status().as_u16(),
            response.duration_ms = duration.as_micros() as f64 / 1_000.0,
            "Answered a request with {}",
            response.status(),
        );
    });
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
