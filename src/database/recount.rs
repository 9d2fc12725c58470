//! The recount: what the raw log says, by plain SQL that shares nothing with the engine, beside
//! what the stream wrote. Everything is read in one snapshot, now or as of an earlier moment.
//!
//! A row that cannot be read, whoever damaged it, becomes a finding; the report goes on.

use chrono::{DateTime, Utc};
use futures_util::{StreamExt as _, TryStreamExt as _};
use sqlx::postgres::PgRow;
use sqlx::{Connection as _, PgConnection, Postgres, QueryBuilder};

use super::as_of::{AsOf, find_as_of, rows_sql, settle};
use super::error::Doing;
use super::findings::{Finding, Findings};
use super::ledger_sql::{ledger_sql, range_sql};
use super::queries::{StoredQuery, find};
use super::recount_lines::{column, columns, event_ids, note_strays, recount, set_aside};
use super::values::{WindowColumns, revenue_from_sql};
use super::{Database, DatabaseError};
use crate::domain::{EventId, EventTime, Money, QueryName, Totals, WindowKey, WindowSpec};

/// The most windows of a report on tumbling or sliding windows: a year of hours for 57 stores. Each takes
/// about a kilobyte while the report is made. Sessions are all read for any of them.
const WINDOWS_MAX: usize = 500_000;

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
    /// The late events of each window that the recount counts and no correction holds, with their
    /// ids.
    pub late: Vec<(WindowKey, Totals, Vec<EventId>)>,
    /// What corrections add to each window.
    pub corrections: Vec<(WindowKey, Totals)>,
    /// What is counted in state: in append mode not written yet, in the others what the rows of windows
    /// that are not final say. Nothing as of an earlier moment: that state is gone, and what it held
    /// follows from the rest.
    pub open: Option<Vec<(WindowKey, Totals)>>,
    /// Events that are set aside: in quarantine, or out of the log because the engine could not
    /// process them.
    pub quarantined: Vec<(WindowKey, Totals)>,
    /// What was met and cannot be.
    pub findings: Vec<Finding>,
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

/// What every part of a snapshot is read for.
#[derive(Debug)]
pub(super) struct Asked<'query> {
    pub(super) query: &'query StoredQuery,
    pub(super) range: RecountRange,
    pub(super) as_of: Option<AsOf>,
}

/// Fetches a row for each window, unless they are more than a report may have; then the rest is not read.
///
/// A `limit` would say so too, and lead the planner to sort the log instead of hashing it.
pub(super) async fn fetch_windows(
    conn: &mut PgConnection,
    asked: &Asked<'_>,
    mut select: QueryBuilder<Postgres>,
    doing: &'static str,
) -> Result<Vec<PgRow>, DatabaseError> {
    let is_session = matches!(asked.query.spec.window, WindowSpec::Session { .. });
    let max = if is_session { usize::MAX } else { WINDOWS_MAX };
    let rows = select.build().fetch(conn).take(max.saturating_add(1));
    let rows: Vec<PgRow> = rows.try_collect().await.doing(doing)?;
    if rows.len() > max { Err(DatabaseError::TooManyWindows { max }) } else { Ok(rows) }
}

