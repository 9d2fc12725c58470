//! Reading the lines of a recount, and what is set aside.

use rust_decimal::Decimal;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Postgres, Row as _};

use super::DatabaseError;
use super::error::Doing;
use super::findings::{Finding, Findings};
use super::queries::StoredQuery;
use super::recount::{Asked, Recount, fetch_windows};
use super::recount_sql::{RecountSql, set_aside_sql};
use super::values::{Bound, group_from_sql, revenue_from_sql, unreadable};
use crate::domain::{EventId, EventTime, GroupKey, Totals, Window, WindowKey};

/// What one pass over the raw log found.
#[derive(Debug, Default)]
pub(super) struct Recounted {
    pub(super) lines: Vec<(WindowKey, Recount)>,
    /// Where the pass itself told what the stream made of each event; else the ledger does.
    pub(super) late: Option<Vec<(WindowKey, Totals, Vec<EventId>)>>,
}

/// Counts the raw log by window, currency and group.
pub(super) async fn recount(
    conn: &mut PgConnection,
    asked: &Asked<'_>,
    findings: &mut Findings,
) -> Result<Recounted, DatabaseError> {
    let sql = RecountSql::new(asked.query, asked.range, asked.as_of);
    let with_verdicts = sql.has_verdicts();
    let rows = fetch_windows(conn, asked, sql.select(), "recount the raw log").await?;
    let mut recounted = Recounted::default();
    let mut late = Vec::new();
    for row in &rows {
        if with_verdicts && let Some(keys) = column::<Option<String>>(row, "stray_keys")? {
            if let Some((key, totals, ids)) = findings.readable("dropped_events", stray(row, &keys))
            {
                note_strays(&key, &ids, findings);
                late.push((key, totals, ids));
            }
            continue;
        }
        let key = match window_key(row, asked.query) {
            Ok(key) => key,
            Err(error) => {
                let detail = unreadable_events(conn, row, &error).await?;
                findings.note(None, detail);
                continue;
            }
        };
        let mut line = Recount {
            all: totals(row, "orders", "revenue")?,
            waiting: totals(row, "waiting_orders", "waiting_revenue")?,
            ..Recount::default()
        };
        if with_verdicts {
            line.repeats = totals(row, "repeated_orders", "repeated_revenue")?;
            line.duplicates = totals(row, "duplicate_orders", "duplicate_revenue")?;
            late.extend(late_of(row, &key)?);
            note_odd(row, &key, findings)?;
        }
        recounted.lines.push((key, line));
    }
    recounted.late = with_verdicts.then_some(late);
    Ok(recounted)
}

fn late_of(
    row: &PgRow,
    key: &WindowKey,
) -> Result<Option<(WindowKey, Totals, Vec<EventId>)>, DatabaseError> {
    let late = totals(row, "late_orders", "late_revenue")?;
    if late == Totals::ZERO {
        return Ok(None);
    }
    Ok(Some((key.clone(), late, event_ids(row, "late_event_ids")?)))
}

/// Entries of the ledger for events that do not count in their window: they explain nothing.
fn stray(row: &PgRow, keys: &str) -> Result<(WindowKey, Totals, Vec<EventId>), DatabaseError> {
    let key = key_of(row, group_from_sql(keys)?)?;
    Ok((key, totals(row, "stray_orders", "stray_revenue")?, event_ids(row, "stray_event_ids")?))
}

/// An entry of the ledger that belongs to no event could hide the loss of one that did.
pub(super) fn note_strays(key: &WindowKey, entries: &[EventId], findings: &mut Findings) {
    let entries: Vec<&str> = entries.iter().map(EventId::as_str).collect();
    let detail = format!(
        "the ledger has entries for events that the raw log does not hold here: {}",
        entries.join(", ")
    );
    findings.note(Some(key.clone()), detail);
}

