//! Output rows: what was counted, window by window.

use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::figures::{Figures, GroupMembers, GroupMembersSchema, moment_text};
use super::paging::{Page, PageParams};
use super::params::{NamedQuery, Params, Range};
use super::problem::Problem;
use super::problem_docs::{ListOfQueryProblems, OptionalQueryProblems};
use super::stores::Stores;
use super::{App, examples};
use crate::database::{StoredQuery, WindowRow, WindowSelection};
use crate::domain::{Currency, EventField, EventTime, GroupKey, Window, WindowKey};

/// Documents how rows are picked; [`Selected::read`] reads it.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "read by `Selected::read`; these fields document it")]
pub(super) struct RowParams {
    /// Rows of one currency.
    #[param(example = "USD")]
    currency: Option<String>,
    /// `true`: only rows that will never change again. `false`: only rows that may.
    r#final: Option<bool>,
    /// For each field of the query's `group_by`, under its name, such as `store_id=S1`: rows with
    /// this value. An empty value means rows without a value and rows whose value is empty.
    #[param(style = Form, explode, example = json!({ "store_id": "S1" }))]
    group: Option<GroupMembersSchema>,
}

/// Which query to read, where the address does not say.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "read by `Params::query_name`; this documents it")]
pub(super) struct WhichQuery {
    /// The query's name.
    #[param(default = "hourly_sales", example = "hourly_sales_live")]
    query: Option<String>,
}

/// List a query's windows.
///
/// The output rows of a query, ordered by start, then group and currency. In append mode a row
/// appears once, when its window is final, and never changes; in update mode rows change until then.
/// What came too late for a row stands beside it in `late_since`.
#[utoipa::path(get, path = "/v1/queries/{name}/windows", tag = "Reading",
    params(NamedQuery, Range, RowParams, PageParams),
    responses(
        (status = 200, description = "A page of rows", body = WindowsAnswer,
            example = json!(examples::windows())),
        ListOfQueryProblems))]
pub(super) async fn list_windows(
    State(app): State<App>,
    stores: Stores,
    NamedQuery(name): NamedQuery,
    params: Params,
) -> Result<Response, Problem> {
    let query = app.database.query(&name).await?;
    answer(&app, (&query, &stores), params, false).await
}

/// List hourly sales.
///
/// The windows of `hourly_sales`, or of the query that `query` names, with `hour` for the start.
#[utoipa::path(get, path = "/v1/hourly-sales", tag = "Reading",
    params(WhichQuery, Range, RowParams, PageParams),
    responses(
        (status = 200, description = "A page of rows", body = WindowsAnswer,
            example = json!(examples::hourly_sales())),
        OptionalQueryProblems))]
pub(super) async fn hourly_sales(
    State(app): State<App>,
    stores: Stores,
    mut params: Params,
) -> Result<Response, Problem> {
    let query = app.database.query(&params.query_name()?).await?;
    answer(&app, (&query, &stores), params, true).await
}

/// Reads rows after the query's state: a window that `complete_through` promises to be final is so
/// in rows read later, while the other way round it might not be.
async fn answer(
    app: &App,
    (query, stores): (&StoredQuery, &Stores),
    mut params: Params,
    names_hours: bool,
) -> Result<Response, Problem> {
    let own = stores.groups_of(query)?;
    let Selected { page, mut selection } = Selected::read(&mut params, query);
    selection.group_within = own.map(|own| (own.index, own.stores));
    let link = params.finish()?;
    let mut rows = app.database.windows(query.query_id, &selection, page.read_limit()).await?;
    let next_cursor = page.cut(&mut rows, |row| RowCursor::of(&row.key));
    let body = WindowsAnswer {
        query: query.name.to_string(),
        watermark: query.watermarks.current.to_string(),
        complete_through: query.complete_through().map(|time| time.to_string()),
        rows: rows.iter().map(|row| RowBody::of(row, query, names_hours)).collect(),
        next_cursor,
    };
    Ok(link.answer(body.next_cursor.as_deref(), &body))
}

/// Which rows are asked for.
struct Selected {
    page: Page<RowCursor>,
    selection: WindowSelection,
}

impl Selected {
    fn read(params: &mut Params, query: &StoredQuery) -> Self {
        let Range { from, to } = params.range();
        let currency: Option<Currency> = params.parse("currency");
        let is_final = params.flag("final");
        let mut group = Vec::new();
        for (index, field) in query.spec.group_by.iter().enumerate() {
            if let Some(value) = params.text(&field.to_string()) {
                group.push((index, value));
            }
        }
        let page: Page<RowCursor> = params.page();
        let selection = WindowSelection {
            from,
            to,
            currency: currency.map(|currency| currency.code().to_owned()),
            group,
            group_within: None,
            is_final,
            after: page.after.as_ref().map(RowCursor::key),
        };
        Self { page, selection }
    }
}

