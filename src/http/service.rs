//! The service itself: is it alive, is it ready, what is it, what does it allow.

use axum::Json;
use axum::extract::{Path, State};
use serde::Serialize;
use utoipa::ToSchema;

use super::openapi;
use super::params::{LIMIT_MAX, Params};
use super::problem::{Problem, ProblemKind};
use super::state::AppState;

/// A word that says how it is.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Health)]
pub(super) struct HealthBody {
    /// `alive` or `ready`.
    #[schema(example = "ready")]
    status: &'static str,
}

/// Which service this is.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Version)]
pub(super) struct VersionBody {
    #[schema(example = "tillmark")]
    name: &'static str,
    #[schema(example = "0.1.0")]
    version: &'static str,
}

/// Bounds of requests.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Limits)]
pub(super) struct LimitsBody {
    /// Events of one request.
    #[schema(example = 10_000)]
    request_events_max: usize,
    /// Bytes of a request's body.
    #[schema(example = 10_485_760)]
    body_bytes_max: usize,
    /// Bytes of one event's JSON.
    #[schema(example = 65_536)]
    event_bytes_max: usize,
    /// Entries of one page.
    #[schema(example = 1_000)]
    list_limit_max: u32,
    /// Time for a request's body.
    #[schema(example = "30 seconds")]
    body_timeout: String,
    /// Time for an answer.
    #[schema(example = "30 seconds")]
    request_timeout: String,
}

/// What a kind of problem means.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ProblemExplanation)]
pub(super) struct ExplanationBody {
    /// As in the problem.
    title: &'static str,
    /// The status that it comes with.
    status: u16,
    /// What it means and what to do.
    explanation: &'static str,
}

/// Whether the process runs.
#[utoipa::path(get, path = "/livez", tag = "operating",
    responses((status = 200, description = "It does", body = HealthBody, example = json!({"status": "alive"}))))]
pub(super) async fn livez() -> Json<HealthBody> {
    Json(HealthBody { status: "alive" })
}

/// Whether requests are welcome: started, not stopping, and the database answers.
#[utoipa::path(get, path = "/readyz", tag = "operating",
    responses((status = 200, description = "They are", body = HealthBody, example = json!({"status": "ready"})),
        (status = 503, description = "Not now")))]
pub(super) async fn readyz(State(state): State<AppState>) -> Result<Json<HealthBody>, Problem> {
    if !state.is_ready() {
        return Err(Problem::new(ProblemKind::Unavailable, "The service is starting or stopping."));
    }
    state.database().ping().await?;
    Ok(Json(HealthBody { status: "ready" }))
}

/// Name and version.
#[utoipa::path(get, path = "/v1/version", tag = "operating",
    responses((status = 200, description = "Name and version", body = VersionBody), (status = 400, description = "A parameter is wrong")))]
pub(super) async fn version(params: Params) -> Result<Json<VersionBody>, Problem> {
    params.finish()?;
    Ok(Json(VersionBody { name: "tillmark", version: env!("CARGO_PKG_VERSION") }))
}

/// How large and how long requests may be.
#[utoipa::path(get, path = "/v1/limits", tag = "operating",
    responses((status = 200, description = "The limits", body = LimitsBody), (status = 400, description = "A parameter is wrong")))]
pub(super) async fn limits(
    State(state): State<AppState>,
    params: Params,
) -> Result<Json<LimitsBody>, Problem> {
    params.finish()?;
    let settings = state.settings();
    Ok(Json(LimitsBody {
        request_events_max: settings.events_max,
        body_bytes_max: settings.body_bytes_max,
        event_bytes_max: settings.event_bytes_max,
        list_limit_max: LIMIT_MAX,
        body_timeout: settings.body_timeout.to_string(),
        request_timeout: settings.request_timeout.to_string(),
    }))
}

/// What a kind of problem means; its address is the `type` of every such problem.
#[utoipa::path(get, path = "/problems/{name}", tag = "operating", params(("name" = String, Path)),
    responses((status = 200, description = "The explanation", body = ExplanationBody), (status = 404, description = "No such kind")))]
pub(super) async fn problem(Path(name): Path<String>) -> Result<Json<ExplanationBody>, Problem> {
    let (status, title, explanation) = ProblemKind::explained(&name).ok_or_else(|| {
        Problem::new(ProblemKind::NotFound, format!("There is no kind of problem `{name}`."))
    })?;
    Ok(Json(ExplanationBody { title, status: status.as_u16(), explanation }))
}

/// This API as an OpenAPI 3.1 document.
#[utoipa::path(get, path = "/openapi.json", tag = "operating",
    responses((status = 200, description = "The document", body = Object, example = json!({"openapi": "3.1.0"}))))]
pub(super) async fn openapi_document() -> Json<utoipa::openapi::OpenApi> {
    Json(openapi::document())
}
