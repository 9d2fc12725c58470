//! Shapes that several answers share.

use std::collections::BTreeMap;

use axum::Json;
use axum::http::{HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use super::params::encode_cursor;
use crate::domain::{Currency, EventField, GroupKey, Money, Totals, Window, WindowKey};

/// A count of orders and the exact sum of their amounts.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Totals)]
pub(super) struct TotalsBody {
    /// How many events; negative only in a difference.
    #[schema(example = 3)]
    orders: i64,
    /// A decimal string with at least the currency's usual digits.
    #[schema(example = "68.50")]
    revenue: String,
}

impl TotalsBody {
    pub(super) fn of(totals: Totals, currency: Currency) -> Self {
        Self { orders: totals.orders, revenue: money(totals, currency) }
    }
}

/// The revenue of `totals` as a decimal string.
pub(super) fn money(totals: Totals, currency: Currency) -> String {
    Money { revenue: totals.revenue, currency }.to_string()
}

/// A half-open window of event time.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Window)]
pub(super) struct WindowBody {
    /// The first moment inside.
    #[schema(example = "2026-10-01T09:00:00Z")]
    start: String,
    /// The first moment after.
    #[schema(example = "2026-10-01T10:00:00Z")]
    end: String,
}

impl From<&Window> for WindowBody {
    fn from(window: &Window) -> Self {
        Self { start: window.start.to_string(), end: window.end.to_string() }
    }
}

/// Group-by values under the names of their fields, as members of a row.
pub(super) type Groups = BTreeMap<String, Option<String>>;

/// The group-by values of `key`.
pub(super) fn groups(fields: &[EventField], key: &GroupKey) -> Groups {
    fields.iter().map(EventField::to_string).zip(key.0.iter().cloned()).collect()
}

/// A moment by the database's clock, with microseconds.
pub(super) fn moment(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// A row's key as a cursor: start, end, group and currency.
pub(super) type WindowCursor = (i64, i64, Vec<Option<String>>, String);

/// The cursor that goes on after `key`.
pub(super) fn window_cursor(key: &WindowKey) -> WindowCursor {
    let Window { start, end } = key.window;
    (start.as_micros(), end.as_micros(), key.group.0.clone(), key.currency.code().to_owned())
}

/// One more entry than the page holds says that there is a next page; takes it away and answers
/// the cursor after the last entry that stays.
pub(super) fn cut_page<T, C: Serialize>(
    entries: &mut Vec<T>,
    limit: u32,
    cursor: impl Fn(&T) -> C,
) -> Option<String> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if entries.len() <= limit {
        return None;
    }
    entries.truncate(limit);
    entries.last().map(|last| encode_cursor(&cursor(last)))
}

/// A page of a list, with a `Link` to the next one.
pub(super) fn page(uri: &Uri, next_cursor: Option<&str>, body: impl Serialize) -> Response {
    let mut response = Json(body).into_response();
    if let Some(link) = next_cursor.and_then(|cursor| next_link(uri, cursor)) {
        response.headers_mut().insert(header::LINK, link);
    }
    response
}

fn next_link(uri: &Uri, cursor: &str) -> Option<HeaderValue> {
    let others = uri.query().unwrap_or_default().split('&');
    let mut pairs: Vec<&str> =
        others.filter(|pair| !pair.is_empty() && !pair.starts_with("cursor=")).collect();
    let cursor = format!("cursor={cursor}");
    pairs.push(&cursor);
    HeaderValue::from_str(&format!("<{}?{}>; rel=\"next\"", uri.path(), pairs.join("&"))).ok()
}