impl Database {
    /// Reads both sides in one repeatable-read snapshot: as they stand now, or as they stood at a moment,
    /// which comes out the same whenever it is asked for.
    ///
    /// # Errors
    /// [`DatabaseError::NoSuchQuery`], [`DatabaseError::NotYet`], [`DatabaseError::BeforeHistory`],
    /// [`DatabaseError::TooManyWindows`], [`DatabaseError::Unreadable`] or [`DatabaseError::Failed`].
    pub async fn reconciliation_snapshot(
        &self,
        name: &QueryName,
        range: RecountRange,
        moment: Option<EventTime>,
    ) -> Result<ReconciliationSnapshot, DatabaseError> {
        let mut reader = self.reader().await?;
        if let Some(moment) = moment {
            settle(&mut reader, name, moment).await?;
        }
        let mut transaction = reader
            .begin_with("begin transaction isolation level repeatable read, read only")
            .await
            .doing("begin a reconciliation")?;
        let conn = &mut *transaction;
        let (query, as_of) = match moment {
            Some(moment) => {
                find_as_of(conn, name, moment).await.map(|(query, as_of)| (query, Some(as_of)))?
            }
            None => (find(conn, name, false).await?, None),
        };
        let now = sqlx::query_scalar("select now()")
            .fetch_one(&mut *conn)
            .await
            .doing("read the clock")?;
        // A session may begin before the range and its line with it, so all of them are read.
        let is_session = matches!(query.spec.window, WindowSpec::Session { .. });
        let read = if is_session { RecountRange::default() } else { range };
        let asked = Asked { query: &query, range: read, as_of };
        let mut findings = Findings::default();
        let recounted = recount(conn, &asked, &mut findings).await?;
        let late = match recounted.late {
            Some(late) => late,
            None => late_events(conn, &asked, &mut findings).await?,
        };
        check_corrections(conn, &asked, &mut findings).await?;
        let snapshot = ReconciliationSnapshot {
            as_of: as_of.map_or(now, |as_of| as_of.moment().to_utc()),
            stream: stream_rows(conn, &asked, &mut findings).await?,
            recount: recounted.lines,
            late,
            corrections: corrections(conn, &asked, &mut findings).await?,
            open: open_windows(conn, &asked, &mut findings).await?,
            quarantined: set_aside(conn, &asked, &mut findings).await?,
            findings: findings.0,
            query,
            range,
        };
        transaction.commit().await.doing("finish a reconciliation")?;
        Ok(snapshot)
    }
}

async fn stream_rows(
    conn: &mut PgConnection,
    asked: &Asked<'_>,
    findings: &mut Findings,
) -> Result<Vec<(WindowKey, Totals, bool)>, DatabaseError> {
    let mut select = QueryBuilder::<Postgres>::new(format!(
        "select *, closed_by is not null as is_final from {}",
        rows_sql(asked.query, asked.as_of)
    ));
    push_query_and_range(&mut select, asked);
    let rows = fetch_windows(conn, asked, select, "read what the stream wrote").await?;
    let mut stream = Vec::new();
    for row in &rows {
        let read = columns::<WindowColumns>(row).and_then(|columns| columns.read());
        let Some((key, totals)) = findings.readable("window_rows", read) else { continue };
        let batch_id: i64 = column(row, "batch_id")?;
        if batch_id >= asked.query.next_batch_id.get() {
            let detail =
                format!("the stream's row names batch {batch_id}, which was never committed");
            findings.note(Some(key.clone()), detail);
        }
        stream.push((key, totals, column(row, "is_final")?));
    }
    Ok(stream)
}

async fn open_windows(
    conn: &mut PgConnection,
    asked: &Asked<'_>,
    findings: &mut Findings,
) -> Result<Option<Vec<(WindowKey, Totals)>>, DatabaseError> {
    if asked.as_of.is_some() {
        return Ok(None);
    }
    let mut select = QueryBuilder::<Postgres>::new("select * from window_state");
    push_query_and_range(&mut select, asked);
    let rows = select.build().fetch_all(conn).await.doing("read the open windows")?;
    let read = rows.iter().map(|row| columns::<WindowColumns>(row)?.read());
    Ok(Some(read.filter_map(|read| findings.readable("window_state", read)).collect()))
}

