//! Windows and their folds as tables, and windows page by page.

use super::App;
use super::counted_body::and_counted;
use super::folds::FoldBody;
use super::row_stream::{PAGE_ROWS, Pages};
use super::windows::RowBody;
use crate::database::{Database, DatabaseError, StoredQuery, WindowSelection};
use crate::domain::EventField;
use crate::table::{Cell, Columns};

/// The columns of windows; with `hour` for hourly sales.
pub(super) fn window_columns(
    fields: &[EventField],
    is_corrected: bool,
    names_hours: bool,
) -> Columns<RowBody> {
    let mut columns = Columns::default();
    if names_hours {
        columns = columns.and("hour", |row: &RowBody| Cell::exact(&row.start));
    }
    let columns = columns
        .and("start", |row: &RowBody| Cell::exact(&row.start))
        .and("end", |row| Cell::exact(&row.end));
    and_counted(columns, fields, is_corrected, |row| &row.counted)
}

/// The columns of folds.
pub(super) fn fold_columns(fields: &[EventField], is_corrected: bool) -> Columns<FoldBody> {
    let columns = Columns::default()
        .and("date", |row: &FoldBody| Cell::exact(&row.date))
        .and("start", |row| Cell::exact(&row.start))
        .and("end", |row| Cell::exact(&row.end))
        .and("from", |row| Cell::exact(&row.from))
        .and("to", |row| Cell::exact(&row.to))
        .and("partial", |row| Cell::exact(row.partial));
    and_counted(columns, fields, is_corrected, |row| &row.counted)
}

/// Reads windows page by page.
pub(super) struct WindowPages {
    database: Database,
    query: StoredQuery,
    selection: WindowSelection,
    names_hours: bool,
    is_done: bool,
}

impl WindowPages {
    /// The windows of `selection`.
    pub(super) fn new(
        app: &App,
        query: &StoredQuery,
        selection: &WindowSelection,
        names_hours: bool,
    ) -> Self {
        let (database, query) = (app.database.clone(), query.clone());
        Self { database, query, selection: selection.clone(), names_hours, is_done: false }
    }
}

impl Pages for WindowPages {
    type Row = RowBody;

    async fn next(&mut self) -> Result<Option<Vec<RowBody>>, DatabaseError> {
        if self.is_done {
            return Ok(None);
        }
        let rows = self.database.windows(&self.query, &self.selection, PAGE_ROWS).await?;
        self.is_done = rows.len() < PAGE_ROWS as usize;
        if let Some(last) = rows.last() {
            self.selection.after = Some(last.key.clone());
        }
        let bodies = rows.iter().map(|row| RowBody::of(row, &self.query, self.names_hours));
        Ok(Some(bodies.collect()))
    }
}
