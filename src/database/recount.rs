//! The recount: what the raw log says, by plain SQL that shares nothing with the engine, beside
//! what the stream wrote. Everything is read in one snapshot.

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Postgres, QueryBuilder, Row as _};

use super::error::Doing;
use super::queries::{StoredQuery, find};
use super::values::{WindowColumns, revenue_from_sql, unreadable};
use super::{Database, DatabaseError};
use crate::domain::{
    EventField, EventId, EventTime, GroupKey, QueryName, Span, Totals, Window, WindowKey,
    WindowSpec,
};

/// Which windows to recount: those that start in `[from, to)`.
#[derive(Debug, Clone, Copy, Default)]
pub struct RecountRange {
    /// The first start.
    pub from: Option<EventTime>,
    /// The first start no longer meant.
    pub to: Option<EventTime>,
}

/// Both sides of a reconciliation, as of one moment.
#[derive(Debug, Clone)]
pub struct ReconciliationSnapshot {
    /// The query.
    pub query: StoredQuery,
    /// The moment, by the database's clock.
    pub as_of: DateTime<Utc>,
    /// What the stream wrote; whether each row is final.
    pub stream: Vec<(WindowKey, Totals, bool)>,
    /// What the raw log holds, whole, and the part of it that the query has not read yet.
    pub recount: Vec<(WindowKey, Recount)>,
    /// The late events of each window, with their ids.
    pub late: Vec<(WindowKey, Totals, Vec<EventId>)>,
    /// What is counted in state and not written yet; only in append mode.
    pub open: Vec<(WindowKey, Totals)>,
}

/// The raw log's side of one window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recount {
    /// Every matching event since the query's start.
    pub all: Totals,
    /// Those that the query has not read yet.
    pub waiting: Totals,
}

impl Database {
    /// Reads both sides in one repeatable-read snapshot.
    ///
    /// # Errors
    /// [`DatabaseError::NoSuchQuery`], [`DatabaseError::Unreadable`] or [`DatabaseError::Failed`].
    pub async fn reconciliation_snapshot(
        &self,
        name: &QueryName,
        range: RecountRange,
    ) -> Result<ReconciliationSnapshot, DatabaseError> {
        let mut transaction = self
            .reads
            .begin_with("begin transaction isolation level repeatable read, read only")
            .await
            .doing("begin a reconciliation")?;
        let conn = &mut *transaction;
        let query = find(conn, name, false).await?;
        let as_of = sqlx::query_scalar("select now()")
            .fetch_one(&mut *conn)
            .await
            .doing("read the clock")?;
        let snapshot = ReconciliationSnapshot {
            as_of,
            stream: stream_rows(conn, query.query_id, range).await?,
            recount: recount(conn, &query, range).await?,
            late: late_events(conn, query.query_id, range).await?,
            open: open_windows(conn, &query, range).await?,
            query,
        };
        transaction.commit().await.doing("finish a reconciliation")?;
        Ok(snapshot)
    }
}

async fn stream_rows(
    conn: &mut PgConnection,
    query_id: i64,
    range: RecountRange,
) -> Result<Vec<(WindowKey, Totals, bool)>, DatabaseError> {
    let mut select = QueryBuilder::<Postgres>::new(
        "select *, closed_by is not null as is_final from window_rows",
    );
    push_query_and_range(&mut select, query_id, range);
    let rows = select.build().fetch_all(conn).await.doing("read what the stream wrote")?;
    rows.iter()
        .map(|row| {
            let (key, totals) = columns::<WindowColumns>(row)?.read()?;
            Ok((key, totals, column(row, "is_final")?))
        })
        .collect()
}

async fn open_windows(
    conn: &mut PgConnection,
    query: &StoredQuery,
    range: RecountRange,
) -> Result<Vec<(WindowKey, Totals)>, DatabaseError> {
    if query.spec.output_mode != crate::domain::OutputMode::Append {
        return Ok(Vec::new());
    }
    let mut select = QueryBuilder::<Postgres>::new("select * from window_state");
    push_query_and_range(&mut select, query.query_id, range);
    let rows: Vec<WindowColumns> =
        select.build_query_as().fetch_all(conn).await.doing("read the open windows")?;
    rows.iter().map(WindowColumns::read).collect()
}

/// The ledger's late entries; their money is that of the raw log.
async fn late_events(
    conn: &mut PgConnection,
    query_id: i64,
    range: RecountRange,
) -> Result<Vec<(WindowKey, Totals, Vec<EventId>)>, DatabaseError> {
    let mut select = QueryBuilder::<Postgres>::new(
        "select window_start, window_end, dropped_events.currency, group_keys, count(*) as orders,
             sum(raw_events.amount) as revenue, array_agg(event_id order by seq) as event_ids
         from dropped_events join raw_events using (seq)",
    );
    push_query_and_range(&mut select, query_id, range);
    select.push(" and reason = 'late' group by window_start, window_end, dropped_events.currency, group_keys");
    let rows = select.build().fetch_all(conn).await.doing("read the late events")?;
    rows.iter()
        .map(|row| {
            let (key, totals) = columns::<WindowColumns>(row)?.read()?;
            let ids: Vec<String> = column(row, "event_ids")?;
            let ids = ids
                .into_iter()
                .map(|id| id.try_into().map_err(|error| unreadable("event_id", error)));
            Ok((key, totals, ids.collect::<Result<_, _>>()?))
        })
        .collect()
}

