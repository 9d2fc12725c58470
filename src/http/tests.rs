//! The middleware, and the parts of handlers that need no database.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use super::HttpSettings;
use super::authorize::Door;
use super::body::JsonBody;
use super::detach::Detached;
use super::json::Json;
use super::params::{NamedQuery, NoParams};
use super::router::{Way, guarded};
use super::traffic::Traffic;
use crate::domain::Span;

fn settings() -> HttpSettings {
    let short = Span::from_micros(50_000);
    HttpSettings {
        body_bytes_max: 16,
        body_timeout: short,
        ..HttpSettings::new("USD".parse().expect("ISO 4217"))
    }
}

/// The middleware around routes that need no database.
fn service() -> Router {
    let routes = Router::new()
        .route("/plain", get(async |_: NoParams| "fine"))
        .route("/figures", get(async || Json([1, 2])))
        .route("/panic", get(async || -> &'static str { panic!("a hen in the till") }))
        .route("/slow", get(async || std::future::pending::<&'static str>().await))
        .route("/queries/{name}", get(async |NamedQuery(name): NamedQuery| name.to_string()))
        .route("/json", post(async |body: JsonBody| body.0))
        .with_state(settings());
    let request_timeout = Span::from_micros(200_000);
    let detached = Detached { work: TaskTracker::new(), request_timeout, door: Door::Open };
    guarded(routes, Way { detached, traffic: Traffic::default(), cors: None })
}

async fn ask_text(request: Request) -> (StatusCode, HeaderMap, String) {
    let response = service().oneshot(request).await.expect("an answer");
    let (head, body) = response.into_parts();
    let bytes = axum::body::to_bytes(body, usize::MAX).await.expect("a body");
    (head.status, head.headers, String::from_utf8(bytes.to_vec()).expect("UTF-8"))
}

async fn ask(request: Request) -> (StatusCode, HeaderMap, Value) {
    let (status, headers, text) = ask_text(request).await;
    let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
    (status, headers, body)
}

fn request(method: &str, path: &str, headers: &[(&str, &str)], body: impl Into<Body>) -> Request {
    let request = Request::builder().method(method).uri(path);
    let request =
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    request.body(body.into()).expect("a request")
}

const JSON: &[(&str, &str)] = &[("content-type", "application/json")];

#[tokio::test]
async fn every_error_is_a_problem_that_says_what_to_do() {
    for (case, asked, status, name, detail) in [
        ("no address", request("GET", "/nowhere", &[], ""), 404, "not-found", "There is no such"),
        ("method", request("DELETE", "/plain", &[], ""), 405, "method-not-allowed", "The header"),
        (
            "parameter",
            request("GET", "/plain?a=1", &[], ""),
            400,
            "invalid-parameters",
            "`a`: no parameter is known here.",
        ),
        (
            "name",
            request("GET", "/queries/Bad", &[], ""),
            404,
            "no-such-query",
            "There is no query `Bad`; a name must be 1 to 100",
        ),
        ("not UTF-8", request("GET", "/queries/%FF", &[], ""), 404, "no-such-query", "No query"),
        (
            "form",
            request("POST", "/json", &[("content-type", "text/csv")], "a,b"),
            415,
            "unsupported-media-type",
            "`text/csv` is not accepted here; `application/json` in UTF-8 is.",
        ),
        (
            "no form",
            request("POST", "/json", &[], "{}"),
            415,
            "unsupported-media-type",
            "The request names no",
        ),
        (
            "encoding",
            request("POST", "/json", &[JSON[0], ("content-encoding", "gzip")], "{}"),
            415,
            "unsupported-media-type",
            "`content-encoding: gzip`",
        ),
        (
            "size",
            request("POST", "/json", JSON, " ".repeat(17)),
            413,
            "too-large",
            "The body has more than 16 bytes",
        ),
        ("panic", request("GET", "/panic", &[], ""), 500, "internal-error", "Something is wrong"),
        (
            "deadline",
            request("GET", "/slow", &[], ""),
            503,
            "deadline-exceeded",
            "The request was not",
        ),
    ] {
        let (answered, headers, body) = ask(asked).await;
        assert_eq!(answered.as_u16(), status, "{case}");
        assert_eq!(headers["content-type"], "application/problem+json", "{case}");
        assert_eq!(body["type"], format!("/problems/{name}"), "{case}");
        assert_eq!(body["status"], status, "{case}");
        assert_eq!(body["request_id"], headers["x-request-id"].to_str().expect("text"), "{case}");
        assert!(body["title"].is_string() && body["errors"].is_array(), "{case}: {body}");
        assert!(
            body["detail"].as_str().is_some_and(|text| text.starts_with(detail)),
            "{case}: {body}"
        );
    }
}

#[tokio::test]
async fn answers_and_problems_end_in_a_newline() {
    let (_, headers, text) = ask_text(request("GET", "/figures", &[], "")).await;
    assert_eq!(
        (&*text, &headers["content-type"]),
        ("[1,2]\n", &"application/json".parse().expect("a value"))
    );
    assert_eq!(headers["content-length"], "6");
    let (_, _, text) = ask_text(request("GET", "/nowhere", &[], "")).await;
    assert!(text.ends_with("}\n"), "{text}");
}

#[tokio::test]
async fn an_error_says_in_headers_what_programs_need() {
    let (_, headers, _) = ask(request("POST", "/plain", &[], "")).await;
    assert_eq!(headers["allow"], "GET,HEAD");
    let (_, headers, _) = ask(request("GET", "/slow", &[], "")).await;
    assert_eq!(headers["retry-after"], "5");
    let (_, _, body) = ask(request("GET", "/plain?colour=red", &[], "")).await;
    assert_eq!(body["errors"][0]["pointer"], "/colour");
    assert_eq!(body["errors"][0]["code"], "unknown");
}

#[tokio::test]
async fn a_request_keeps_its_id_when_that_is_sane() {
    let (long, too_long) = ("x".repeat(200), "x".repeat(201));
    for (given, kept) in [
        ("till-7:42", true),
        (r##"!"#$%&'()*+,./:;<=>?@[\]^_`{|}~"##, true),
        (&long, true),
        (&too_long, false),
        ("with spaces", false),
        ("", false),
    ] {
        let (status, headers, _) =
            ask(request("GET", "/plain", &[("x-request-id", given)], "")).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(headers["x-request-id"] == given, kept, "{given}");
        assert!(!headers["x-request-id"].is_empty());
    }
}

#[tokio::test]
async fn a_head_request_is_answered_like_a_get() {
    let (status, headers, body) = ask(request("HEAD", "/plain", &[], "")).await;
    assert_eq!((status, body), (StatusCode::OK, Value::String(String::new())));
    assert!(headers.contains_key("x-request-id"));
}

#[tokio::test]
async fn a_body_that_stalls_is_given_up() {
    let (open, end) = tokio::io::duplex(64);
    let stalled = Body::new(Stalled(end));
    let (status, _, body) = ask(request("POST", "/json", JSON, stalled)).await;
    drop(open);
    assert_eq!((status.as_u16(), &body["type"]), (408, &Value::from("/problems/body-timeout")));
}

/// A body of which nothing ever comes.
struct Stalled(#[expect(dead_code, reason = "held open")] tokio::io::DuplexStream);

impl axum::body::HttpBody for Stalled {
    type Data = axum::body::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Self::Data>, Self::Error>>> {
        std::task::Poll::Pending
    }
}

/// A service whose one address works for 20 ms, says when it begins and when it is done.
fn at_work(request_timeout: Span) -> (Router, TaskTracker, mpsc::Receiver<()>, mpsc::Receiver<()>) {
    let ((begun, has_begun), (done, is_done)) = (mpsc::channel(1), mpsc::channel(1));
    let handler = async move || {
        begun.send(()).await.expect("the test waits");
        tokio::time::sleep(Duration::from_millis(20)).await;
        done.send(()).await.expect("the test waits");
    };
    let work = TaskTracker::new();
    let detached = Detached { work: work.clone(), request_timeout, door: Door::Open };
    let way = Way { detached, traffic: Traffic::default(), cors: None };
    (guarded(Router::new().route("/work", post(handler)), way), work, has_begun, is_done)
}

#[tokio::test]
async fn work_goes_on_when_its_client_is_gone() {
    let (service, work, mut has_begun, mut is_done) = at_work(Span::HOUR);
    tokio::select! {
        _ = service.oneshot(request("POST", "/work", &[], "")) => unreachable!("the client goes first"),
        _ = has_begun.recv() => {}
    }
    is_done.recv().await.expect("the work was finished");
    work.close();
    work.wait().await;
}

#[tokio::test]
async fn work_goes_on_past_its_deadline() {
    let (service, work, _has_begun, mut is_done) = at_work(Span::from_micros(1_000));
    let answer = service.oneshot(request("POST", "/work", &[], "")).await.expect("an answer");
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(is_done.try_recv(), Err(mpsc::error::TryRecvError::Empty), "before it is done");
    is_done.recv().await.expect("the work was finished");
    work.close();
    work.wait().await;
}