/// The first event of a key cannot be a duplicate.
fn note_odd(row: &PgRow, key: &WindowKey, findings: &mut Findings) -> Result<(), DatabaseError> {
    let ids: Option<Vec<String>> = column(row, "odd_event_ids")?;
    if let Some(ids) = ids {
        let detail = format!(
            "the ledger calls events duplicates that are the first of their keys: {}",
            ids.join(", ")
        );
        findings.note(Some(key.clone()), detail);
    }
    Ok(())
}

/// Says which events of the log cannot be read, the first ten by their ids.
async fn unreadable_events(
    conn: &mut PgConnection,
    row: &PgRow,
    error: &DatabaseError,
) -> Result<String, DatabaseError> {
    let currency: String = column(row, "currency")?;
    let orders: i64 = column(row, "orders")?;
    let ids: Vec<String> = sqlx::query_scalar(
        "select event_id from raw_events where kind = 'event' and currency = $1 order by seq limit 10",
    )
    .bind(&currency)
    .fetch_all(conn)
    .await
    .doing("find the events that cannot be read")?;
    let start = EventTime::from_utc(column(row, "window_start")?);
    Ok(format!(
        "the raw log holds {orders} events of the window from {start} that cannot be counted: {error}; \
         events of this currency: {}",
        ids.join(", ")
    ))
}

/// Events that match the query and are in no log that it could read.
pub(super) async fn set_aside(
    conn: &mut PgConnection,
    asked: &Asked<'_>,
    findings: &mut Findings,
) -> Result<Vec<(WindowKey, Totals)>, DatabaseError> {
    let mut select = set_aside_sql(asked.query, asked.range, asked.as_of);
    let rows = select.build().fetch_all(conn).await.doing("count what is in quarantine")?;
    let mut aside = Vec::new();
    for row in &rows {
        match window_key(row, asked.query) {
            Ok(key) => aside.push((key, totals(row, "orders", "revenue")?)),
            Err(error) => {
                let orders: i64 = column(row, "orders")?;
                let detail = format!("{orders} events that are set aside cannot be read: {error}");
                findings.0.push(Finding { key: None, detail, is_fault: false });
            }
        }
    }
    Ok(aside)
}

fn window_key(row: &PgRow, query: &StoredQuery) -> Result<WindowKey, DatabaseError> {
    let group = (0..query.spec.group_by.len())
        .map(|index| column(row, format!("group_{index}").as_str()))
        .collect::<Result<_, _>>()?;
    key_of(row, GroupKey(group))
}

fn key_of(row: &PgRow, group: GroupKey) -> Result<WindowKey, DatabaseError> {
    let (Bound(start), Bound(end)) = (column(row, "window_start")?, column(row, "window_end")?);
    let window = Window { start, end };
    let currency: String = column(row, "currency")?;
    let currency = currency
        .parse()
        .map_err(|error| unreadable("currency", format_args!("`{currency}` {error}")))?;
    Ok(WindowKey { window, currency, group })
}

pub(super) fn event_ids(row: &PgRow, name: &str) -> Result<Vec<EventId>, DatabaseError> {
    let ids: Vec<String> = column(row, name)?;
    let ids = ids.into_iter().map(EventId::try_from);
    ids.collect::<Result<_, _>>().map_err(|error| unreadable("event_id", error))
}

fn totals(row: &PgRow, orders: &str, revenue: &str) -> Result<Totals, DatabaseError> {
    let revenue: Decimal = column(row, revenue)?;
    Ok(Totals { orders: column(row, orders)?, revenue: revenue_from_sql(revenue) })
}

pub(super) fn column<'row, T>(row: &'row PgRow, name: &str) -> Result<T, DatabaseError>
where
    T: sqlx::Decode<'row, Postgres> + sqlx::Type<Postgres>,
{
    row.try_get(name).doing("read a column")
}

pub(super) fn columns<'row, T: sqlx::FromRow<'row, PgRow>>(
    row: &'row PgRow,
) -> Result<T, DatabaseError> {
    T::from_row(row).doing("read a row")
}
