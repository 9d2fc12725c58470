//! Output rows: what was counted, window by window.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::counted_body::CountedBody;
use super::figures::{Figures, GroupMembers, GroupMembersSchema, moment_text};
use super::folds::FoldParams;
use super::format::FormatParams;
use super::paging::{Page, PageParams};
use super::params::{AsOfParams, NamedQuery, Params, Range};
use super::problem::Problem;
use super::problem_docs::WindowProblems;
use super::stores::Stores;
use super::window_answer::{WindowsAnswer, answer};
use super::{App, examples, row_examples};
use crate::database::{StoredQuery, WindowRow, WindowSelection};
use crate::domain::{
    BatchId, Currency, EventTime, GroupKey, StoreReach, Window, WindowKey, WindowSpec,
};

/// Documents which lines of a query are picked, by their currency and group keys.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "read by hand; these fields document it")]
pub(super) struct LineParams {
    /// Only of one currency.
    #[param(pattern = "^[A-Z]{3}$", example = "USD")]
    currency: Option<String>,
    /// For each field of the query's `group_by`, under its name, such as `store_id=S1`: only with this
    /// value. An empty value means no value, and a value that is empty.
    #[param(style = Form, explode, example = json!({ "store_id": "S1" }))]
    group: Option<GroupMembersSchema>,
}

/// Documents how rows are picked; [`Selected::read`] reads it.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "read by `Selected::read`; these fields document it")]
pub(super) struct RowParams {
    /// `true`: only rows that will never change again. `false`: only rows that may.
    r#final: Option<bool>,
    /// `stream`: rows as the query wrote them. `corrected`: with the booked corrections added, each row
    /// saying how much that is in `corrections`.
    #[param(pattern = "^(stream|corrected)$", default = "stream", example = "corrected")]
    view: Option<String>,
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
/// What came too late for a row stands beside it in `late_since`. With `granularity`, windows are folded
/// into local hours, days, weeks or months.
#[utoipa::path(get, path = "/v1/queries/{name}/windows", tag = "Reading",
    params(NamedQuery, Range, LineParams, RowParams, AsOfParams, FoldParams, FormatParams, PageParams),
    responses(
        (status = 200, description = "A page of rows; as CSV or NDJSON all rows", content(
            (WindowsAnswer = "application/json", examples(
                ("windows" = (summary = "Windows", value = json!(examples::windows()))),
                ("days" = (summary = "Folded with `granularity`", value = json!(examples::days()))))),
            (String = "text/csv", example = json!(row_examples::windows_csv())),
            (String = "application/x-ndjson", example = json!(row_examples::windows_ndjson())))),
        WindowProblems))]
pub(super) async fn list_windows(
    State(app): State<App>,
    stores: Stores,
    NamedQuery(name): NamedQuery,
    headers: HeaderMap,
    params: Params,
) -> Result<Response, Problem> {
    answer(&app, (&name, &stores), params, &headers, false).await
}

/// List hourly sales.
///
/// The windows of `hourly_sales`, or of the query that `query` names, with `hour` for the start.
#[utoipa::path(get, path = "/v1/hourly-sales", tag = "Reading",
    params(WhichQuery, Range, LineParams, RowParams, AsOfParams, FoldParams, FormatParams, PageParams),
    responses(
        (status = 200, description = "A page of rows; as CSV or NDJSON all rows", content(
            (WindowsAnswer = "application/json", examples(
                ("hours" = (summary = "Hours", value = json!(examples::hourly_sales()))),
                ("days" = (summary = "Folded with `granularity`", value = json!(examples::days()))))),
            (String = "text/csv", example = json!(row_examples::hourly_sales_csv())),
            (String = "application/x-ndjson", example = json!(row_examples::hourly_sales_ndjson())))),
        WindowProblems))]
pub(super) async fn hourly_sales(
    State(app): State<App>,
    stores: Stores,
    headers: HeaderMap,
    mut params: Params,
) -> Result<Response, Problem> {
    let name = params.query_name()?;
    answer(&app, (&name, &stores), params, &headers, true).await
}

