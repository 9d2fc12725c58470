//! The reconciliation: stream against recount.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use serde::Serialize;
use utoipa::ToSchema;

use super::bodies::{Groups, TotalsBody, groups, moment};
use super::params::Params;
use super::problem::Problem;
use super::query_name;
use super::state::AppState;
use super::windows::HOURLY_SALES;
use crate::database::RecountRange;
use crate::domain::{Currency, EventField, Totals, WindowKey};
use crate::finance::reconcile::{self, CurrencyTotals, Line};

/// Late events with their ids.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LateTotals)]
struct LateBody {
    #[serde(flatten)]
    totals: TotalsBody,
    /// In the order of the raw log.
    event_ids: Vec<String>,
}

/// One window and group on both sides. `recount − stream = late + open + waiting − repeats`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReconciliationLine)]
struct LineBody {
    start: String,
    end: String,
    /// The query's group-by fields under their names.
    #[serde(flatten)]
    groups: Groups,
    currency: String,
    /// What the stream wrote; null where no row exists.
    stream: Option<TotalsBody>,
    /// What the raw log holds; null where it holds no matching event.
    recount: Option<TotalsBody>,
    /// recount − stream.
    difference: TotalsBody,
    /// Events that came after the window was final.
    late: LateBody,
    /// Counted in state, not yet written.
    open: TotalsBody,
    /// Received, not yet read by the query.
    waiting: TotalsBody,
    /// Counted by the stream and not by the recount.
    repeats: TotalsBody,
    /// Left out by both.
    duplicates: TotalsBody,
    /// Set aside before counting.
    quarantined: TotalsBody,
    /// Booked by finance.
    corrections: TotalsBody,
    /// Whether the window is final.
    r#final: bool,
    /// `match`, `late`, `open`, `waiting` or `unexplained`.
    #[schema(example = "late")]
    status: &'static str,
}

/// All lines of one currency.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReconciliationTotals)]
struct SumBody {
    stream: TotalsBody,
    recount: TotalsBody,
    difference: TotalsBody,
    late: TotalsBody,
    open: TotalsBody,
    waiting: TotalsBody,
    repeats: TotalsBody,
    duplicates: TotalsBody,
    quarantined: TotalsBody,
    corrections: TotalsBody,
}

/// The stream against a recount of the raw log, every difference itemised.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Reconciliation)]
pub(super) struct ReconciliationBody {
    query: String,
    /// The moment that both sides were read at.
    as_of: String,
    watermark: String,
    /// Every window that ends by then is final; null before the first.
    complete_through: Option<String>,
    windows: Vec<LineBody>,
    /// By currency; currencies are never added together.
    totals: BTreeMap<String, SumBody>,
    /// Windows whose difference is not fully itemised. Anything but 0 is an alarm.
    unexplained: usize,
}

/// Reconciles a query's rows with a recount of the raw log, in one snapshot.
#[utoipa::path(get, path = "/v1/queries/{name}/reconciliation", tag = "finance",
    params(("name" = String, Path),
        ("from" = Option<String>, Query, description = "Windows that start at or after this"),
        ("to" = Option<String>, Query, description = "Windows that start before this"),
        ("format" = Option<String>, Query, description = "`json`")),
    responses((status = 200, description = "Both sides and what makes the difference", body = ReconciliationBody,
            example = json!({"query": "hourly_sales", "as_of": "2026-10-01T12:40:05.000000Z", "watermark": "1970-01-01T00:00:00.000Z",
                "complete_through": null, "windows": [], "totals": {}, "unexplained": 0})),
        (status = 400, description = "A parameter is wrong"), (status = 404, description = "No such query")))]
pub(super) async fn of_query(
    State(state): State<AppState>,
    Path(name): Path<String>,
    params: Params,
) -> Result<Json<ReconciliationBody>, Problem> {
    report(&state, &name, params).await
}

/// Reconciles `hourly_sales`, or another query.
#[utoipa::path(get, path = "/v1/reconciliation", tag = "finance",
    params(("query" = Option<String>, Query),
        ("from" = Option<String>, Query, description = "Windows that start at or after this"),
        ("to" = Option<String>, Query, description = "Windows that start before this"),
        ("format" = Option<String>, Query, description = "`json`")),
    responses((status = 200, description = "Both sides and what makes the difference", body = ReconciliationBody,
            example = json!({"query": "hourly_sales", "as_of": "2026-10-01T12:40:05.000000Z", "watermark": "1970-01-01T00:00:00.000Z",
                "complete_through": null, "windows": [], "totals": {}, "unexplained": 0})),
        (status = 400, description = "A parameter is wrong"), (status = 404, description = "No such query")))]
pub(super) async fn hourly_sales(
    State(state): State<AppState>,
    mut params: Params,
) -> Result<Json<ReconciliationBody>, Problem> {
    let name = params.take("query").unwrap_or_else(|| HOURLY_SALES.to_owned());
    report(&state, &name, params).await
}

async fn report(
    state: &AppState,
    name: &str,
    mut params: Params,
) -> Result<Json<ReconciliationBody>, Problem> {
    let (from, to) = params.range();
    params.word("format", &["json"]);
    params.finish()?;
    let range = RecountRange { from, to };
    let snapshot = state.database().reconciliation_snapshot(&query_name(name)?, range).await?;
    let reconciliation = reconcile::compare(&snapshot);
    let query = &snapshot.query;
    let fields = &query.spec.group_by;
    let sums = reconciliation.totals.iter();
    Ok(Json(ReconciliationBody {
        query: query.name.to_string(),
        as_of: moment(snapshot.as_of),
        watermark: query.watermark.to_string(),
        complete_through: query.complete_through().map(|time| time.to_string()),
        windows: reconciliation
            .lines
            .iter()
            .map(|(key, line)| line_body(fields, key, line))
            .collect(),
        totals: sums
            .map(|(currency, sum)| (currency.to_string(), sum_body(sum, *currency)))
            .collect(),
        unexplained: reconciliation.unexplained,
    }))
}

fn line_body(fields: &[EventField], key: &WindowKey, line: &Line) -> LineBody {
    let body = |totals: Totals| TotalsBody::of(totals, key.currency);
    LineBody {
        start: key.window.start.to_string(),
        end: key.window.end.to_string(),
        groups: groups(fields, &key.group),
        currency: key.currency.to_string(),
        stream: line.stream.map(body),
        recount: line.recount.map(body),
        difference: body(line.difference()),
        late: LateBody {
            totals: body(line.late),
            event_ids: line.late_event_ids.iter().map(ToString::to_string).collect(),
        },
        open: body(line.open),
        waiting: body(line.waiting),
        repeats: body(Totals::ZERO),
        duplicates: body(Totals::ZERO),
        quarantined: body(Totals::ZERO),
        corrections: body(Totals::ZERO),
        r#final: line.is_final,
        status: line.verdict().as_str(),
    }
}

fn sum_body(sum: &CurrencyTotals, currency: Currency) -> SumBody {
    let body = |totals: Totals| TotalsBody::of(totals, currency);
    SumBody {
        stream: body(sum.stream),
        recount: body(sum.recount),
        difference: body(sum.recount.minus(sum.stream)),
        late: body(sum.late),
        open: body(sum.open),
        waiting: body(sum.waiting),
        repeats: body(Totals::ZERO),
        duplicates: body(Totals::ZERO),
        quarantined: body(Totals::ZERO),
        corrections: body(Totals::ZERO),
    }
}
