//! The ledger of dropped events as a table, and page by page.

use super::dropped_events::DroppedEventBody;
use super::figures::WindowBody;
use super::row_stream::{PAGE_ROWS, Pages};
use crate::database::{Database, DatabaseError, DroppedSelection};
use crate::table::{Cell, Columns};

/// The columns of dropped events. `windows` are ISO 8601 intervals with a space between them, and
/// `attributes` a JSON object.
pub(super) fn dropped_columns() -> Columns<DroppedEventBody> {
    Columns::default()
        .and("seq", |row: &DroppedEventBody| Cell::exact(row.seq))
        .and("received_at", |row| Cell::exact(&row.received_at))
        .and("event_id", |row| Cell::text(Some(&row.event.event_id)))
        .and("order_id", |row| Cell::text(Some(&row.event.order_id)))
        .and("status", |row| Cell::text(Some(&row.event.status)))
        .and("amount", |row| Cell::exact(&row.event.amount))
        .and("currency", |row| Cell::exact(row.event.currency))
        .and("event_time", |row| Cell::exact(&row.event.event_time))
        .and("customer_id", |row| Cell::text(row.event.customer_id.as_deref()))
        .and("store_id", |row| Cell::text(row.event.store_id.as_deref()))
        .and("till_id", |row| Cell::text(row.event.till_id.as_deref()))
        .and("item_count", |row| Cell::exact_or_nothing(row.event.item_count))
        .and("attributes", |row| {
            // Texts under texts: writing them cannot fail.
            Cell::Text(serde_json::to_string(&row.event.attributes).unwrap_or_default())
        })
        .and("reason", |row| Cell::exact(&row.reason))
        .and("windows", |row| {
            let intervals: Vec<String> = row.windows.iter().map(WindowBody::interval).collect();
            Cell::exact(intervals.join(" "))
        })
        .and("watermark", |row| Cell::exact(&row.watermark))
        .and("late_by", |row| Cell::exact(&row.late_by))
        .and("batch_id", |row| Cell::exact(row.batch_id))
}

/// Reads dropped events page by page.
pub(super) struct DroppedPages {
    /// Where.
    pub(super) database: Database,
    /// Whose.
    pub(super) query_id: i64,
    /// Which.
    pub(super) selection: DroppedSelection,
    /// Whether the last page was read.
    pub(super) is_done: bool,
}

impl Pages for DroppedPages {
    type Row = DroppedEventBody;

    async fn next(&mut self) -> Result<Option<Vec<DroppedEventBody>>, DatabaseError> {
        if self.is_done {
            return Ok(None);
        }
        let (query_id, selection) = (self.query_id, &self.selection);
        let read = self.database.dropped_events(query_id, selection, PAGE_ROWS).await?;
        self.is_done = read.len() < PAGE_ROWS as usize;
        if let Some(last) = read.last() {
            self.selection.after = Some(last.logged.seq);
        }
        Ok(Some(read.into_iter().map(DroppedEventBody::from).collect()))
    }
}
