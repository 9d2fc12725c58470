//! Queries: create, change, look at, run, stop.

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::bodies::{cut_page, page};
use super::body::JsonBody;
use super::params::Params;
use super::problem::{Problem, ProblemKind};
use super::progress::ProgressBody;
use super::query_name;
use super::schemas::QuerySpecSchema;
use super::state::AppState;
use crate::database::{QueryPut, StoredQuery};
use crate::domain::{BatchId, QueryName, QuerySpec, QuerySpecText};

/// A query: its rule, and where it stands.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Query)]
pub(super) struct QueryBody {
    #[schema(example = "hourly_sales")]
    name: String,
    #[serde(flatten)]
    #[schema(value_type = QuerySpecSchema)]
    spec: QuerySpecText,
    /// `running`, `paused` or `failed`.
    #[schema(example = "running")]
    status: &'static str,
    /// Why its last attempt failed.
    error: Option<String>,
    /// The watermark of its last batch.
    watermark: String,
    /// Its last batch; null before the first.
    batch_id: Option<i64>,
    /// It has read the raw log up to here.
    position: i64,
    /// Records after that.
    lag_events: i64,
    /// Windows in its state.
    open_windows: i64,
    /// Bytes of its stored state.
    state_bytes: i64,
    last_progress: Option<ProgressBody>,
    /// Nothing to read, and no batch without data owed.
    idle: bool,
}

/// Queries by name.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = QueriesPage)]
pub(super) struct QueriesPage {
    queries: Vec<QueryBody>,
    next_cursor: Option<String>,
}

/// How far a run goes.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = RunRequest)]
#[serde(deny_unknown_fields)]
pub(super) struct RunRequest {
    /// At most this many micro-batches; all that are available unless given.
    #[serde(default)]
    #[schema(minimum = 1)]
    max_batches: Option<u32>,
}

/// What a run did.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RunAnswer)]
pub(super) struct RunBody {
    /// One entry per micro-batch, in order.
    progress: Vec<ProgressBody>,
}

async fn body_of(state: &AppState, query: StoredQuery) -> Result<QueryBody, Problem> {
    let figures = state.database().query_figures(&query).await?;
    let status = match (&query.error, query.paused) {
        (_, true) => "paused",
        (Some(_), false) => "failed",
        (None, false) => "running",
    };
    Ok(QueryBody {
        name: query.name.to_string(),
        spec: QuerySpecText::from(&query.spec),
        status,
        watermark: query.watermark.to_string(),
        batch_id: query.last_batch_id().map(BatchId::get),
        position: query.position.get(),
        lag_events: figures.lag_events,
        open_windows: figures.open_windows,
        state_bytes: figures.state_bytes,
        last_progress: figures.last_progress.as_ref().map(ProgressBody::from),
        idle: figures.lag_events == 0 && !query.owes_batch_without_data(),
        error: query.error,
    })
}

async fn answer(state: &AppState, name: &QueryName) -> Result<Json<QueryBody>, Problem> {
    let query = state.database().query(name).await?;
    Ok(Json(body_of(state, query).await?))
}

/// All queries, by name.
#[utoipa::path(get, path = "/v1/queries", tag = "queries",
    params(("limit" = Option<u32>, Query), ("cursor" = Option<String>, Query)),
    responses((status = 200, description = "A page of queries", body = QueriesPage, example = json!({"queries": [], "next_cursor": null})),
        (status = 400, description = "A parameter is wrong")))]
pub(super) async fn list(
    State(state): State<AppState>,
    OriginalUri(uri): OriginalUri,
    mut params: Params,
) -> Result<Response, Problem> {
    let limit = params.limit();
    let after = params.cursor::<String>().and_then(|name| name.parse::<QueryName>().ok());
    params.finish()?;
    let mut stored = state.database().queries(after.as_ref(), limit + 1).await?;
    let next_cursor = cut_page(&mut stored, limit, |last| last.name.to_string());
    let mut queries = Vec::new();
    for query in stored {
        queries.push(body_of(&state, query).await?);
    }
    Ok(page(&uri, next_cursor.clone().as_deref(), QueriesPage { queries, next_cursor }))
}

/// One query.
#[utoipa::path(get, path = "/v1/queries/{name}", tag = "queries", params(("name" = String, Path)),
    responses((status = 200, description = "The query", body = QueryBody), (status = 404, description = "No such query")))]
pub(super) async fn get(
    State(state): State<AppState>,
    Path(name): Path<String>,
    params: Params,
) -> Result<Json<QueryBody>, Problem> {
    params.finish()?;
    answer(&state, &query_name(&name)?).await
}

/// Creates a query, or changes of it what may change: delay, trigger, batch size.
#[utoipa::path(put, path = "/v1/queries/{name}", tag = "queries", params(("name" = String, Path)),
    request_body(content = QuerySpecSchema, content_type = "application/json", example = json!({
        "filter": {"status": ["placed"]}, "window": {"kind": "tumbling", "size": "1 hour"},
        "watermark_delay": "1 hour", "group_by": ["store_id"], "output_mode": "append"})),
    responses((status = 200, description = "Changed", body = QueryBody), (status = 201, description = "Created", body = QueryBody),
        (status = 400, description = "Not JSON"), (status = 409, description = "The change would make it another query"),
        (status = 413, description = "Too large"), (status = 415, description = "Not `application/json`"),
        (status = 422, description = "The rule is not valid, or asks for what is not there yet")))]
