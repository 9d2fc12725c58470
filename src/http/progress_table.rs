//! Progress entries as a table, and page by page.

use super::progress::EntryCursor;
use super::progress_body::ProgressBody;
use super::row_stream::{PAGE_ROWS, Pages};
use crate::database::{Database, DatabaseError, ProgressCursor};
use crate::domain::QueryName;
use crate::table::{Cell, Columns};

/// The columns of progress entries.
pub(super) fn progress_columns() -> Columns<ProgressBody> {
    Columns::default()
        .and("query", |row: &ProgressBody| Cell::exact(&row.query))
        .and("batch_id", |row| Cell::exact(row.batch_id))
        .and("timestamp", |row| Cell::exact(&row.timestamp))
        .and("events_in", |row| Cell::exact(row.events_in))
        .and("late_events", |row| Cell::exact(row.late_events))
        .and("duplicates", |row| Cell::exact(row.duplicates))
        .and("late_watermark", |row| Cell::exact(&row.late_watermark))
        .and("watermark", |row| Cell::exact(&row.watermark))
        .and("event_time_min", |row| {
            Cell::exact_or_nothing(row.event_time.as_ref().map(|times| &times.min))
        })
        .and("event_time_max", |row| {
            Cell::exact_or_nothing(row.event_time.as_ref().map(|times| &times.max))
        })
        .and("event_time_avg", |row| {
            Cell::exact_or_nothing(row.event_time.as_ref().map(|times| &times.avg))
        })
        .and("rows_written", |row| Cell::exact(row.rows_written))
        .and("state_windows", |row| Cell::exact(row.state.windows))
        .and("state_updated", |row| Cell::exact(row.state.updated))
        .and("state_removed", |row| Cell::exact(row.state.removed))
        .and("position_from", |row| Cell::exact(row.position.from))
        .and("position_to", |row| Cell::exact(row.position.to))
        .and("duration_ms_read", |row| decimal(row.duration_ms.read))
        .and("duration_ms_compute", |row| decimal(row.duration_ms.compute))
        .and("duration_ms_commit", |row| decimal(row.duration_ms.commit))
        .and("duration_ms_total", |row| decimal(row.duration_ms.total))
        .and("events_per_second", |row| row.events_per_second.map_or(Cell::Nothing, decimal))
        .and("closed_by", |row| Cell::exact_or_nothing(row.closed_by))
}

/// A number with its point, as JSON has it.
fn decimal(number: f64) -> Cell {
    Cell::exact(format_args!("{number:?}"))
}

/// Reads progress entries page by page.
pub(super) struct ProgressPages {
    /// Where.
    pub(super) database: Database,
    /// Whose; nothing: of all queries.
    pub(super) query: Option<QueryName>,
    /// Only entries after this one.
    pub(super) after: Option<ProgressCursor>,
    /// Whether the last page was read.
    pub(super) is_done: bool,
}

impl Pages for ProgressPages {
    type Row = ProgressBody;

    async fn next(&mut self) -> Result<Option<Vec<ProgressBody>>, DatabaseError> {
        if self.is_done {
            return Ok(None);
        }
        let (query, after) = (self.query.as_ref(), self.after.as_ref());
        let entries = self.database.progress(query, after, PAGE_ROWS).await?;
        self.is_done = entries.len() < PAGE_ROWS as usize;
        if let Some(last) = entries.last() {
            self.after = Some(EntryCursor::of(last).into());
        }
        Ok(Some(entries.into_iter().map(ProgressBody::from).collect()))
    }
}
