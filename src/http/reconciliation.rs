//! The reconciliation: the stream against a recount of the raw log.

use axum::extract::State;

use super::json::Json;
use super::params::{NamedQuery, Params, Range};
use super::problem::Problem;
use super::problem_docs::{ListOfQueryProblems, OptionalQueryProblems};
use super::reconciliation_body::ReconciliationBody;
use super::stores::Stores;
use super::windows::WhichQuery;
use super::{App, examples};
use crate::database::RecountRange;
use crate::domain::QueryName;
use crate::finance::reconcile;

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
/// every difference down to the event: recount − stream = late + open + waiting − repeats. What does
/// not add up is `unexplained`. Everything is read in one snapshot.
#[utoipa::path(get, path = "/v1/queries/{name}/reconciliation", tag = "Finance",
    params(NamedQuery, Range, FormatParams),
    responses(
        (status = 200, description = "The report", body = ReconciliationBody,
            example = json!(examples::reconciliation())),
        ListOfQueryProblems))]
pub(super) async fn query_reconciliation(
    State(app): State<App>,
    stores: Stores,
    NamedQuery(name): NamedQuery,
    params: Params,
) -> Result<Json<ReconciliationBody>, Problem> {
    report(&app, (&name, &stores), params).await
}

/// Reconcile hourly sales.
///
/// The report for `hourly_sales`, or for the query that `query` names.
#[utoipa::path(get, path = "/v1/reconciliation", tag = "Finance",
    params(WhichQuery, Range, FormatParams),
    responses(
        (status = 200, description = "The report", body = ReconciliationBody,
            example = json!(examples::reconciliation())),
        OptionalQueryProblems))]
pub(super) async fn hourly_reconciliation(
    State(app): State<App>,
    stores: Stores,
    mut params: Params,
) -> Result<Json<ReconciliationBody>, Problem> {
    let name = params.query_name()?;
    report(&app, (&name, &stores), params).await
}

async fn report(
    app: &App,
    (name, stores): (&QueryName, &Stores),
    mut params: Params,
) -> Result<Json<ReconciliationBody>, Problem> {
    let Range { from, to } = params.range();
    params.word("format", &["json"]);
    params.finish()?;
    let own = stores.groups_of(&app.database.query(name).await?)?;
    let _place = app.report_place()?;
    let mut snapshot =
        app.database.reconciliation_snapshot(name, RecountRange { from, to }).await?;
    if let Some(own) = own {
        snapshot.retain_groups(|group| own.hold(group));
    }
    Ok(Json(ReconciliationBody::of(&snapshot, &reconcile::compare(&snapshot))))
}
