//! How late events really come.

use axum::extract::State;
use utoipa::IntoParams;

use super::json::Json;
use super::lateness_body::LatenessBody;
use super::params::{NamedQuery, Params, Range};
use super::problem::Problem;
use super::problem_docs::QueryProblems;
use super::stores::Stores;
use super::{App, finance_examples};
use crate::database::{LatenessBy, LatenessSelection, RecountRange};

/// Documents how sources are told apart.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "read by `lateness`; this documents it")]
pub(super) struct LatenessParams {
    /// What a source is: `store_id`, `till_id` (a till of a store), or `none` to have the total alone.
    #[param(pattern = "^(store_id|till_id|none)$", default = "store_id", example = "till_id")]
    by: Option<String>,
    /// The most sources listed, 1 to 1,000.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000, default = 100, example = 100)]
    limit: Option<String>,
}

/// Measure lateness.
///
/// Of the events that the query counts and whose times lie in the range: the receipt delay (received −
/// event time) and the disorder (the newest time heard before the event, by an event of the query or a
/// heartbeat, in the order of the log, − its event time: a delay that long would have kept its windows
/// open), each as exact quantiles and a histogram, in total and per source, the worst first. Buckets of
/// the histograms reach up to and including 0, 1 s, 10 s, 1 min, 5 min, 15 min, 1 h, 6 h, 1 day, 7 days.
/// A range keeps it quick; a log too long for one request is answered with `deadline-exceeded`. A key that
/// is bound to stores measures their events; what was heard before an event is of all stores, and
/// heartbeats are left out.
#[utoipa::path(get, path = "/v1/queries/{name}/lateness", tag = "Finance",
    params(NamedQuery, Range, LatenessParams),
    responses(
        (status = 200, description = "How late events came", body = LatenessBody,
            example = json!(finance_examples::lateness())),
        QueryProblems))]
pub(super) async fn lateness(
    State(app): State<App>,
    stores: Stores,
    NamedQuery(name): NamedQuery,
    mut params: Params,
) -> Result<Json<LatenessBody>, Problem> {
    let Range { from, to } = params.range();
    let by = match params.word("by", &["store_id", "till_id", "none"]) {
        Some("till_id") => LatenessBy::Till,
        Some("none") => LatenessBy::None,
        Some(_) | None => LatenessBy::Store,
    };
    let limit = usize::try_from(params.limit()).unwrap_or(usize::MAX);
    params.finish()?;
    let reach = stores.of_query(&app.database.query(&name).await?)?;
    let _place = app.report_place()?;
    let selection = LatenessSelection { range: RecountRange { from, to }, by, reach };
    let lateness = app.database.lateness(&name, &selection).await?;
    Ok(Json(LatenessBody::of(&name, by, &lateness, limit)))
}
