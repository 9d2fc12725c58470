//! Reading output rows, with what came late since they were written.

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use sqlx::{Postgres, QueryBuilder};

use super::error::Doing;
use super::values::{WindowColumns, group_to_sql, revenue_from_sql};
use super::{Database, DatabaseError};
use crate::domain::{BatchId, EventTime, Totals, WindowKey};

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
    /// Position in the group key → the values that it may have.
    pub group_within: Option<(usize, Vec<String>)>,
    /// Only rows that are, or are not, final.
    pub is_final: Option<bool>,
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
    /// The batch that wrote it last.
    pub batch_id: BatchId,
    /// When that was, by the database's clock.
    pub written_at: DateTime<Utc>,
    /// What made it final; nothing while its window is open.
    pub closed_by: Option<String>,
    /// Events for its window that came too late to count.
    pub late_since: Totals,
}

#[derive(Debug, sqlx::FromRow)]
struct RowColumns {
    #[sqlx(flatten)]
    window: WindowColumns,
    batch_id: i64,
    written_at: DateTime<Utc>,
    closed_by: Option<String>,
    late_orders: i64,
    late_revenue: Decimal,
}

impl RowColumns {
    fn read(self) -> Result<WindowRow, DatabaseError> {
        let (key, totals) = self.window.read()?;
        Ok(WindowRow {
            key,
            totals,
            batch_id: BatchId::new(self.batch_id),
            written_at: self.written_at,
            closed_by: self.closed_by,
            late_since: Totals {
                orders: self.late_orders,
                revenue: revenue_from_sql(self.late_revenue),
            },
        })
    }
}

impl Database {
    /// Up to `limit` rows of a query, ordered by start, end, group and currency.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`] or [`DatabaseError::Unreadable`].
    pub async fn windows(
        &self,
        query_id: i64,
        selection: &WindowSelection,
        limit: u32,
    ) -> Result<Vec<WindowRow>, DatabaseError> {
        let mut select = QueryBuilder::<Postgres>::new(
            "select selected.*, late.orders as late_orders, late.revenue as late_revenue
             from (select * from window_rows where query_id = ",
        );
        select.push_bind(query_id);
        push_conditions(&mut select, selection);
        select.push(" order by window_start, window_end, group_keys, currency limit ");
        select.push_bind(i64::from(limit));
        select.push(
            ") selected cross join lateral (
                 select count(*) as orders, coalesce(sum(amount), 0) as revenue from dropped_events dropped
                 where dropped.query_id = selected.query_id and dropped.reason = 'late'
                     and dropped.window_start = selected.window_start
                     and dropped.window_end = selected.window_end
                     and dropped.group_keys = selected.group_keys
                     and dropped.currency = selected.currency
             ) late
             order by window_start, window_end, group_keys, currency",
        );
        let columns: Vec<RowColumns> = select
            .build_query_as()
            .fetch_all(&mut *self.reader().await?)
            .await
            .doing("read output rows")?;
        columns.into_iter().map(RowColumns::read).collect()
    }
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
    if let Some((index, values)) = &selection.group_within {
        select.push(" and (group_keys::jsonb ->> ");
        select.push_bind(i32::try_from(*index).unwrap_or(i32::MAX));
        select.push("::int) = any (").push_bind(values.clone()).push(")");
    }
    if let Some(is_final) = selection.is_final {
        select.push(if is_final { " and closed_by is not null" } else { " and closed_by is null" });
    }
    if let Some(after) = &selection.after {
        select.push(" and (window_start, window_end, group_keys, currency) > (");
        select.push_bind(after.window.start.to_utc()).push(", ");
        select.push_bind(after.window.end.to_utc()).push(", ");
        select.push_bind(group_to_sql(&after.group)).push(", ");
        select.push_bind(after.currency.code()).push(")");
    }
}
