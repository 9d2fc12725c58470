//! Output rows: the windows of a query, and the hours of the shop.

use axum::extract::{OriginalUri, Path, State};
use axum::http::Uri;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::bodies::{
    Groups, TotalsBody, WindowCursor, cut_page, groups, moment, money, page, window_cursor,
};
use super::params::Params;
use super::problem::Problem;
use super::query_name;
use super::state::AppState;
use crate::database::{StoredQuery, WindowRow, WindowSelection};
use crate::domain::{Currency, EventTime, GroupKey, Window, WindowKey};

/// The query that `/v1/hourly-sales` and `/v1/reconciliation` mean unless told otherwise.
pub(super) const HOURLY_SALES: &str = "hourly_sales";

/// One window of one group.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WindowRow)]
pub(super) struct RowBody {
    /// The same as `start`; only in `/v1/hourly-sales`.
    #[serde(skip_serializing_if = "Option::is_none")]
    hour: Option<String>,
    /// The first moment inside.
    #[schema(example = "2026-10-01T09:00:00Z")]
    start: String,
    /// The first moment after.
    #[schema(example = "2026-10-01T10:00:00Z")]
    end: String,
    /// The query's group-by fields under their names; null where events have no value.
    #[serde(flatten)]
    groups: Groups,
    /// ISO 4217; currencies are never added together.
    #[schema(example = "USD")]
    currency: String,
    /// How many events.
    #[schema(example = 3)]
    orders: i64,
    /// The exact sum of their amounts.
    #[schema(example = "68.50")]
    revenue: String,
    /// Whether the row will never change again.
    r#final: bool,
    /// The batch that wrote the row last.
    batch_id: i64,
    /// When that was.
    written_at: String,
    /// `watermark`; null while the window is open.
    closed_by: Option<String>,
    /// Events for this window that came too late to count.
    late_since: TotalsBody,
}

/// Rows, ordered by start, then keys.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WindowsPage)]
pub(super) struct WindowsPage {
    /// Whose rows they are.
    query: String,
    /// The watermark of the query's last batch.
    watermark: String,
    /// Every window that ends by then is final; null before the first.
    complete_through: Option<String>,
    rows: Vec<RowBody>,
    next_cursor: Option<String>,
}

/// The windows of a query.
///
/// The query's group-by fields are parameters too: `store_id=S1`; empty for rows without a value.
#[utoipa::path(get, path = "/v1/queries/{name}/windows", tag = "reading",
    params(("name" = String, Path),
        ("from" = Option<String>, Query, description = "Windows that start at or after this"),
        ("to" = Option<String>, Query, description = "Windows that start before this"),
        ("final" = Option<bool>, Query), ("currency" = Option<String>, Query),
        ("limit" = Option<u32>, Query), ("cursor" = Option<String>, Query)),
    responses((status = 200, description = "A page of rows", body = WindowsPage,
            example = json!({"query": "hourly_sales", "watermark": "2026-10-01T10:30:00.000Z", "complete_through": "2026-10-01T10:00:00Z",
                "rows": [{"start": "2026-10-01T09:00:00Z", "end": "2026-10-01T10:00:00Z", "currency": "USD", "orders": 3, "revenue": "68.50",
                    "final": true, "batch_id": 3, "written_at": "2026-10-01T11:30:02.000000Z", "closed_by": "watermark",
                    "late_since": {"orders": 0, "revenue": "0.00"}}], "next_cursor": null})),
        (status = 400, description = "A parameter is wrong"), (status = 404, description = "No such query")))]
pub(super) async fn of_query(
    State(state): State<AppState>,
    Path(name): Path<String>,
    OriginalUri(uri): OriginalUri,
    params: Params,
) -> Result<Response, Problem> {
    rows(&state, &name, &uri, params, false).await
}

/// The hours of the shop: the windows of `hourly_sales`, or of another query.
#[utoipa::path(get, path = "/v1/hourly-sales", tag = "reading",
    params(("query" = Option<String>, Query),
        ("from" = Option<String>, Query, description = "Hours that start at or after this"),
        ("to" = Option<String>, Query, description = "Hours that start before this"),
        ("final" = Option<bool>, Query), ("currency" = Option<String>, Query),
        ("limit" = Option<u32>, Query), ("cursor" = Option<String>, Query)),
    responses((status = 200, description = "A page of rows", body = WindowsPage,
            example = json!({"query": "hourly_sales", "watermark": "1970-01-01T00:00:00.000Z", "complete_through": null, "rows": [], "next_cursor": null})),
        (status = 400, description = "A parameter is wrong"), (status = 404, description = "No such query")))]
pub(super) async fn hourly_sales(
    State(state): State<AppState>,
    OriginalUri(uri): OriginalUri,
    mut params: Params,
) -> Result<Response, Problem> {
    let name = params.take("query").unwrap_or_else(|| HOURLY_SALES.to_owned());
    rows(&state, &name, &uri, params, true).await
}

async fn rows(
    state: &AppState,
    name: &str,
    uri: &Uri,
    mut params: Params,
    with_hour: bool,
) -> Result<Response, Problem> {
    // The watermark is read first, so every row that it calls final is in what is read next.
    let query = state.database().query(&query_name(name)?).await?;
    let limit = params.limit();
    let selection = selection(&mut params, &query);
    params.finish()?;
    let mut rows = state.database().windows(query.query_id, &selection, limit + 1).await?;
    let next_cursor = cut_page(&mut rows, limit, |last| window_cursor(&last.key));
    let body = WindowsPage {
        query: query.name.to_string(),
        watermark: query.watermark.to_string(),
        complete_through: query.complete_through().map(|time| time.to_string()),
        rows: rows.iter().map(|row| row_body(row, &query, with_hour)).collect(),
        next_cursor: next_cursor.clone(),
    };
    Ok(page(uri, next_cursor.as_deref(), body))
}

fn selection(params: &mut Params, query: &StoredQuery) -> WindowSelection {
    let (from, to) = params.range();
    let currency = params.parse::<Currency>("currency").map(|currency| currency.code().to_owned());
    let mut group = Vec::new();
    for (index, field) in query.spec.group_by.iter().enumerate() {
        if let Some(value) = params.take(&field.to_string()) {
            group.push((index, Some(value).filter(|value| !value.is_empty())));
        }
    }
    let is_final = params.flag("final");
    let after = params.cursor::<WindowCursor>().and_then(|(start, end, group, currency)| {
        let window =
            Window { start: EventTime::from_micros(start), end: EventTime::from_micros(end) };
        Some(WindowKey { window, currency: currency.parse().ok()?, group: GroupKey(group) })
    });
    WindowSelection { from, to, currency, group, is_final, after }
}

fn row_body(row: &WindowRow, query: &StoredQuery, with_hour: bool) -> RowBody {
    let WindowKey { window, currency, group } = &row.key;
    RowBody {
        hour: with_hour.then(|| window.start.to_string()),
        start: window.start.to_string(),
        end: window.end.to_string(),
        groups: groups(&query.spec.group_by, group),
        currency: currency.to_string(),
        orders: row.totals.orders,
        revenue: money(row.totals, *currency),
        r#final: row.closed_by.is_some(),
        batch_id: row.batch_id.get(),
        written_at: moment(row.written_at),
        closed_by: row.closed_by.clone(),
        late_since: TotalsBody::of(row.late_since, *currency),
    }
}
