//! Progress entries: what each micro-batch did.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use chrono::DateTime;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::format::{Format, FormatParams, vary_by_accept};
use super::paging::{Page, PageParams};
use super::params::{NamedQuery, Params};
use super::problem::Problem;
use super::problem_docs::FormatProblems;
use super::progress_body::ProgressBody;
use super::progress_table::{ProgressPages, progress_columns};
use super::row_stream::{RowWriter, stream};
use super::{App, examples, row_examples};
use crate::database::{CommittedProgress, ProgressCursor};
use crate::domain::{BatchId, QueryName};

/// Whose progress to read.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "read by `all_progress`; this documents it")]
pub(super) struct WhoseProgress {
    /// The query's name. Left out: all queries.
    #[param(example = "hourly_sales")]
    query: Option<String>,
}

/// List a query's progress.
///
/// One entry per micro-batch, newest first, kept for good.
#[utoipa::path(get, path = "/v1/queries/{name}/progress", tag = "Reading",
    params(NamedQuery, FormatParams, PageParams),
    responses(
        (status = 200, description = "A page of entries; as CSV or NDJSON all of them", content(
            (ProgressAnswer = "application/json", example = json!(examples::progress())),
            (String = "text/csv", example = json!(row_examples::progress_csv())),
            (String = "application/x-ndjson", example = json!(row_examples::progress_ndjson())))),
        FormatProblems))]
pub(super) async fn query_progress(
    State(app): State<App>,
    NamedQuery(name): NamedQuery,
    headers: HeaderMap,
    params: Params,
) -> Result<Response, Problem> {
    app.database.query(&name).await?;
    answer(&app, Some(&name), params, &headers).await
}

/// List the progress of all queries.
///
/// The entries of every query together, or of the one that `query` names, newest first.
#[utoipa::path(get, path = "/v1/progress", tag = "Reading", params(WhoseProgress, FormatParams, PageParams),
    responses(
        (status = 200, description = "A page of entries; as CSV or NDJSON all of them", content(
            (ProgressAnswer = "application/json", example = json!(examples::progress())),
            (String = "text/csv", example = json!(row_examples::progress_csv())),
            (String = "application/x-ndjson", example = json!(row_examples::progress_ndjson())))),
        FormatProblems))]
pub(super) async fn all_progress(
    State(app): State<App>,
    headers: HeaderMap,
    mut params: Params,
) -> Result<Response, Problem> {
    let Some(name) = params.text("query") else {
        return answer(&app, None, params, &headers).await;
    };
    let name = name.parse().map_err(|fault| Problem::no_query_name(&name, &fault))?;
    app.database.query(&name).await?;
    answer(&app, Some(&name), params, &headers).await
}

async fn answer(
    app: &App,
    query: Option<&QueryName>,
    mut params: Params,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let format = Format::of(&mut params, headers)?;
    let is_page = format == Format::Json || params.has("limit");
    let page: Page<EntryCursor> = params.page();
    let link = params.finish()?;
    let after = page.after.clone().map(ProgressCursor::from);
    let writer = RowWriter::new(format, progress_columns());
    if !is_page {
        let (database, query) = (app.database.clone(), query.cloned());
        return stream(app, ProgressPages { database, query, after, is_done: false }, writer).await;
    }
    let mut entries = app.database.progress(query, after.as_ref(), page.read_limit()).await?;
    let next_cursor = page.cut(&mut entries, EntryCursor::of);
    let progress: Vec<ProgressBody> = entries.into_iter().map(ProgressBody::from).collect();
    if format != Format::Json {
        return Ok(link.with(next_cursor.as_deref(), writer.answer(&progress)));
    }
    let body = ProgressAnswer { progress, next_cursor };
    Ok(vary_by_accept(link.answer(body.next_cursor.as_deref(), &body)))
}

/// Where a page of entries ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EntryCursor {
    #[serde(rename = "t")]
    timestamp: CursorMoment,
    #[serde(rename = "q")]
    query: CursorName,
    #[serde(rename = "b")]
    batch_id: i64,
}

impl EntryCursor {
    /// After this entry.
    pub(super) fn of(progress: &CommittedProgress) -> Self {
        Self {
            timestamp: CursorMoment(progress.timestamp),
            query: CursorName(progress.query.clone()),
            batch_id: progress.entry.batch_id.get(),
        }
    }
}

impl From<EntryCursor> for ProgressCursor {
    fn from(cursor: EntryCursor) -> Self {
        let (timestamp, query) = (cursor.timestamp.0, cursor.query.0);
        Self { timestamp, query, batch_id: BatchId::new(cursor.batch_id) }
    }
}

/// A moment of the database's clock in a cursor: microseconds, 1970 to some 3,000 years later.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
pub(super) struct CursorMoment(pub(super) DateTime<chrono::Utc>);

impl TryFrom<i64> for CursorMoment {
    type Error = &'static str;

    fn try_from(micros: i64) -> Result<Self, &'static str> {
        let in_range = (0..100_000_000_000_000_000).contains(&micros);
        let moment = DateTime::from_timestamp_micros(micros).filter(|_| in_range);
        moment.map(Self).ok_or("no moment of an entry")
    }
}

impl From<CursorMoment> for i64 {
    fn from(moment: CursorMoment) -> Self {
        moment.0.timestamp_micros()
    }
}

/// A query's name in a cursor.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct CursorName(pub(super) QueryName);

impl TryFrom<String> for CursorName {
    type Error = crate::domain::InvalidText;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        name.parse().map(Self)
    }
}

impl From<CursorName> for String {
    fn from(name: CursorName) -> Self {
        name.0.to_string()
    }
}

/// A page of progress entries.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ProgressAnswer {
    /// The entries, newest first.
    progress: Vec<ProgressBody>,
    /// What to ask the next page with; null at the end.
    next_cursor: Option<String>,
}