/// Which rows are asked for.
pub(super) struct Selected {
    pub(super) page: Page<RowCursor>,
    pub(super) selection: WindowSelection,
}

impl Selected {
    /// Reads the parameters that [`RowParams`] documents, for rows within `reach`.
    pub(super) fn read(params: &mut Params, query: &StoredQuery, reach: StoreReach) -> Self {
        let Range { from, to } = params.range();
        let currency: Option<Currency> = params.parse("currency");
        let is_final = params.flag("final");
        let is_corrected = params.word("view", &["stream", "corrected"]) == Some("corrected");
        let group = params.group(&query.spec.group_by);
        let page: Page<RowCursor> = params.page();
        let selection = WindowSelection {
            from,
            to,
            currency: currency.map(|currency| currency.code().to_owned()),
            group,
            reach,
            is_final,
            batches: None,
            of_sessions: matches!(query.spec.window, WindowSpec::Session { .. }),
            is_corrected,
            as_of: None,
            after: page.after.as_ref().map(RowCursor::key),
        };
        Self { page, selection }
    }
}

/// Where a page of rows ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RowCursor {
    #[serde(rename = "s")]
    start: CursorTime,
    #[serde(rename = "e")]
    end: CursorTime,
    #[serde(rename = "g")]
    group: Vec<Option<String>>,
    #[serde(rename = "c")]
    currency: CursorCurrency,
    /// Whether the row is of a local period, and so of another list.
    #[serde(rename = "f", default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_folded: bool,
}

impl RowCursor {
    pub(super) fn of(key: &WindowKey, is_folded: bool) -> Self {
        Self {
            start: CursorTime(key.window.start),
            end: CursorTime(key.window.end),
            group: key.group.0.clone(),
            currency: CursorCurrency(key.currency),
            is_folded,
        }
    }

    pub(super) fn key(&self) -> WindowKey {
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

/// An output row. The fields of the query's `group_by` are members of their own.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WindowRow)]
pub(super) struct RowBody {
    /// The start again; only in hourly sales.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub(super) hour: Option<String>,
    /// The first moment inside the window.
    #[schema(format = DateTime, example = "2026-10-01T09:00:00Z")]
    pub(super) start: String,
    /// The first moment after the window.
    #[schema(format = DateTime, example = "2026-10-01T10:00:00Z")]
    pub(super) end: String,
    #[serde(flatten)]
    pub(super) counted: CountedBody,
}

impl RowBody {
    /// A row in words of the API.
    pub(super) fn of(row: &WindowRow, query: &StoredQuery, names_hour: bool) -> Self {
        let WindowKey { window, currency, group } = &row.key;
        let figures = |totals| Figures::of(totals, *currency);
        Self {
            hour: names_hour.then(|| window.start.to_string()),
            start: window.start.to_string(),
            end: window.end.to_string(),
            counted: CountedBody {
                group: GroupMembers::of(&query.spec.group_by, group),
                currency: currency.code(),
                figures: figures(row.totals),
                r#final: row.is_final,
                batch_id: row.batch_id.map(BatchId::get),
                written_at: moment_text(row.written_at),
                closed_by: row.closed_by.clone(),
                late_since: figures(row.late_since),
                corrections: row.corrections.map(figures),
            },
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
        let encode = |json: &str| {
            let named = format!(r#"["/v1/list",{json}]"#);
            base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(named)
        };
        for (json, is_one) in [
            (r#"{"s":0,"e":3600000000,"g":[null,"S1"],"c":"USD"}"#, true),
            (r#"{"s":0,"e":9223372036854775807,"g":[],"c":"USD"}"#, false),
            (r#"{"s":0,"e":3600000000,"g":[],"c":"usd"}"#, false),
            (r#"{"s":0,"e":3600000000,"g":[],"c":"USD","x":1}"#, false),
            (r#"{"seq":1}"#, false),
        ] {
            let cursor = decode_cursor::<RowCursor>("/v1/list", &encode(json));
            assert_eq!(cursor.is_some(), is_one, "{json}");
        }
    }
}
