//! Booking corrections, in one transaction.
//!
//! Invariants:
//! * The query's row is locked throughout, so bookings of one query take turns, and none runs while a
//!   batch commits.
//! * An event stands in one correction of a window at most; the key of `corrected_events` keeps it so.
//! * Only what the recount counts and the stream does not is booked: with a duplicates rule the first
//!   event of each key.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use serde_json::{Map, Value, json};
use sqlx::PgConnection;

use super::audit::{AuditAction, AuditFact, audit_insert};
use super::error::Doing;
use super::queries::{StoredQuery, find};
use super::recount::RecountRange;
use super::recount_sql::RecountSql;
use super::values::{WindowColumns, WindowKeyArrays, revenue_from_sql, revenue_to_sql};
use super::{Database, DatabaseError};
use crate::domain::{
    Currency, KeyId, Money, Note, QueryName, StoreReach, Totals, Window, WindowKey,
};

/// Which windows to book.
#[derive(Debug, Clone)]
pub enum BookingWindows {
    /// Every final window with late events in no correction.
    All,
    /// These.
    Some(Vec<BookingWindow>),
}

/// A window to book, in all its groups and currencies or in some.
#[derive(Debug, Clone)]
pub struct BookingWindow {
    /// The window.
    pub window: Window,
    /// Only this currency.
    pub currency: Option<Currency>,
    /// Only these values of the group key, by their places.
    pub group: Vec<(usize, Option<String>)>,
}

impl BookingWindow {
    fn holds(&self, key: &WindowKey) -> bool {
        self.window == key.window
            && self.currency.is_none_or(|currency| currency == key.currency)
            && self.group.iter().all(|(index, value)| key.group.0.get(*index) == Some(value))
    }
}

impl BookingWindows {
    fn hold(&self, key: &WindowKey) -> bool {
        match self {
            Self::All => true,
            Self::Some(windows) => windows.iter().any(|window| window.holds(key)),
        }
    }
}

/// What somebody wants to book.
#[derive(Debug, Clone)]
pub struct Booking {
    /// Which windows.
    pub windows: BookingWindows,
    /// Of these stores only.
    pub reach: StoreReach,
    /// Why.
    pub note: Note,
    /// Who.
    pub booked_by: Note,
}

/// What a booking did.
#[derive(Debug, Clone, Default)]
pub struct Booked {
    /// The numbers of its first and last correction; nothing when there was nothing to book.
    pub numbers: Option<(i64, i64)>,
    /// What it added, per currency.
    pub totals: BTreeMap<Currency, Totals>,
}

/// The late events of one window and group.
#[derive(Debug, Default)]
struct Late {
    totals: Totals,
    /// Each with the window of its entry in the ledger.
    entries: Vec<(i64, DateTime<Utc>, DateTime<Utc>)>,
}

#[derive(Debug, sqlx::FromRow)]
struct LateColumns {
    seq: i64,
    missed_start: DateTime<Utc>,
    missed_end: DateTime<Utc>,
    #[sqlx(flatten)]
    window: WindowColumns,
}

impl Database {
    /// Books the late events of final windows that no correction holds yet. Booking the same again
    /// books nothing. Windows that are not final stay out.
    ///
    /// # Errors
    /// [`DatabaseError::NoSuchQuery`], [`DatabaseError::Unreadable`] or [`DatabaseError::Failed`].
    pub async fn corrections_book(
        &self,
        name: &QueryName,
        booking: &Booking,
        key_id: Option<&KeyId>,
    ) -> Result<Booked, DatabaseError> {
        let mut transaction = self.engine.begin().await.doing("begin a booking")?;
        let conn = &mut *transaction;
        let query = find(conn, name, true).await?;
        let late = bookable(conn, &query, booking).await?;
        let Some(first) = insert(conn, &query, booking, &late).await? else {
            return Ok(Booked::default());
        };
        let count = i64::try_from(late.len()).unwrap_or(i64::MAX);
        let last = first.saturating_add(count).saturating_sub(1);
        let mut totals: BTreeMap<Currency, Totals> = BTreeMap::new();
        for (key, late) in &late {
            let sum = totals.entry(key.currency).or_default();
            *sum = sum.plus(late.totals);
        }
        let booked = Booked { numbers: Some((first, last)), totals };
        audit_insert(conn, &fact(name, booking, &booked, key_id)).await?;
        transaction.commit().await.doing("commit a booking")?;
        Ok(booked)
    }
}

fn fact(name: &QueryName, booking: &Booking, booked: &Booked, key_id: Option<&KeyId>) -> AuditFact {
    let totals = booked.totals.iter().map(|(currency, totals)| {
        let money = Money { revenue: totals.revenue, currency: *currency }.to_string();
        (currency.code().to_owned(), json!({ "orders": totals.orders, "revenue": money }))
    });
    let totals: Map<String, Value> = totals.collect();
    let numbers = booked.numbers.map(|(first, last)| json!({ "first": first, "last": last }));
    AuditFact {
        action: AuditAction::CorrectionsBooked,
        query: Some(name.clone()),
        event_id: None,
        done_by: Some(booking.booked_by.to_string()),
        key_id: key_id.cloned(),
        note: Some(booking.note.to_string()),
        details: json!({ "numbers": numbers, "totals": totals }),
    }
}

