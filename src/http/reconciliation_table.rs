//! The reconciliation as a table and in lines; the totals are in the JSON alone, for they are its sums.

use super::figure_columns::{and_figures, and_group};
use super::figures::Figures;
use super::reconciliation_body::{LineBody, ReconciliationBody, ReportRow};
use super::row_stream::{PAGE_ROWS, Pages};
use crate::database::DatabaseError;
use crate::domain::EventField;
use crate::table::{Cell, Columns};

/// Which figures of a line.
type FiguresOf = fn(&LineBody) -> Option<&Figures>;

/// A column of windows alone.
fn of_window(cell: fn(&LineBody) -> Cell) -> impl Fn(&ReportRow) -> Cell {
    move |row| row.window().map_or(Cell::Nothing, cell)
}

fn and_part(columns: Columns<ReportRow>, name: &str, of: FiguresOf) -> Columns<ReportRow> {
    and_figures(columns, &format!("{name}_"), move |row: &ReportRow| row.window().and_then(of))
}

fn of_windows(fields: &[EventField]) -> Columns<ReportRow> {
    let columns = Columns::default()
        .and("start", of_window(|line| Cell::exact(&line.start)))
        .and("end", of_window(|line| Cell::exact(&line.end)));
    let columns =
        and_group(columns, fields, |row: &ReportRow| row.window().map(|line| &line.group))
            .and("currency", of_window(|line| Cell::exact(line.currency)));
    let columns = and_part(columns, "stream", |line| line.stream.as_ref());
    let columns = and_part(columns, "recount", |line| line.recount.as_ref());
    and_part(columns, "difference", |line| Some(&line.difference))
}

/// The columns of a recount: both sides and their difference.
pub(super) fn recount_columns(fields: &[EventField]) -> Columns<ReportRow> {
    and_verdict(of_windows(fields))
}

/// The columns of a reconciliation.
pub(super) fn reconciliation_columns(fields: &[EventField]) -> Columns<ReportRow> {
    let columns = and_part(of_windows(fields), "late", |line| Some(&line.late.figures));
    let mut columns = columns.and("late_event_ids", of_window(|line| list(&line.late.event_ids)));
    let parts: [(&str, FiguresOf); 6] = [
        ("open", |line| Some(&line.parts.open)),
        ("waiting", |line| Some(&line.parts.waiting)),
        ("repeats", |line| Some(&line.parts.repeats)),
        ("duplicates", |line| Some(&line.parts.duplicates)),
        ("quarantined", |line| Some(&line.parts.quarantined)),
        ("corrections", |line| Some(&line.parts.corrections)),
    ];
    for (name, figures) in parts {
        columns = and_part(columns, name, figures);
    }
    and_verdict(columns)
}

fn and_verdict(columns: Columns<ReportRow>) -> Columns<ReportRow> {
    columns
        .and("final", of_window(|line| Cell::exact(line.r#final)))
        .and("status", |row| Cell::exact_or_nothing(row.status()))
        .and("findings", |row| list(row.findings()))
}

/// Texts as a JSON array.
fn list(texts: &[String]) -> Cell {
    // Texts: writing them cannot fail.
    Cell::Text(serde_json::to_string(texts).unwrap_or_default())
}

/// The rows of a report that was made already, a page at a time.
pub(super) struct LinePages {
    body: ReconciliationBody,
    n_read: usize,
}

impl LinePages {
    /// The rows of `body`.
    pub(super) const fn of(body: ReconciliationBody) -> Self {
        Self { body, n_read: 0 }
    }
}

impl Pages for LinePages {
    type Row = ReportRow;

    async fn next(&mut self) -> Result<Option<Vec<ReportRow>>, DatabaseError> {
        let page: Vec<ReportRow> = self.body.rows(self.n_read).take(PAGE_ROWS as usize).collect();
        self.n_read += page.len();
        Ok((!page.is_empty()).then_some(page))
    }
}
