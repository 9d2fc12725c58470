//! The recount: what the raw log says, by plain SQL that shares nothing with the engine, beside
//! what the stream wrote. Everything is read in one snapshot.

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use sqlx::postgres::PgRow;
use sqlx::{Connection as _, PgConnection, Postgres, QueryBuilder, Row as _};

use super::error::Doing;
use super::queries::{StoredQuery, find};
use super::recount_sql::{RecountSql, set_aside_sql};
use super::values::{WindowColumns, revenue_from_sql, unreadable};
use super::{Database, DatabaseError};
use crate::domain::{
    EventId, EventTime, GroupKey, OutputMode, QueryName, Totals, Window, WindowKey, WindowSpec,
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
    /// The windows that were asked for.
    pub range: RecountRange,
    /// The moment, by the database's clock.
    pub as_of: DateTime<Utc>,
    /// What the stream wrote; whether each row is final.
    pub stream: Vec<(WindowKey, Totals, bool)>,
    /// What the raw log holds. Of sessions a line is what all matching events together would make,
    /// counted or not: every session of the stream lies in just one.
    pub recount: Vec<(WindowKey, Recount)>,
    /// The late events of each window that the recount counts, with their ids.
    pub late: Vec<(WindowKey, Totals, Vec<EventId>)>,
    /// What is counted in state and not written yet; only in append mode.
    pub open: Vec<(WindowKey, Totals)>,
    /// Events that are set aside: in quarantine, or out of the log because the engine could not
    /// process them.
    pub quarantined: Vec<(WindowKey, Totals)>,
}

impl ReconciliationSnapshot {
    /// Leaves out, on both sides, what is of other groups than those to `keep`.
    pub fn retain_groups(&mut self, keep: impl Fn(&GroupKey) -> bool) {
        let keep = |key: &WindowKey| keep(&key.group);
        self.stream.retain(|(key, ..)| keep(key));
        self.recount.retain(|(key, _)| keep(key));
        self.late.retain(|(key, ..)| keep(key));
        self.open.retain(|(key, _)| keep(key));
        self.quarantined.retain(|(key, _)| keep(key));
    }
}

/// The raw log's side of one window. An event has two verdicts: the recount counts the first of each
/// key of the duplicates rule in the order of the log, the stream what it read and did not drop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recount {
    /// Every event that the recount counts.
    pub all: Totals,
    /// Those of them that the query has not read yet.
    pub waiting: Totals,
    /// Events that the stream counts and the recount does not.
    pub repeats: Totals,
    /// Events that neither counts.
    pub duplicates: Totals,
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
        let mut reader = self.reader().await?;
        let mut transaction = reader
            .begin_with("begin transaction isolation level repeatable read, read only")
            .await
            .doing("begin a reconciliation")?;
        let conn = &mut *transaction;
        let query = find(conn, name, false).await?;
        let as_of = sqlx::query_scalar("select now()")
            .fetch_one(&mut *conn)
            .await
            .doing("read the clock")?;
        // A session may begin before the range and its line with it, so all of them are read.
        let is_session = matches!(query.spec.window, WindowSpec::Session { .. });
        let read = if is_session { RecountRange::default() } else { range };
        let recounted = recount(conn, &query, read).await?;
        let late = match has_verdicts(&query) {
            true => recounted.late,
            false => late_events(conn, query.query_id, read).await?,
        };
        let snapshot = ReconciliationSnapshot {
            as_of,
            stream: stream_rows(conn, query.query_id, read).await?,
            recount: recounted.lines,
            late,
            open: open_windows(conn, &query, read).await?,
            quarantined: set_aside(conn, &query, read).await?,
            query,
            range,
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
    if query.spec.output_mode != OutputMode::Append {
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
            Ok((key, totals, event_ids(row, "event_ids")?))
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

/// Whether the recount's pass itself tells what the stream made of each event; else the ledger does.
fn has_verdicts(query: &StoredQuery) -> bool {
    !query.spec.deduplicate.is_empty() || matches!(query.spec.window, WindowSpec::Session { .. })
}

/// What one pass over the raw log found.
#[derive(Debug, Default)]
struct Recounted {
    lines: Vec<(WindowKey, Recount)>,
    late: Vec<(WindowKey, Totals, Vec<EventId>)>,
}

/// Counts the raw log by window, currency and group.
async fn recount(
    conn: &mut PgConnection,
    query: &StoredQuery,
    range: RecountRange,
) -> Result<Recounted, DatabaseError> {
    let mut select = RecountSql::new(query, range).select();
    let rows = select.build().fetch_all(conn).await.doing("recount the raw log")?;
    let with_verdicts = has_verdicts(query);
    let mut recounted = Recounted::default();
    for row in &rows {
        let key = window_key(row, query)?;
        let mut line = Recount {
            all: totals(row, "orders", "revenue")?,
            waiting: totals(row, "waiting_orders", "waiting_revenue")?,
            ..Recount::default()
        };
        if with_verdicts {
            line.repeats = totals(row, "repeated_orders", "repeated_revenue")?;
            line.duplicates = totals(row, "duplicate_orders", "duplicate_revenue")?;
            let late = totals(row, "late_orders", "late_revenue")?;
            if late != Totals::ZERO {
                recounted.late.push((key.clone(), late, event_ids(row, "late_event_ids")?));
            }
        }
        recounted.lines.push((key, line));
    }
    Ok(recounted)
}

/// Events that match the query and are in no log that it could read.
async fn set_aside(
    conn: &mut PgConnection,
    query: &StoredQuery,
    range: RecountRange,
) -> Result<Vec<(WindowKey, Totals)>, DatabaseError> {
    let mut select = set_aside_sql(query, range);
    let rows = select.build().fetch_all(conn).await.doing("count what is in quarantine")?;
    rows.iter()
        .map(|row| Ok((window_key(row, query)?, totals(row, "orders", "revenue")?)))
        .collect()
}

fn window_key(row: &PgRow, query: &StoredQuery) -> Result<WindowKey, DatabaseError> {
    let window = Window {
        start: EventTime::from_utc(column(row, "window_start")?),
        end: EventTime::from_utc(column(row, "window_end")?),
    };
    let currency: String = column(row, "currency")?;
    let currency = currency.parse().map_err(|error| unreadable("currency", error))?;
    let group = (0..query.spec.group_by.len())
        .map(|index| column(row, format!("group_{index}").as_str()))
        .collect::<Result<_, _>>()?;
    Ok(WindowKey { window, currency, group: GroupKey(group) })
}

fn event_ids(row: &PgRow, name: &str) -> Result<Vec<EventId>, DatabaseError> {
    let ids: Vec<String> = column(row, name)?;
    let ids = ids.into_iter().map(EventId::try_from);
    ids.collect::<Result<_, _>>().map_err(|error| unreadable("event_id", error))
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
