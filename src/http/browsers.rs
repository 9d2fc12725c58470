//! What browsers are told: which pages of other origins may read answers, and what ours may do.

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::middleware::map_response;
use axum::response::Response;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tower::{Layer as _, ServiceExt as _, service_fn};
use tower_http::cors::{AllowOrigin, CorsLayer};

use super::request_id;
use super::trace::TRACEPARENT;
use crate::domain::Origin;

/// How long a browser may remember what it was told it may ask.
const PREFLIGHT_AGE: Duration = Duration::from_hours(1);

/// Headers of requests that are no secret of ours; a browser asks before it sends them.
const REQUEST_HEADERS: [HeaderName; 8] = [
    header::AUTHORIZATION,
    header::CONTENT_TYPE,
    header::CONTENT_ENCODING,
    header::ACCEPT,
    header::IF_NONE_MATCH,
    HeaderName::from_static("last-event-id"),
    request_id::HEADER,
    TRACEPARENT,
];

/// Headers of answers that a page gets to see besides those that it always does.
const ANSWER_HEADERS: [HeaderName; 8] = [
    request_id::HEADER,
    TRACEPARENT,
    header::ETAG,
    header::LINK,
    header::RETRY_AFTER,
    header::WWW_AUTHENTICATE,
    HeaderName::from_static("ratelimit"),
    HeaderName::from_static("ratelimit-policy"),
];

/// What the pages of this service may do: Swagger UI loads its own files, asks this service, and sets styles
/// on its elements; its icons are data.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
     img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Lets pages of these origins ask; nothing where there are none, and browsers keep the answers from all.
pub(super) fn cors(origins: &[Origin]) -> Option<CorsLayer> {
    if origins.is_empty() {
        return None;
    }
    // An origin is plain ASCII.
    let origins = origins.iter().filter_map(|origin| HeaderValue::from_str(origin.as_str()).ok());
    let layer = CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins))
        .allow_methods([Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::DELETE])
        .allow_headers(REQUEST_HEADERS)
        .expose_headers(ANSWER_HEADERS)
        .max_age(PREFLIGHT_AGE);
    Some(layer)
}

/// Answers a browser's question whether it may ask, and says in other answers who may read them.
pub(super) async fn with_cors(
    cors: &CorsLayer,
    request: Request,
    mut answering: impl FnMut(Request) -> BoxFuture<'static, Response>,
) -> Response {
    let answering = service_fn(move |request| answering(request).map(Ok::<_, Infallible>));
    match cors.layer(answering).oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// Pages with the headers that keep them to themselves.
pub(super) fn kept_to_themselves(pages: Router) -> Router {
    pages.layer(map_response(async |mut response: Response| {
        let headers = response.headers_mut();
        let policy = HeaderValue::from_static(CONTENT_SECURITY_POLICY);
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
        headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        response
    }))
}
