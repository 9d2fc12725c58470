//! The reconciliation: the stream against a recount of the raw log.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};

use super::format::{Format, FormatParams, vary_by_accept};
use super::json::Json;
use super::params::{AsOfParams, NamedQuery, Params, Range};
use super::problem::Problem;
use super::problem_docs::ReconciliationProblems;
use super::reconciliation_body::ReconciliationBody;
use super::reconciliation_table::{LinePages, reconciliation_columns};
use super::row_stream::{RowWriter, stream};
use super::stores::Stores;
use super::windows::{LineParams, WhichQuery};
use super::{App, examples, row_examples};
use crate::database::RecountRange;
use crate::domain::QueryName;
use crate::finance::reconcile::LineFilter;

/// Reconcile a query.
///
/// Holds what the stream wrote against a recount of the raw log, window by window, and itemises
/// every difference down to the event: recount − stream = corrections + late + open + waiting − repeats.
/// What does not add up is `unexplained`, and `findings` say how. Everything is read in one snapshot; with
/// `as_of`, both sides as they stood at that moment.
#[utoipa::path(get, path = "/v1/queries/{name}/reconciliation", tag = "Finance",
    params(NamedQuery, Range, LineParams, AsOfParams, FormatParams),
    responses(
        (status = 200, description = "The report; as CSV or NDJSON its windows", content(
            (ReconciliationBody = "application/json", example = json!(examples::reconciliation())),
            (String = "text/csv", example = json!(row_examples::reconciliation_csv())),
            (String = "application/x-ndjson", example = json!(row_examples::reconciliation_ndjson())))),
        ReconciliationProblems))]
pub(super) async fn query_reconciliation(
    State(app): State<App>,
    stores: Stores,
    NamedQuery(name): NamedQuery,
    headers: HeaderMap,
    params: Params,
) -> Result<Response, Problem> {
    report(&app, (&name, &stores), params, &headers).await
}

/// Reconcile hourly sales.
///
/// The report for `hourly_sales`, or for the query that `query` names.
#[utoipa::path(get, path = "/v1/reconciliation", tag = "Finance",
    params(WhichQuery, Range, LineParams, AsOfParams, FormatParams),
    responses(
        (status = 200, description = "The report; as CSV or NDJSON its windows", content(
            (ReconciliationBody = "application/json", example = json!(examples::reconciliation())),
            (String = "text/csv", example = json!(row_examples::reconciliation_csv())),
            (String = "application/x-ndjson", example = json!(row_examples::reconciliation_ndjson())))),
        ReconciliationProblems))]
pub(super) async fn hourly_reconciliation(
    State(app): State<App>,
    stores: Stores,
    headers: HeaderMap,
    mut params: Params,
) -> Result<Response, Problem> {
    let name = params.query_name()?;
    report(&app, (&name, &stores), params, &headers).await
}

async fn report(
    app: &App,
    (name, stores): (&QueryName, &Stores),
    mut params: Params,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let Range { from, to } = params.range();
    let as_of = params.as_of();
    let format = Format::of(&mut params, headers)?;
    let query = app.database.query(name).await?;
    let filter = LineFilter {
        currency: params.parse("currency"),
        group: params.group(&query.spec.group_by),
        reach: stores.of_query(&query)?,
    };
    params.finish()?;
    let _place = app.report_place()?;
    let range = RecountRange { from, to };
    let snapshot = app.database.reconciliation_snapshot(name, range, as_of).await?;
    let body = ReconciliationBody::of(snapshot, &filter);
    if format == Format::Json {
        return Ok(vary_by_accept(Json(body).into_response()));
    }
    let writer = RowWriter::new(format, reconciliation_columns(&query.spec.group_by));
    stream(app, LinePages::of(body), writer).await
}
