//! Reading output rows, with what came late since they were written.

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use sqlx::{PgConnection, Postgres, QueryBuilder};

use super::as_of::{AsOf, rows_selects, rows_sql};
use super::changes::BatchSpan;
use super::error::Doing;
use super::queries::StoredQuery;
use super::values::{Bound, WindowColumns, group_to_sql, push_reach, revenue_from_sql};
use super::{Database, DatabaseError};
use crate::domain::{BatchId, EventTime, StoreReach, Totals, WindowKey};

/// Which rows to read.
#[derive(Debug, Clone, Default)]
pub struct WindowSelection {
    /// Rows whose window starts at or after this.
    pub from: Option<EventTime>,
    /// Rows whose window starts before this.
    pub to: Option<EventTime>,
    /// Rows of one currency.
    pub currency: Option<String>,
    /// Position in the group key → the value it must have; an empty text also means no value.
    pub group: Vec<(usize, String)>,
    /// Rows of these stores.
    pub reach: StoreReach,
    /// Only rows that are, or are not, final.
    pub is_final: Option<bool>,
    /// Rows that these batches wrote last; not of the past.
    pub batches: Option<BatchSpan>,
    /// Whether the query's windows are sessions.
    pub of_sessions: bool,
    /// With the booked corrections added, and rows that only they make.
    pub is_corrected: bool,
    /// As they stood at this moment.
    pub as_of: Option<AsOf>,
    /// Rows after this one, in the order of reading.
    pub after: Option<WindowKey>,
}

/// An output row as it stands.
#[derive(Debug, Clone)]
pub struct WindowRow {
    /// What it stands for.
    pub key: WindowKey,
    /// What was counted.
    pub totals: Totals,
    /// Whether it will never change.
    pub is_final: bool,
    /// The batch that wrote it last; nothing for a row that only corrections make.
    pub batch_id: Option<BatchId>,
    /// When that was, or when its last correction was booked, by the database's clock.
    pub written_at: DateTime<Utc>,
    /// What made it final; nothing while its window is open, and for a row that only corrections make.
    pub closed_by: Option<String>,
    /// Events for its window that came too late to count; with corrections, those in none.
    pub late_since: Totals,
    /// How much of the totals are corrections, where they were asked for.
    pub corrections: Option<Totals>,
}

#[derive(Debug, sqlx::FromRow)]
struct RowColumns {
    #[sqlx(flatten)]
    window: WindowColumns,
    is_final: bool,
    batch_id: Option<i64>,
    written_at: DateTime<Utc>,
    closed_by: Option<String>,
    late_orders: i64,
    late_revenue: Decimal,
    correction_orders: Option<i64>,
    correction_revenue: Option<Decimal>,
}

impl RowColumns {
    fn read(self) -> Result<WindowRow, DatabaseError> {
        let (key, totals) = self.window.read()?;
        Ok(WindowRow {
            key,
            totals,
            is_final: self.is_final,
            batch_id: self.batch_id.map(BatchId::new),
            written_at: self.written_at,
            closed_by: self.closed_by,
            late_since: Totals {
                orders: self.late_orders,
                revenue: revenue_from_sql(self.late_revenue),
            },
            corrections: self
                .correction_orders
                .zip(self.correction_revenue)
                .map(|(orders, revenue)| Totals { orders, revenue: revenue_from_sql(revenue) }),
        })
    }
}

/// The order of reading.
const ORDER: &str = " order by window_start, window_end, group_keys, currency";

impl Database {
    /// Up to `limit` rows of a query, ordered by start, end, group and currency.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`] or [`DatabaseError::Unreadable`].
    pub async fn windows(
        &self,
        query: &StoredQuery,
        selection: &WindowSelection,
        limit: u32,
    ) -> Result<Vec<WindowRow>, DatabaseError> {
        windows_read(&mut *self.reader().await?, query, selection, limit).await
    }

