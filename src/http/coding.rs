//! Compressed answers: by gzip or zstd, as the client accepts.
//!
//! Which coding an answer has is decided here, before anybody else looks at the request, so that its tag
//! can say so before the answer is made: each coding of it is other bytes, and has another strong tag.
//! The compressing itself is tower-http's. It stands around everything else, since problems are written
//! by the outermost part of the way.

use axum::Router;
use axum::http::{Extensions, HeaderMap, HeaderValue, Request, StatusCode, Version, header};
use tower::util::MapRequest;
use tower_http::CompressionLevel;
use tower_http::compression::Compression;

use super::format::quality;

/// How the bytes of an answer are coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Coding {
    /// As they are.
    Identity,
    /// RFC 1952.
    Gzip,
    /// RFC 8878.
    Zstd,
}

/// The codings, the first preferred among equals.
const CODINGS: [(&str, Coding); 4] = [
    ("zstd", Coding::Zstd),
    ("gzip", Coding::Gzip),
    ("x-gzip", Coding::Gzip),
    ("identity", Coding::Identity),
];

impl Coding {
    /// What the client accepts, by `Accept-Encoding`. Who accepts nothing of ours gets the bytes as they
    /// are, as RFC 9110 (12.5.3) has it.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let accepted = headers.get_all(header::ACCEPT_ENCODING).iter();
        let accepted: Vec<&str> = accepted.filter_map(|one| one.to_str().ok()).collect();
        accepted_coding(&accepted.join(","))
    }

    const fn word(self) -> Option<&'static str> {
        match self {
            Self::Identity => None,
            Self::Gzip => Some("gzip"),
            Self::Zstd => Some("zstd"),
        }
    }
}

fn accepted_coding(accept: &str) -> Coding {
    let mut best: Option<(u16, Coding)> = None;
    for part in accept.split(',') {
        let mut pieces = part.split(';').map(|piece| piece.trim().to_ascii_lowercase());
        let name = pieces.next().unwrap_or_default();
        let weight = pieces.find_map(|piece| piece.strip_prefix("q=").map(quality)).unwrap_or(1000);
        let known = CODINGS.into_iter().find(|(known, _)| *known == name);
        let Some((_, coding)) = known.filter(|_| weight > 0) else { continue };
        let rank = |coding| CODINGS.iter().position(|(_, known)| *known == coding);
        let is_better = best.is_none_or(|(known, other)| {
            weight > known || (weight == known && rank(coding) < rank(other))
        });
        if is_better {
            best = Some((weight, coding));
        }
    }
    best.map_or(Coding::Identity, |(_, coding)| coding)
}

/// Which answers are compressed: all that have a body, but for streams of events, which must not wait
/// in a buffer, and images. Not by their size: a `HEAD` has none.
type Compressible = fn(StatusCode, Version, &HeaderMap, &Extensions) -> bool;

fn is_compressible(status: StatusCode, _: Version, headers: &HeaderMap, _: &Extensions) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let is_left = content_type
        .is_none_or(|kind| kind.starts_with("text/event-stream") || kind.starts_with("image/"));
    status != StatusCode::NOT_MODIFIED && !is_left
}

/// The routes with compressed answers.
pub(super) type Compressed<B> =
    MapRequest<Compression<Router, Compressible>, fn(Request<B>) -> Request<B>>;

/// Compresses the answers of `router`.
pub(super) fn compressed<B>(router: Router) -> Compressed<B> {
    let compression = Compression::new(router)
        .quality(CompressionLevel::Fastest)
        .compress_when(is_compressible as Compressible);
    MapRequest::new(compression, name_one_coding::<B> as fn(Request<B>) -> Request<B>)
}

/// Leaves of `Accept-Encoding` what was decided.
fn name_one_coding<B>(mut request: Request<B>) -> Request<B> {
    let headers = request.headers_mut();
    if headers.contains_key(header::ACCEPT_ENCODING) {
        match Coding::of(headers).word() {
            Some(word) => {
                headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(word));
            }
            None => {
                headers.remove(header::ACCEPT_ENCODING);
            }
        }
    }
    request
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::routing::get;
    use tower::ServiceExt as _;

    use super::*;

    #[test]
    fn the_coding_is_what_the_client_likes_best_of_ours() {
        for (accept, coding) in [
            ("", Coding::Identity),
            ("gzip", Coding::Gzip),
            ("GZIP", Coding::Gzip),
            ("x-gzip", Coding::Gzip),
            ("gzip, deflate, br, zstd", Coding::Zstd),
            ("gzip;q=1.0, zstd;q=0.5", Coding::Gzip),
            ("zstd;q=0, gzip", Coding::Gzip),
            ("identity, gzip;q=0.5", Coding::Identity),
            ("br", Coding::Identity),
            ("*", Coding::Identity),
            ("br, *;q=0", Coding::Identity),
            ("identity;q=0, gzip;q=0", Coding::Identity),
        ] {
            assert_eq!(accepted_coding(accept), coding, "{accept}");
        }
    }

    async fn ask(path: &str, method: &str, accept: &str) -> (HeaderMap, usize) {
        let text = "an hour and another hour and another hour ".repeat(10);
        let kind = |kind: &'static str| [(header::CONTENT_TYPE, kind)];
        let routes = Router::new()
            .route("/text", get(async move || (kind("application/json"), text)))
            .route("/events", get(async move || (kind("text/event-stream"), "data: 1\n\n")))
            .route("/same", get(async || StatusCode::NOT_MODIFIED));
        let request = Request::builder().method(method).uri(path);
        let request = request.header(header::ACCEPT_ENCODING, accept).body(Body::empty());
        let answer = compressed(routes).oneshot(request.expect("a request")).await;
        let (head, body) = answer.expect("an answer").into_parts();
        let bytes = axum::body::to_bytes(Body::new(body), usize::MAX).await.expect("a body");
        (head.headers, bytes.len())
    }

    #[tokio::test]
    async fn answers_are_compressed_but_for_streams_of_events_and_what_has_no_body() {
        for (path, method, accept, coding, vary) in [
            ("/text", "GET", "gzip", Some("gzip"), true),
            ("/text", "GET", "zstd, gzip", Some("zstd"), true),
            ("/text", "HEAD", "gzip", Some("gzip"), true),
            ("/text", "GET", "br, *;q=0", None, true),
            ("/events", "GET", "gzip", None, false),
            ("/same", "GET", "gzip", None, false),
        ] {
            let (headers, length) = ask(path, method, accept).await;
            let case = format!("{method} {path} {accept}");
            let found = headers.get(header::CONTENT_ENCODING).map(HeaderValue::as_bytes);
            assert_eq!(found, coding.map(str::as_bytes), "{case}");
            assert_eq!(headers.contains_key(header::VARY), vary, "{case}");
            assert_eq!(length > 0 && length < 200, coding.is_some() || path == "/events", "{case}");
        }
    }
}