pub(super) async fn put(
    State(state): State<AppState>,
    Path(name): Path<String>,
    params: Params,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    params.finish()?;
    let name = name.parse::<QueryName>().map_err(|error| {
        Problem::new(ProblemKind::Invalid, format!("The query's name {error}."))
    })?;
    let text: QuerySpecText = read_json(&body)?;
    let spec = QuerySpec::try_from(text).map_err(|faults| {
        Problem::new(ProblemKind::Invalid, "The query's rule is not valid.").with_errors(faults)
    })?;
    let put = state.database().query_put(&name, &spec).await?;
    state.pipeline().sync().await?;
    match put {
        QueryPut::Created => {
            let location = HeaderValue::from_str(&format!("/v1/queries/{name}"));
            let mut response = (StatusCode::CREATED, answer(&state, &name).await?).into_response();
            response.headers_mut().extend(location.map(|value| (header::LOCATION, value)));
            Ok(response)
        }
        QueryPut::Changed => Ok(answer(&state, &name).await?.into_response()),
        QueryPut::Refused(faults) => {
            let detail = "The change would make it another query.";
            Err(Problem::new(ProblemKind::AnotherQuery, detail).with_errors(faults))
        }
    }
}

/// Deletes a query and what it wrote; the raw log stays.
#[utoipa::path(delete, path = "/v1/queries/{name}", tag = "queries", params(("name" = String, Path)),
    responses((status = 204, description = "Deleted"), (status = 404, description = "No such query")))]
pub(super) async fn delete(
    State(state): State<AppState>,
    Path(name): Path<String>,
    params: Params,
) -> Result<StatusCode, Problem> {
    params.finish()?;
    state.database().query_delete(&query_name(&name)?).await?;
    state.pipeline().sync().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Pauses a query: nothing of it is committed after the answer.
#[utoipa::path(post, path = "/v1/queries/{name}/pause", tag = "queries", params(("name" = String, Path)),
    responses((status = 200, description = "Paused", body = QueryBody), (status = 404, description = "No such query")))]
pub(super) async fn pause(
    State(state): State<AppState>,
    Path(name): Path<String>,
    params: Params,
) -> Result<Json<QueryBody>, Problem> {
    params.finish()?;
    let name = query_name(&name)?;
    state.database().query_pause(&name, true).await?;
    state.pipeline().sync().await?;
    answer(&state, &name).await
}

/// Resumes a paused query where it stands.
#[utoipa::path(post, path = "/v1/queries/{name}/resume", tag = "queries", params(("name" = String, Path)),
    responses((status = 200, description = "Running", body = QueryBody), (status = 404, description = "No such query")))]
pub(super) async fn resume(
    State(state): State<AppState>,
    Path(name): Path<String>,
    params: Params,
) -> Result<Json<QueryBody>, Problem> {
    params.finish()?;
    let name = query_name(&name)?;
    state.database().query_pause(&name, false).await?;
    state.pipeline().sync().await?;
    answer(&state, &name).await
}

/// Starts a query over: its rows, state, ledger and progress are removed and made again.
#[utoipa::path(post, path = "/v1/queries/{name}/reset", tag = "queries", params(("name" = String, Path)),
    responses((status = 200, description = "Back at its start", body = QueryBody), (status = 404, description = "No such query")))]
pub(super) async fn reset(
    State(state): State<AppState>,
    Path(name): Path<String>,
    params: Params,
) -> Result<Json<QueryBody>, Problem> {
    params.finish()?;
    let name = query_name(&name)?;
    state.database().query_reset(&name).await?;
    state.pipeline().sync().await?;
    answer(&state, &name).await
}

/// Runs everything available now, the batch without data included, and answers when nothing is left.
#[utoipa::path(post, path = "/v1/queries/{name}/run", tag = "queries", params(("name" = String, Path)),
    request_body(content = RunRequest, content_type = "application/json", example = json!({"max_batches": 1})),
    responses((status = 200, description = "What each micro-batch did", body = RunBody, example = json!({"progress": []})),
        (status = 400, description = "Not JSON"), (status = 404, description = "No such query"),
        (status = 409, description = "The query is paused"), (status = 413, description = "Too large"),
        (status = 415, description = "Not `application/json`"), (status = 422, description = "`max_batches` is not a number from 1")))]
pub(super) async fn run(
    State(state): State<AppState>,
    Path(name): Path<String>,
    params: Params,
    JsonBody(body): JsonBody,
) -> Result<Json<RunBody>, Problem> {
    params.finish()?;
    let name = query_name(&name)?;
    let request: RunRequest =
        if body.is_empty() { RunRequest::default() } else { read_json(&body)? };
    if request.max_batches == Some(0) {
        return Err(Problem::new(ProblemKind::Invalid, "`max_batches` must be 1 or more."));
    }
    let progress = state.pipeline().run(&name, request.max_batches).await?;
    Ok(Json(RunBody { progress: progress.iter().map(ProgressBody::from).collect() }))
}

/// Reads a small JSON body: what is no JSON is 400, what has the wrong shape is 422.
fn read_json<'body, T: Deserialize<'body>>(body: &'body [u8]) -> Result<T, Problem> {
    serde_json::from_slice(body).map_err(|error| {
        let kind = if error.is_data() { ProblemKind::Invalid } else { ProblemKind::NotJson };
        Problem::new(kind, format!("The body cannot be read: {error}."))
    })
}