    /// The start of the first window that `selection` could show and the end of the last, whatever it
    /// picks of them; of tumbling windows, which end in the order of their starts. Nothing while there
    /// are none.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`].
    pub async fn window_bounds(
        &self,
        query: &StoredQuery,
        selection: &WindowSelection,
    ) -> Result<Option<(EventTime, EventTime)>, DatabaseError> {
        window_bounds_read(&mut *self.reader().await?, query, selection).await
    }
}

/// [`Database::windows`] inside the caller's transaction.
pub(super) async fn windows_read(
    conn: &mut PgConnection,
    query: &StoredQuery,
    selection: &WindowSelection,
    limit: u32,
) -> Result<Vec<WindowRow>, DatabaseError> {
    let mut select = QueryBuilder::<Postgres>::new("with selected as (select * from (");
    for (index, rows) in shown_selects(query, selection).iter().enumerate() {
        // Each has a limit of its own, so that none is read beyond the page.
        let union = if index == 0 { "" } else { " union all " };
        select.push(format!("{union}(select * from ({rows}) shown where true"));
        push_conditions(&mut select, selection);
        push_reach(&mut select, &query.spec.group_by, &selection.reach);
        select.push(ORDER).push(" limit ").push_bind(i64::from(limit)).push(")");
    }
    select.push(") shown").push(ORDER).push(" limit ").push_bind(i64::from(limit));
    let (figures, booked) = corrected(query, selection);
    select.push(format!(
            ") select selected.window_start, selected.window_end, selected.currency, selected.group_keys,
                 is_final, batch_id, closed_by, {figures},
                 late.orders as late_orders, late.revenue as late_revenue
             from selected{booked} cross join lateral (
                 select count(*) as orders, coalesce(sum(amount), 0) as revenue from dropped_events dropped
                 where dropped.query_id = selected.query_id and dropped.reason = 'late'
                     and dropped.group_keys = selected.group_keys
                     and dropped.currency = selected.currency and {}{}
             ) late{ORDER}",
            late_window(selection),
            late_condition(selection)
        ));
    let columns: Vec<RowColumns> =
        select.build_query_as().fetch_all(conn).await.doing("read output rows")?;
    columns.into_iter().map(RowColumns::read).collect()
}

/// [`Database::window_bounds`] inside the caller's transaction.
pub(super) async fn window_bounds_read(
    conn: &mut PgConnection,
    query: &StoredQuery,
    selection: &WindowSelection,
) -> Result<Option<(EventTime, EventTime)>, DatabaseError> {
    let shown = shown_selects(query, selection).join(" union all ");
    let mut select = QueryBuilder::<Postgres>::new(format!(
        "select (select window_start from ({shown}) shown order by window_start limit 1),
                 (select window_end from ({shown}) shown order by window_start desc limit 1)"
    ));
    let bounds: (Option<Bound>, Option<Bound>) = select
        .build_query_as()
        .fetch_one(conn)
        .await
        .doing("read how far the output rows reach")?;
    Ok(bounds.0.zip(bounds.1).map(|(Bound(first), Bound(end))| (first, end)))
}

/// The rows that are shown: as the stream wrote them, and in the corrected view those that only
/// corrections make.
fn shown_selects(query: &StoredQuery, selection: &WindowSelection) -> Vec<String> {
    let of_batches = selection.batches.map_or(String::new(), |BatchSpan { after, last }| {
        // Complete mode writes every row with every batch, also those that stay as they are.
        const CHANGED_BY: &str = "coalesce(totals_batch_id, batch_id)";
        format!(" and {CHANGED_BY} > {after} and {CHANGED_BY} <= {last}")
    });
    let rows = rows_selects(query, selection.as_of).into_iter();
    let of_rows = "select *, closed_by is not null as is_final from";
    let mut shown: Vec<String> =
        rows.map(|rows| format!("{of_rows} ({rows}{of_batches}) standing")).collect();
    if selection.is_corrected {
        let (query_id, booked) = (query.query_id, by_then(selection));
        let rows = rows_sql(query, selection.as_of);
        shown.push(format!(
            "select distinct query_id, window_start, window_end, currency, group_keys, 0::bigint as orders,
                 0::numeric as revenue, null::bigint as batch_id, null::timestamptz as written_at,
                 null::text as closed_by, true as is_final
             from corrections where query_id = {query_id}{booked} and not exists (select from {rows}
                 where standing.window_start = corrections.window_start
                     and standing.window_end = corrections.window_end
                     and standing.group_keys = corrections.group_keys
                     and standing.currency = corrections.currency)"
        ));
    }
    shown
}

