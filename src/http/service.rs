//! The service itself: which version, which limits, how to be talked to.

use axum::extract::{FromRequestParts, Path, State};
use axum::http::header;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::json::Json;
use super::params::NoParams;
use super::problem::Problem;
use super::problem_docs::{ListProblems, NamedProblemProblems};
use super::problem_kind::ProblemKind;
use super::{App, HttpSettings, examples, openapi_json};

/// Which version is it?
#[utoipa::path(get, path = "/v1/version", tag = "Service",
    responses(
        (status = 200, description = "Name and version", body = Version,
            example = json!({ "name": "tillmark", "version": "0.1.0" })),
        ListProblems))]
pub(super) async fn version(_: NoParams) -> Json<Version> {
    Json(Version { name: "tillmark", version: env!("CARGO_PKG_VERSION") })
}

/// Which limits are there?
#[utoipa::path(get, path = "/v1/limits", tag = "Service",
    responses(
        (status = 200, description = "The limits of requests", body = Limits,
            example = json!(examples::limits())),
        ListProblems))]
pub(super) async fn limits(State(app): State<App>, _: NoParams) -> Json<Limits> {
    Json(app.settings.into())
}

/// How to talk to it.
///
/// This description (OpenAPI 3.1). `/docs` shows it for reading.
#[utoipa::path(get, path = "/openapi.json", tag = "Service",
    responses(
        (status = 200, description = "The description", body = serde_json::Value,
            example = json!({ "openapi": "3.1.0", "info": { "title": "Tillmark" } })),
        ListProblems))]
pub(super) async fn openapi_document(_: NoParams) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], openapi_json() + "\n").into_response()
}

/// Explain a kind of problem.
///
/// The `type` of every error answer is an address like this.
#[utoipa::path(get, path = "/problems/{name}", tag = "Service",
    params(("name" = String, Path, description = "The last part of a problem's `type`",
        example = "no-such-query")),
    responses(
        (status = 200, description = "What it means and what to do", body = Explanation,
            example = json!(examples::explanation())),
        NamedProblemProblems))]
pub(super) async fn problem(NamedProblem(kind): NamedProblem, _: NoParams) -> Json<Explanation> {
    Json(kind.into())
}

/// The kind of problem that an address names.
#[derive(Debug)]
pub(super) struct NamedProblem(ProblemKind);

impl<S: Send + Sync> FromRequestParts<S> for NamedProblem {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let name = Path::<String>::from_request_parts(parts, state).await.ok();
        let kind = name.and_then(|Path(name)| ProblemKind::named(&name));
        kind.map(Self).ok_or(Problem::of(ProblemKind::NoSuchProblem))
    }
}

/// What is running.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Version {
    /// The program.
    name: &'static str,
    /// Its version.
    version: &'static str,
}

/// The limits of requests.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Limits {
    /// The most events of one body.
    request_events_max: usize,
    /// The longest body, in bytes, before and after decompression.
    body_bytes_max: usize,
    /// The longest event, in bytes of its JSON text.
    event_bytes_max: usize,
    /// The most events waiting to be stored, over all requests.
    queue_events_max: u32,
    /// The most bytes of bodies waiting to be stored, over all requests.
    queue_bytes_max: u32,
    /// How far ahead of the database's clock an event may be before it is put in quarantine; `off`:
    /// any distance.
    #[schema(example = "15 minutes")]
    max_future_skew: String,
    /// How many events a key may post a second, twice as many at once; null: as many as it likes.
    key_events_per_second: Option<u32>,
    /// The most entries of one page of a list.
    list_limit_max: u32,
    /// The most reports made at a time.
    reports_max: usize,
    /// The most streams of events at a time.
    streams_max: usize,
    /// The most connections at a time.
    connections_max: usize,
    /// How long the head of a request may take.
    header_timeout: String,
    /// How long a body may take.
    body_timeout: String,
    /// How long a whole request may take.
    request_timeout: String,
}

impl From<HttpSettings> for Limits {
    fn from(settings: HttpSettings) -> Self {
        Self {
            request_events_max: settings.events_max,
            body_bytes_max: settings.body_bytes_max,
            event_bytes_max: settings.event_bytes_max,
            queue_events_max: settings.queue_events_max,
            queue_bytes_max: settings.queue_bytes_max,
            max_future_skew: settings
                .max_future_skew
                .map_or("off".to_owned(), |skew| skew.to_string()),
            key_events_per_second: settings.key_events_per_second,
            list_limit_max: settings.list_limit_max,
            reports_max: settings.reports_max,
            streams_max: settings.streams_max,
            connections_max: settings.connections_max,
            header_timeout: settings.header_timeout.to_string(),
            body_timeout: settings.body_timeout.to_string(),
            request_timeout: settings.request_timeout.to_string(),
        }
    }
}

/// What a kind of problem means.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Explanation {
    /// The kind.
    #[serde(rename = "type")]
    problem_type: String,
    /// The kind in a few words.
    title: &'static str,
    /// The HTTP status that it is answered with.
    status: u16,
    /// What it means and what to do.
    explanation: &'static str,
}

impl From<ProblemKind> for Explanation {
    fn from(kind: ProblemKind) -> Self {
        let facts = kind.facts();
        Self {
            problem_type: format!("/problems/{}", facts.name),
            title: facts.title,
            status: facts.status.as_u16(),
            explanation: facts.explanation,
        }
    }
}