/// Where a page of rows ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RowCursor {
    #[serde(rename = "s")]
    start: CursorTime,
    #[serde(rename = "e")]
    end: CursorTime,
    #[serde(rename = "g")]
    group: Vec<Option<String>>,
    #[serde(rename = "c")]
    currency: CursorCurrency,
}

impl RowCursor {
    fn of(key: &WindowKey) -> Self {
        Self {
            start: CursorTime(key.window.start),
            end: CursorTime(key.window.end),
            group: key.group.0.clone(),
            currency: CursorCurrency(key.currency),
        }
    }

    fn key(&self) -> WindowKey {
        WindowKey {
            window: Window { start: self.start.0, end: self.end.0 },
            currency: self.currency.0,
            group: GroupKey(self.group.clone()),
        }
    }
}

/// A window's bound in a cursor: microseconds, within what Postgres can compare.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
struct CursorTime(EventTime);

impl TryFrom<i64> for CursorTime {
    type Error = &'static str;

    fn try_from(micros: i64) -> Result<Self, &'static str> {
        // Some 3,000 years on either side of 1970: more than any window's bound.
        let in_range = micros.unsigned_abs() < 100_000_000_000_000_000;
        in_range.then(|| Self(EventTime::from_micros(micros))).ok_or("no window's bound")
    }
}

impl From<CursorTime> for i64 {
    fn from(time: CursorTime) -> Self {
        time.0.as_micros()
    }
}

/// A currency in a cursor.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
struct CursorCurrency(Currency);

impl TryFrom<String> for CursorCurrency {
    type Error = crate::domain::InvalidCurrency;

    fn try_from(code: String) -> Result<Self, Self::Error> {
        code.parse().map(Self)
    }
}

impl From<CursorCurrency> for String {
    fn from(currency: CursorCurrency) -> Self {
        currency.0.code().to_owned()
    }
}

/// A page of output rows.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct WindowsAnswer {
    /// Whose rows.
    #[schema(example = "hourly_sales")]
    query: String,
    /// The watermark of the query's last batch.
    #[schema(format = DateTime, example = "2026-10-01T11:40:00.000Z")]
    watermark: String,
    /// Every window that ends by this moment is final; null before the first is.
    #[schema(format = DateTime, example = "2026-10-01T11:00:00Z")]
    complete_through: Option<String>,
    /// The rows, ordered by start, then group and currency.
    rows: Vec<RowBody>,
    /// What to ask the next page with; null at the end.
    next_cursor: Option<String>,
}

/// An output row. The fields of the query's `group_by` are members of their own.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WindowRow)]
struct RowBody {
    /// The start again; only in hourly sales.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    hour: Option<String>,
    /// The first moment inside the window.
    #[schema(format = DateTime, example = "2026-10-01T09:00:00Z")]
    start: String,
    /// The first moment after the window.
    #[schema(format = DateTime, example = "2026-10-01T10:00:00Z")]
    end: String,
    #[serde(flatten)]
    #[schema(value_type = GroupMembersSchema)]
    group: GroupMembers,
    /// ISO 4217.
    #[schema(example = "USD")]
    currency: &'static str,
    #[serde(flatten)]
    figures: Figures,
    /// Whether the row will never change again.
    r#final: bool,
    /// The batch that wrote the row last.
    batch_id: i64,
    /// When that was, by the database's clock.
    #[schema(format = DateTime)]
    written_at: String,
    /// What made it final: `watermark` or `idle`; null while its window is open.
    #[schema(example = "watermark")]
    closed_by: Option<String>,
    /// Events for the window that came too late to count.
    late_since: Figures,
}

impl RowBody {
    fn of(row: &WindowRow, query: &StoredQuery, names_hour: bool) -> Self {
        let WindowKey { window, currency, group } = &row.key;
        let fields: &[EventField] = &query.spec.group_by;
        Self {
            hour: names_hour.then(|| window.start.to_string()),
            start: window.start.to_string(),
            end: window.end.to_string(),
            group: GroupMembers::of(fields, group),
            currency: currency.code(),
            figures: Figures::of(row.totals, *currency),
            r#final: row.closed_by.is_some(),
            batch_id: row.batch_id.get(),
            written_at: moment_text(row.written_at),
            closed_by: row.closed_by.clone(),
            late_since: Figures::of(row.late_since, *currency),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::paging::decode_cursor;
    use base64::Engine as _;

    #[test]
    fn a_cursor_made_by_somebody_else_is_none() {
        let encode = |json: &str| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(json);
        for (json, is_one) in [
            (r#"{"s":0,"e":3600000000,"g":[null,"S1"],"c":"USD"}"#, true),
            (r#"{"s":0,"e":9223372036854775807,"g":[],"c":"USD"}"#, false),
            (r#"{"s":0,"e":3600000000,"g":[],"c":"usd"}"#, false),
            (r#"{"s":0,"e":3600000000,"g":[],"c":"USD","x":1}"#, false),
            (r#"{"seq":1}"#, false),
        ] {
            assert_eq!(decode_cursor::<RowCursor>(&encode(json)).is_some(), is_one, "{json}");
        }
    }
}
