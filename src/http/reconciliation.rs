//! The reconciliation: the stream against a recount of the raw log.

use axum::extract::State;

use super::json::Json;
use super::params::{AsOfParams, NamedQuery, Params, Range};
use super::problem::Problem;
use super::problem_docs::{ListOfQueryProblems, OptionalQueryProblems};
use super::reconciliation_body::ReconciliationBody;
use super::windows::{LineParams, WhichQuery};
use super::{App, examples};
use crate::database::RecountRange;
use crate::domain::QueryName;
use crate::finance::reconcile::{self, LineFilter};

/// Documents the form of the report.
#[derive(Debug, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "read by `report`; this documents it")]
pub(super) struct FormatParams {
    /// The form of the report.
    #[param(pattern = "^json$", default = "json", example = "json")]
    format: Option<String>,
}

/// Reconcile a query.
///
/// Holds what the stream wrote against a recount of the raw log, window by window, and itemises
/// every difference down to the event: recount − stream = corrections + late + open + waiting − repeats.
/// What does not add up is `unexplained`, and `findings` say how. Everything is read in one snapshot; with
/// `as_of`, both sides as they stood at that moment.
#[utoipa::path(get, path = "/v1/queries/{name}/reconciliation", tag = "Finance",
    params(NamedQuery, Range, LineParams, AsOfParams, FormatParams),
    responses(
        (status = 200, description = "The report", body = ReconciliationBody,
            example = json!(examples::reconciliation())),
        ListOfQueryProblems))]
pub(super) async fn query_reconciliation(
    State(app): State<App>,
    NamedQuery(name): NamedQuery,
    params: Params,
) -> Result<Json<ReconciliationBody>, Problem> {
    report(&app, &name, params).await
}

/// Reconcile hourly sales.
///
/// The report for `hourly_sales`, or for the query that `query` names.
#[utoipa::path(get, path = "/v1/reconciliation", tag = "Finance",
    params(WhichQuery, Range, LineParams, AsOfParams, FormatParams),
    responses(
        (status = 200, description = "The report", body = ReconciliationBody,
            example = json!(examples::reconciliation())),
        OptionalQueryProblems))]
pub(super) async fn hourly_reconciliation(
    State(app): State<App>,
    mut params: Params,
) -> Result<Json<ReconciliationBody>, Problem> {
    let name = params.query_name()?;
    report(&app, &name, params).await
}

async fn report(
    app: &App,
    name: &QueryName,
    mut params: Params,
) -> Result<Json<ReconciliationBody>, Problem> {
    let Range { from, to } = params.range();
    let as_of = params.as_of();
    params.word("format", &["json"]);
    let fields = app.database.query(name).await?.spec.group_by;
    let filter = LineFilter { currency: params.parse("currency"), group: params.group(&fields) };
    params.finish()?;
    let _place = app.report_place()?;
    let range = RecountRange { from, to };
    let snapshot = match as_of {
        Some(moment) => app.database.reconciliation_snapshot_as_of(name, range, moment).await?,
        None => app.database.reconciliation_snapshot(name, range).await?,
    };
    Ok(Json(ReconciliationBody::of(&snapshot, &reconcile::compare_some(&snapshot, &filter))))
}
