//! Queries: created, changed, listed, steered.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::authorize::LetIn;
use super::body::{JsonBody, NoBody};
use super::json::Json;
use super::paging::{Page, PageParams};
use super::params::{NamedQuery, NoParams, Params};
use super::problem::Problem;
use super::problem_docs::{
    ListProblems, QueryCommandProblems, QueryProblems, QueryPutProblems, QueryRunProblems,
};
use super::problem_kind::ProblemKind;
use super::progress::CursorName;
use super::progress_body::ProgressBody;
use super::query_body::{QueryBody, RuleSchema};
use super::stores::Stores;
use super::{App, examples};
use crate::database::{QueryPut, StoredQuery};
use crate::domain::{Fault, QueryName, QuerySpec, QuerySpecText};

impl App {
    /// A query with its figures, as the API shows it.
    async fn query_body(&self, query: StoredQuery) -> Result<QueryBody, Problem> {
        let figures = self.database.query_figures(&query).await?;
        Ok(QueryBody::of(query, figures))
    }

    /// The same for a caller who may be bound to stores.
    async fn query_body_for(
        &self,
        stores: &Stores,
        query: StoredQuery,
    ) -> Result<QueryBody, Problem> {
        stores.of_query(&query)?;
        let body = self.query_body(query).await?;
        Ok(if stores.are_bound() { body.without_sums() } else { body })
    }

    /// Matches the runners after a change, then reads the query.
    async fn changed_query(&self, name: &QueryName) -> Result<Json<QueryBody>, Problem> {
        self.sync_runners().await;
        Ok(Json(self.query_body(self.database.query(name).await?).await?))
    }
}

/// List queries.
///
/// All queries with their rules and where each stands, by name. A key that is bound to stores sees those
/// whose `group_by` has `store_id`, without `last_progress`, which is of all stores together.
#[utoipa::path(get, path = "/v1/queries", tag = "Queries", params(PageParams),
    responses(
        (status = 200, description = "A page of queries", body = QueriesAnswer,
            example = json!(examples::queries())),
        ListProblems))]
pub(super) async fn list_queries(
    State(app): State<App>,
    stores: Stores,
    mut params: Params,
) -> Result<Response, Problem> {
    let page: Page<CursorName> = params.page();
    let link = params.finish()?;
    let after = page.after.as_ref().map(|cursor| &cursor.0);
    let mut read = app.database.queries(after, page.read_limit()).await?;
    let next_cursor = page.cut(&mut read, |query| CursorName(query.name.clone()));
    // One after the other: a long list must not take every connection for reading.
    let mut queries = Vec::with_capacity(read.len());
    read.retain(|query| stores.of_query(query).is_ok());
    for query in read {
        queries.push(app.query_body_for(&stores, query).await?);
    }
    let body = QueriesAnswer { queries, next_cursor };
    Ok(link.answer(body.next_cursor.as_deref(), &body))
}

/// Create or change a query.
///
/// Creates the query when there is none of this name. Of one that is there, `watermark_delay`,
/// `trigger`, `max_events_per_batch` and `idle_timeout` may change; `start` counts only at creation.
#[utoipa::path(put, path = "/v1/queries/{name}", tag = "Queries", params(NamedQuery),
    request_body(content = RuleSchema, content_type = "application/json",
        example = json!(examples::rule())),
    responses(
        (status = 200, description = "The query was there and has this rule now", body = QueryBody,
            example = json!(examples::query())),
        (status = 201, description = "The query is created", body = QueryBody,
            headers(("Location" = String, description = "The query's address")),
            example = json!(examples::new_query())),
        QueryPutProblems))]
pub(super) async fn put_query(
    State(app): State<App>,
    NamedQuery(name): NamedQuery,
    _: NoParams,
    body: JsonBody,
) -> Result<Response, Problem> {
    let text: QuerySpecText = body.read(ProblemKind::InvalidQuery)?;
    let spec = QuerySpec::try_from(text)
        .map_err(|faults| Problem::with_faults(ProblemKind::InvalidQuery, faults))?;
    let put = app.database.query_put(&name, &spec).await?;
    let location = [(header::LOCATION, format!("/v1/queries/{name}"))];
    match put {
        QueryPut::Created => {
            Ok((StatusCode::CREATED, location, app.changed_query(&name).await?).into_response())
        }
        QueryPut::Changed => Ok(app.changed_query(&name).await?.into_response()),
        QueryPut::Refused(faults) => Err(Problem::with_faults(ProblemKind::AnotherQuery, faults)),
    }
}

/// Read a query.
///
/// Its rule, and where it stands.
#[utoipa::path(get, path = "/v1/queries/{name}", tag = "Queries", params(NamedQuery),
    responses(
        (status = 200, description = "The query", body = QueryBody,
            example = json!(examples::query())),
        QueryProblems))]
