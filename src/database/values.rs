//! Between the words of the domain and the columns of Postgres.

use std::fmt::Display;

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgTypeInfo, PgValueRef};
use sqlx::{Decode, Postgres, QueryBuilder, Type};

use super::DatabaseError;
use super::copy_format::POSTGRES_EPOCH_MICROS;
use crate::domain::{
    Amount, ClosedBy, EventField, EventTime, GroupKey, Revenue, StoreReach, Totals, Watermark,
    Window, WindowKey,
};

/// Decimals of every money column.
const MONEY_SCALE: u32 = 4;

/// An error for a column that does not hold what it must.
pub(super) fn unreadable(what: &'static str, detail: impl Display) -> DatabaseError {
    DatabaseError::Unreadable { what, detail: detail.to_string() }
}

/// An amount as `numeric(18, 4)`.
pub(super) fn amount_to_sql(amount: Amount) -> Decimal {
    Decimal::new(amount.as_ten_thousandths(), MONEY_SCALE)
}

/// An amount from `numeric(18, 4)`.
pub(super) fn amount_from_sql(number: Decimal) -> Result<Amount, DatabaseError> {
    i64::try_from(ten_thousandths(number))
        .ok()
        .and_then(Amount::from_ten_thousandths)
        .ok_or_else(|| unreadable("amount", number))
}

/// A sum as `numeric(38, 4)`.
pub(super) fn revenue_to_sql(revenue: Revenue) -> Result<Decimal, DatabaseError> {
    Decimal::try_from_i128_with_scale(revenue.as_ten_thousandths(), MONEY_SCALE)
        .map_err(|error| unreadable("revenue", error))
}

/// A sum from `numeric`.
pub(super) fn revenue_from_sql(number: Decimal) -> Revenue {
    Revenue::from_ten_thousandths(ten_thousandths(number))
}

fn ten_thousandths(mut number: Decimal) -> i128 {
    number.rescale(MONEY_SCALE);
    number.mantissa()
}

/// A watermark as `timestamptz(3)`.
pub(super) fn watermark_to_sql(watermark: Watermark) -> DateTime<Utc> {
    watermark.as_event_time().to_utc()
}

/// A watermark from `timestamptz(3)`.
pub(super) fn watermark_from_sql(time: DateTime<Utc>) -> Watermark {
    Watermark::from_millis(time.timestamp_millis())
}

/// Group-by values as a JSON array, always written the same way so that equal keys are equal texts.
pub(super) fn group_to_sql(group: &GroupKey) -> String {
    serde_json::Value::from(group.0.clone()).to_string()
}

/// Group-by values from their JSON array.
pub(super) fn group_from_sql(text: &str) -> Result<GroupKey, DatabaseError> {
    serde_json::from_str(text).map(GroupKey).map_err(|error| unreadable("group key", error))
}

/// `and …` for windows of the stores that somebody may see.
pub(super) fn push_reach(
    select: &mut QueryBuilder<Postgres>,
    group_by: &[EventField],
    reach: &StoreReach,
) {
    let Some(ids) = reach.ids() else { return };
    match EventField::StoreId.place_in(group_by) {
        Some(place) => {
            select.push(format!(" and group_keys::jsonb ->> {place} = any ("));
            select.push_bind(owned(&ids)).push(")")
        }
        None => select.push(" and false"),
    };
}

/// `and …` for events of the stores that somebody may see.
pub(super) fn push_event_reach(select: &mut QueryBuilder<Postgres>, reach: &StoreReach) {
    if let Some(ids) = reach.ids() {
        select.push(" and store_id = any (").push_bind(owned(&ids)).push(")");
    }
}

fn owned(ids: &[&str]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}

/// What made a window final, from its word.
pub(super) fn closed_by_from_sql(word: &str) -> Result<ClosedBy, DatabaseError> {
    [ClosedBy::Watermark, ClosedBy::Idle]
        .into_iter()
        .find(|closed_by| closed_by.as_str() == word)
        .ok_or_else(|| unreadable("closed_by", word))
}

/// The name of an attribute as a literal, for the statements that take no parameters.
pub(super) fn attribute_name_to_sql(name: &str) -> String {
    // Backslashes mean themselves: standard_conforming_strings is on in every session of ours.
    format!("'{}'", name.replace('\'', "''"))
}

/// A count for `bigint`.
pub(super) fn count_to_sql(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The bound of a window as `timestamptz`, where nothing but our own care keeps `infinity` out: reading
/// that as a [`DateTime`] panics.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bound(pub(super) EventTime);

impl Type<Postgres> for Bound {
    fn type_info() -> PgTypeInfo {
        <DateTime<Utc> as Type<Postgres>>::type_info()
    }
}

impl<'row> Decode<'row, Postgres> for Bound {
    fn decode(value: PgValueRef<'row>) -> Result<Self, BoxDynError> {
        let micros = <i64 as Decode<Postgres>>::decode(value)?;
        let time = EventTime::from_micros(micros.saturating_add(POSTGRES_EPOCH_MICROS));
        // `infinity` is the end of the numbers.
        if time.to_utc() == DateTime::<Utc>::MAX_UTC {
            return Err("it is no moment".into());
        }
        Ok(Self(time))
    }
}

/// The columns that every table of windows has.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct WindowColumns {
    pub(super) window_start: Bound,
    pub(super) window_end: Bound,
    pub(super) currency: String,
    pub(super) group_keys: String,
    pub(super) orders: i64,
    pub(super) revenue: Decimal,
}

impl WindowColumns {
    /// The key and totals that these columns hold.
    pub(super) fn read(&self) -> Result<(WindowKey, Totals), DatabaseError> {
        let window = Window { start: self.window_start.0, end: self.window_end.0 };
        let currency = self.currency.parse().map_err(|error| unreadable("currency", error))?;
        let group = group_from_sql(&self.group_keys)?;
        let totals = Totals { orders: self.orders, revenue: revenue_from_sql(self.revenue) };
        Ok((WindowKey { window, currency, group }, totals))
    }
}

/// The key columns of many windows, side by side for `unnest`.
#[derive(Debug, Default)]
pub(super) struct WindowKeyArrays {
    pub(super) starts: Vec<DateTime<Utc>>,
    pub(super) ends: Vec<DateTime<Utc>>,
    pub(super) currencies: Vec<&'static str>,
    pub(super) groups: Vec<String>,
}

impl WindowKeyArrays {
    /// The columns of `keys`.
    pub(super) fn of<'key>(keys: impl IntoIterator<Item = &'key WindowKey>) -> Self {
        let mut arrays = Self::default();
        for key in keys {
            arrays.starts.push(key.window.start.to_utc());
            arrays.ends.push(key.window.end.to_utc());
            arrays.currencies.push(key.currency.code());
            arrays.groups.push(group_to_sql(&key.group));
        }
        arrays
    }
}