/// What is counted in the rows `selected`, with the corrections added where they are asked for; and what
/// must be joined for it.
fn corrected(query: &StoredQuery, selection: &WindowSelection) -> (&'static str, String) {
    if !selection.is_corrected {
        let figures = "selected.orders, selected.revenue, written_at,
             null::bigint as correction_orders, null::numeric as correction_revenue";
        return (figures, String::new());
    }
    let (query_id, by_then) = (query.query_id, by_then(selection));
    let booked = format!(
        " left join (
             select window_start, window_end, currency, group_keys, sum(orders)::bigint as orders,
                 sum(revenue) as revenue, max(booked_at) as booked_at
             from corrections where query_id = {query_id}{by_then}
                 and (window_start, window_end) in (select window_start, window_end from selected)
             group by window_start, window_end, currency, group_keys
         ) booked using (window_start, window_end, currency, group_keys)"
    );
    let figures = "selected.orders + coalesce(booked.orders, 0) as orders,
         selected.revenue + coalesce(booked.revenue, 0) as revenue,
         coalesce(written_at, booked_at) as written_at,
         coalesce(booked.orders, 0) as correction_orders,
         coalesce(booked.revenue, 0) as correction_revenue";
    (figures, booked)
}

/// Only what was booked by the moment that is asked for.
fn by_then(selection: &WindowSelection) -> String {
    selection.as_of.map_or(String::new(), |as_of| format!(" and booked_at <= {}", as_of.literal()))
}

/// Which windows of the ledger stand beside a row: its own; of sessions all that would have joined it.
const fn late_window(selection: &WindowSelection) -> &'static str {
    if selection.of_sessions {
        "dropped.window_start <= selected.window_end and dropped.window_end >= selected.window_start"
    } else {
        "dropped.window_start = selected.window_start and dropped.window_end = selected.window_end"
    }
}

/// Which entries of the ledger stand beside a row.
fn late_condition(selection: &WindowSelection) -> String {
    let mut condition = match selection.as_of {
        Some(as_of) => format!(" and {}", as_of.batches("dropped")),
        None => String::new(),
    };
    if selection.is_corrected {
        let booked = by_then(selection);
        condition.push_str(&format!(
            " and not exists (select from corrected_events corrected
                 join corrections using (query_id, number)
                 where corrected.query_id = dropped.query_id and corrected.seq = dropped.seq
                     and corrected.window_start = dropped.window_start
                     and corrected.window_end = dropped.window_end{booked})"
        ));
    }
    condition
}

fn push_conditions(select: &mut QueryBuilder<Postgres>, selection: &WindowSelection) {
    if let Some(from) = selection.from {
        select.push(" and window_start >= ").push_bind(from.to_utc());
    }
    if let Some(to) = selection.to {
        select.push(" and window_start < ").push_bind(to.to_utc());
    }
    if let Some(currency) = &selection.currency {
        select.push(" and currency = ").push_bind(currency.clone());
    }
    for (index, value) in &selection.group {
        select.push(" and coalesce(group_keys::jsonb ->> ");
        select.push_bind(i32::try_from(*index).unwrap_or(i32::MAX));
        select.push("::int, '') = ").push_bind(value.clone());
    }
    if let Some(is_final) = selection.is_final {
        select.push(if is_final { " and is_final" } else { " and not is_final" });
    }
    if let Some(after) = &selection.after {
        select.push(" and (window_start, window_end, group_keys, currency) > (");
        select.push_bind(after.window.start.to_utc()).push(", ");
        select.push_bind(after.window.end.to_utc()).push(", ");
        select.push_bind(group_to_sql(&after.group)).push(", ");
        select.push_bind(after.currency.code()).push(")");
    }
}