pub(super) async fn get_query(
    State(app): State<App>,
    stores: Stores,
    NamedQuery(name): NamedQuery,
    _: NoParams,
) -> Result<Json<QueryBody>, Problem> {
    Ok(Json(app.query_body_for(&stores, app.database.query(&name).await?).await?))
}

/// Delete a query.
///
/// The query and everything that it wrote go; the raw log stays.
#[utoipa::path(delete, path = "/v1/queries/{name}", tag = "Queries", params(NamedQuery),
    responses((status = 204, description = "The query is gone"), QueryProblems))]
pub(super) async fn delete_query(
    State(app): State<App>,
    LetIn(caller): LetIn,
    NamedQuery(name): NamedQuery,
    _: NoParams,
) -> Result<StatusCode, Problem> {
    app.database.query_delete(&name, caller.key_id()).await?;
    app.sync_runners().await;
    Ok(StatusCode::NO_CONTENT)
}

/// Pause a query.
///
/// It stands still until it is resumed; a batch that is running cannot commit any more.
#[utoipa::path(post, path = "/v1/queries/{name}/pause", tag = "Queries", params(NamedQuery),
    responses(
        (status = 200, description = "The query, paused", body = QueryBody,
            example = json!(examples::paused_query())),
        QueryCommandProblems))]
pub(super) async fn pause_query(
    State(app): State<App>,
    NamedQuery(name): NamedQuery,
    _: NoParams,
    _: NoBody,
) -> Result<Json<QueryBody>, Problem> {
    app.database.query_pause(&name, true).await?;
    app.changed_query(&name).await
}

/// Resume a query.
///
/// It goes on where it stood; an error that it had is forgotten.
#[utoipa::path(post, path = "/v1/queries/{name}/resume", tag = "Queries", params(NamedQuery),
    responses(
        (status = 200, description = "The query, running", body = QueryBody,
            example = json!(examples::query())),
        QueryCommandProblems))]
pub(super) async fn resume_query(
    State(app): State<App>,
    NamedQuery(name): NamedQuery,
    _: NoParams,
    _: NoBody,
) -> Result<Json<QueryBody>, Problem> {
    app.database.query_pause(&name, false).await?;
    app.changed_query(&name).await
}

/// Reset a query.
///
/// It starts over from where it started: its rows, state, ledger and progress are removed. The raw log
/// stays.
#[utoipa::path(post, path = "/v1/queries/{name}/reset", tag = "Queries", params(NamedQuery),
    responses(
        (status = 200, description = "The query, at its start", body = QueryBody,
            example = json!(examples::new_query())),
        QueryCommandProblems))]
pub(super) async fn reset_query(
    State(app): State<App>,
    LetIn(caller): LetIn,
    NamedQuery(name): NamedQuery,
    _: NoParams,
    _: NoBody,
) -> Result<Json<QueryBody>, Problem> {
    app.database.query_reset(&name, caller.key_id()).await?;
    app.changed_query(&name).await
}

/// Run a query now.
///
/// Runs everything that is available, the batch without data included, and answers when nothing is
/// left, or after `max_batches`. Works for every trigger; runs of one query take turns. A run that
/// outlasts the request's deadline goes on: its entries are in the query's progress.
#[utoipa::path(post, path = "/v1/queries/{name}/run", tag = "Queries", params(NamedQuery),
    request_body(content = Option<RunBody>, content_type = "application/json",
        example = json!({ "max_batches": 1 })),
    responses(
        (status = 200, description = "What each batch of the run did", body = RunAnswer,
            example = json!(examples::run())),
        QueryRunProblems))]
pub(super) async fn run_query(
    State(app): State<App>,
    NamedQuery(name): NamedQuery,
    _: NoParams,
    body: JsonBody,
) -> Result<Json<RunAnswer>, Problem> {
    let RunBody { max_batches } = RunBody::of(&body)?;
    let progress = app.pipeline.run(&name, max_batches).await?;
    Ok(Json(RunAnswer { progress: progress.into_iter().map(ProgressBody::from).collect() }))
}

/// A page of queries.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct QueriesAnswer {
    /// The queries, by name.
    queries: Vec<QueryBody>,
    /// What to ask the next page with; null at the end.
    next_cursor: Option<String>,
}

/// How far to run.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Run)]
pub(super) struct RunBody {
    /// The most batches. Left out: until nothing is left.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 4_294_967_295_u32, format = Int64)]
    max_batches: Option<u32>,
}

impl RunBody {
    fn of(body: &JsonBody) -> Result<Self, Problem> {
        if matches!(body.0.as_slice(), b"" | b"null") {
            return Ok(Self::default());
        }
        let run: Self = body.read(ProblemKind::InvalidRun)?;
        if run.max_batches == Some(0) {
            let fault = Fault::new("/max_batches", "out_of_range", "must be at least 1");
            return Err(Problem::with_faults(ProblemKind::InvalidRun, vec![fault]));
        }
        Ok(run)
    }
}

/// What a run did.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RunAnswer {
    /// One entry per batch, oldest first.
    progress: Vec<ProgressBody>,
}