fn push_query_and_range(select: &mut QueryBuilder<Postgres>, query_id: i64, range: RecountRange) {
    select.push(" where query_id = ").push_bind(query_id);
    if let Some(from) = range.from {
        select.push(" and window_start >= ").push_bind(from.to_utc());
    }
    if let Some(to) = range.to {
        select.push(" and window_start < ").push_bind(to.to_utc());
    }
}

/// Counts the raw log by window, currency and group.
async fn recount(
    conn: &mut PgConnection,
    query: &StoredQuery,
    range: RecountRange,
) -> Result<Vec<(WindowKey, Recount)>, DatabaseError> {
    let WindowSpec::Tumbling { size, offset } = query.spec.window;
    let mut select = recount_select(query, size, offset, range);
    let rows = select.build().fetch_all(conn).await.doing("recount the raw log")?;
    let groups = query.spec.group_by.len();
    rows.iter()
        .map(|row| {
            let start = EventTime::from_utc(column(row, "window_start")?);
            let window = Window { start, end: start.plus(size) };
            let currency: String = column(row, "currency")?;
            let currency = currency.parse().map_err(|error| unreadable("currency", error))?;
            let group = (0..groups)
                .map(|index| column(row, format!("group_{index}").as_str()))
                .collect::<Result<_, _>>()?;
            let key = WindowKey { window, currency, group: GroupKey(group) };
            let all = totals(row, "orders", "revenue")?;
            let waiting = totals(row, "waiting_orders", "waiting_revenue")?;
            Ok((key, Recount { all, waiting }))
        })
        .collect()
}

fn recount_select(
    query: &StoredQuery,
    size: Span,
    offset: Span,
    range: RecountRange,
) -> QueryBuilder<Postgres> {
    let spec = &query.spec;
    // An origin before every event, so that Postgres only ever bins forwards.
    let origin = EventTime::EARLIEST.floor_to(size, offset);
    let mut select = QueryBuilder::<Postgres>::new("select date_bin(");
    select
        .push_bind(i64::max(size.as_micros(), 1))
        .push(" * interval '1 microsecond', event_time, ");
    select.push_bind(origin.to_utc()).push(") as window_start, currency");
    for (index, field) in spec.group_by.iter().enumerate() {
        select.push(", ");
        push_field(&mut select, field);
        select.push(" as group_").push(index);
    }
    let position = query.position.get();
    select.push(", count(*) as orders, sum(amount) as revenue, count(*) filter (where seq > ");
    select
        .push_bind(position)
        .push(") as waiting_orders, coalesce(sum(amount) filter (where seq > ");
    select
        .push_bind(position)
        .push("), 0) as waiting_revenue from raw_events where kind = 'event' and seq > ");
    select.push_bind(query.start_seq.get());
    for (field, values) in &spec.filter.0 {
        select.push(" and ");
        push_field(&mut select, field);
        select.push(" = any(").push_bind(values.clone()).push(")");
    }
    // A window starts in the range when its first boundary at or after each bound says so.
    if let Some(from) = range.from {
        select.push(" and event_time >= ").push_bind(ceiling(from, size, offset).to_utc());
    }
    if let Some(to) = range.to {
        select.push(" and event_time < ").push_bind(ceiling(to, size, offset).to_utc());
    }
    select.push(" group by window_start, currency");
    for index in 0..spec.group_by.len() {
        select.push(", group_").push(index);
    }
    select
}

/// The first window boundary at or after `time`.
fn ceiling(time: EventTime, size: Span, offset: Span) -> EventTime {
    let floor = time.floor_to(size, offset);
    if floor == time { time } else { floor.plus(size) }
}

fn push_field(select: &mut QueryBuilder<Postgres>, field: &EventField) {
    match field {
        EventField::StoreId => select.push("store_id"),
        EventField::TillId => select.push("till_id"),
        EventField::CustomerId => select.push("customer_id"),
        EventField::Status => select.push("status"),
        EventField::Attribute(name) => select.push("attributes ->> ").push_bind(name.clone()),
    };
}

fn totals(row: &PgRow, orders: &str, revenue: &str) -> Result<Totals, DatabaseError> {
    let revenue: Decimal = column(row, revenue)?;
    Ok(Totals { orders: column(row, orders)?, revenue: revenue_from_sql(revenue) })
}

fn column<'row, T>(row: &'row PgRow, name: &str) -> Result<T, DatabaseError>
where
    T: sqlx::Decode<'row, Postgres> + sqlx::Type<Postgres>,
{
    row.try_get(name).doing("read a column")
}

fn columns<'row, T: sqlx::FromRow<'row, PgRow>>(row: &'row PgRow) -> Result<T, DatabaseError> {
    T::from_row(row).doing("read a row")
}