/// The late events to book, by window, group and currency.
async fn bookable(
    conn: &mut PgConnection,
    query: &StoredQuery,
    booking: &Booking,
) -> Result<BTreeMap<WindowKey, Late>, DatabaseError> {
    let mut select = RecountSql::new(query, RecountRange::default(), None).select_bookable();
    let rows: Vec<LateColumns> =
        select.build_query_as().fetch_all(conn).await.doing("find the late events to book")?;
    let mut late: BTreeMap<WindowKey, Late> = BTreeMap::new();
    for row in rows {
        let (key, totals) = row.window.read()?;
        let is_closed = key.window.is_closed_at(query.watermarks.current);
        let is_own = booking.reach.holds_group(&query.spec.group_by, &key.group);
        if is_closed && is_own && booking.windows.hold(&key) {
            let of_key = late.entry(key).or_default();
            of_key.totals = of_key.totals.plus(totals);
            of_key.entries.push((row.seq, row.missed_start, row.missed_end));
        }
    }
    Ok(late)
}

/// Writes the corrections, all at one moment, so that no moment sees a part of them (`as_of`); answers
/// the number of the first.
async fn insert(
    conn: &mut PgConnection,
    query: &StoredQuery,
    booking: &Booking,
    late: &BTreeMap<WindowKey, Late>,
) -> Result<Option<i64>, DatabaseError> {
    if late.is_empty() {
        return Ok(None);
    }
    let first: i64 = sqlx::query_scalar(
        "update queries set next_correction = next_correction + $2 where query_id = $1
         returning next_correction - $2",
    )
    .bind(query.query_id)
    .bind(i64::try_from(late.len()).unwrap_or(i64::MAX))
    .fetch_one(&mut *conn)
    .await
    .doing("draw the numbers of corrections")?;
    let befores = before(conn, query, late).await?;
    let keys = WindowKeyArrays::of(late.keys());
    let revenues: Vec<Decimal> =
        late.values().map(|late| revenue_to_sql(late.totals.revenue)).collect::<Result<_, _>>()?;
    let before_revenues: Vec<Decimal> =
        befores.iter().map(|totals| revenue_to_sql(totals.revenue)).collect::<Result<_, _>>()?;
    sqlx::query(
        "insert into corrections (query_id, note, booked_by, booked_at, number, window_start, window_end,
             currency, group_keys, before_orders, before_revenue, orders, revenue)
         select $1, $2, $3, moment, $4 + nth - 1, window_start, window_end, currency, group_keys,
             before_orders, before_revenue, orders, revenue
         from (select clock_timestamp() as moment) booking, unnest($5::timestamptz[], $6::timestamptz[], $7::text[], $8::text[], $9::bigint[],
             $10::numeric[], $11::bigint[], $12::numeric[]) with ordinality as booked (window_start,
             window_end, currency, group_keys, before_orders, before_revenue, orders, revenue, nth)",
    )
    .bind(query.query_id)
    .bind(booking.note.as_str())
    .bind(booking.booked_by.as_str())
    .bind(first)
    .bind(keys.starts)
    .bind(keys.ends)
    .bind(keys.currencies)
    .bind(keys.groups)
    .bind(befores.iter().map(|totals| totals.orders).collect::<Vec<_>>())
    .bind(before_revenues)
    .bind(late.values().map(|late| late.totals.orders).collect::<Vec<_>>())
    .bind(revenues)
    .execute(&mut *conn)
    .await
    .doing("write corrections")?;
    insert_events(conn, query, first, late).await?;
    Ok(Some(first))
}

/// What each window came to before: its row and the corrections that it has.
async fn before(
    conn: &mut PgConnection,
    query: &StoredQuery,
    late: &BTreeMap<WindowKey, Late>,
) -> Result<Vec<Totals>, DatabaseError> {
    let keys = WindowKeyArrays::of(late.keys());
    let rows: Vec<(i64, Decimal)> = sqlx::query_as(
        "select coalesce(rows.orders, 0) + booked.orders, coalesce(rows.revenue, 0) + booked.revenue
         from unnest($2::timestamptz[], $3::timestamptz[], $4::text[], $5::text[]) with ordinality
             as late (window_start, window_end, currency, group_keys, nth)
         left join window_rows rows on rows.query_id = $1 and rows.window_start = late.window_start
             and rows.window_end = late.window_end and rows.group_keys = late.group_keys
             and rows.currency = late.currency
         cross join lateral (
             select coalesce(sum(orders), 0)::bigint as orders, coalesce(sum(revenue), 0) as revenue
             from corrections where query_id = $1 and window_start = late.window_start
                 and window_end = late.window_end and group_keys = late.group_keys
                 and currency = late.currency
         ) booked
         order by nth",
    )
    .bind(query.query_id)
    .bind(keys.starts)
    .bind(keys.ends)
    .bind(keys.currencies)
    .bind(keys.groups)
    .fetch_all(conn)
    .await
    .doing("read what is corrected")?;
    let totals = rows
        .into_iter()
        .map(|(orders, revenue)| Totals { orders, revenue: revenue_from_sql(revenue) });
    Ok(totals.collect())
}

async fn insert_events(
    conn: &mut PgConnection,
    query: &StoredQuery,
    first: i64,
    late: &BTreeMap<WindowKey, Late>,
) -> Result<(), DatabaseError> {
    let (mut numbers, mut seqs, mut starts, mut ends) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (number, late) in (first..).zip(late.values()) {
        for (seq, start, end) in &late.entries {
            numbers.push(number);
            seqs.push(*seq);
            starts.push(*start);
            ends.push(*end);
        }
    }
    sqlx::query(
        "insert into corrected_events (query_id, number, seq, window_start, window_end)
         select $1, * from unnest($2::bigint[], $3::bigint[], $4::timestamptz[], $5::timestamptz[])",
    )
    .bind(query.query_id)
    .bind(numbers)
    .bind(seqs)
    .bind(starts)
    .bind(ends)
    .execute(conn)
    .await
    .doing("write which events are corrected")?;
    Ok(())
}