/// The ledger's late entries that no correction holds, with the money that the ledger says: changed
/// in the log since, it does not add up any more.
async fn late_events(
    conn: &mut PgConnection,
    asked: &Asked<'_>,
    findings: &mut Findings,
) -> Result<Vec<(WindowKey, Totals, Vec<EventId>)>, DatabaseError> {
    let ledger = ledger_sql(asked.query, asked.range, asked.as_of);
    let mut select = QueryBuilder::<Postgres>::new(format!(
        "with {ledger} select window_start, window_end, ledger.currency, group_keys, count(*) as orders,
             sum(ledger.amount) as revenue,
             array_agg(coalesce(event_id, 'seq ' || seq) order by seq) as event_ids,
             array_agg('seq ' || seq order by seq) filter (where event_id is null) as strays,
             array_agg('seq ' || seq order by seq) filter (where reason <> 'late') as odd
         from ledger left join raw_events using (seq) where correction is null
         group by window_start, window_end, ledger.currency, group_keys"
    ));
    let rows = select.build().fetch_all(conn).await.doing("read the late events")?;
    let mut late = Vec::new();
    for row in &rows {
        let read = columns::<WindowColumns>(row).and_then(|columns| columns.read());
        let Some((key, totals)) = findings.readable("dropped_events", read) else { continue };
        if column::<Option<Vec<String>>>(row, "strays")?.is_some() {
            note_strays(&key, &event_ids(row, "strays")?, findings);
        }
        if column::<Option<Vec<String>>>(row, "odd")?.is_some() {
            let detail = "the ledger has entries for another reason than lateness, in a query without a \
                          duplicates rule";
            findings.note(Some(key.clone()), detail.to_owned());
        }
        late.push((key, totals, event_ids(row, "event_ids")?));
    }
    Ok(late)
}

async fn corrections(
    conn: &mut PgConnection,
    asked: &Asked<'_>,
    findings: &mut Findings,
) -> Result<Vec<(WindowKey, Totals)>, DatabaseError> {
    let mut select = QueryBuilder::<Postgres>::new(
        "select window_start, window_end, currency, group_keys, sum(orders)::bigint as orders,
             sum(revenue) as revenue from corrections",
    );
    push_query_and_range(&mut select, asked);
    if let Some(as_of) = asked.as_of {
        select.push(format!(" and booked_at <= {}", as_of.literal()));
    }
    select.push(" group by window_start, window_end, currency, group_keys");
    let rows = select.build().fetch_all(conn).await.doing("read the corrections")?;
    let read = rows.iter().map(|row| columns::<WindowColumns>(row)?.read());
    Ok(read.filter_map(|read| findings.readable("corrections", read)).collect())
}

/// Holds every correction against the entries of the ledger that it books: the money of a booked event is
/// in no other part of the report.
async fn check_corrections(
    conn: &mut PgConnection,
    asked: &Asked<'_>,
    findings: &mut Findings,
) -> Result<(), DatabaseError> {
    let mut select = QueryBuilder::<Postgres>::new(
        "select * from (select corrections.*, held.orders as held_orders, held.revenue as held_revenue
         from corrections cross join lateral (
             select count(*) as orders, coalesce(sum(amount), 0) as revenue
             from corrected_events corrected
                 join dropped_events using (query_id, seq, window_start, window_end)
             where corrected.query_id = corrections.query_id and corrected.number = corrections.number
                 and reason = 'late' and dropped_events.currency = corrections.currency
                 and dropped_events.group_keys = corrections.group_keys) held) checked",
    );
    push_query_and_range(&mut select, asked);
    if let Some(as_of) = asked.as_of {
        select.push(format!(" and booked_at <= {}", as_of.literal()));
    }
    select.push(
        " and (orders, revenue) is distinct from (held_orders, held_revenue) order by number",
    );
    let rows = select.build().fetch_all(conn).await.doing("check the corrections")?;
    for row in &rows {
        let read = columns::<WindowColumns>(row).and_then(|columns| columns.read());
        let Some((key, booked)) = findings.readable("corrections", read) else { continue };
        let number: i64 = column(row, "number")?;
        let held = Totals {
            orders: column(row, "held_orders")?,
            revenue: revenue_from_sql(column(row, "held_revenue")?),
        };
        let money = |totals: Totals| Money { revenue: totals.revenue, currency: key.currency };
        let detail = format!(
            "correction {number} does not add up: it books {} orders and {}, the ledger entries that it holds \
             are {} and {}",
            booked.orders,
            money(booked),
            held.orders,
            money(held)
        );
        findings.note(Some(key), detail);
    }
    Ok(())
}

fn push_query_and_range(select: &mut QueryBuilder<Postgres>, asked: &Asked<'_>) {
    select.push(" where query_id = ").push_bind(asked.query.query_id);
    select.push(range_sql(asked.range, ""));
}
