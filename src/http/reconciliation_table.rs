//! The reconciliation as a table and in lines; the totals are in the JSON alone, for they are its sums.

use super::figures::Figures;
use super::reconciliation_body::{LineBody, ReconciliationBody};
use super::row_stream::{PAGE_ROWS, Pages};
use super::window_table::and_group;
use crate::database::DatabaseError;
use crate::domain::EventField;
use crate::table::{Cell, Columns};

/// Which figures of a line.
type FiguresOf = fn(&LineBody) -> Option<&Figures>;

/// Two columns for a count and its money.
fn and_figures(columns: Columns<LineBody>, name: &str, figures: FiguresOf) -> Columns<LineBody> {
    columns
        .and(format!("{name}_orders"), move |line| {
            Cell::exact_or_nothing(figures(line).map(|figures| figures.orders))
        })
        .and(format!("{name}_revenue"), move |line| {
            Cell::exact_or_nothing(figures(line).map(|figures| &figures.revenue))
        })
}

fn of_windows(fields: &[EventField]) -> Columns<LineBody> {
    let columns = Columns::default()
        .and("start", |line: &LineBody| Cell::exact(&line.start))
        .and("end", |line| Cell::exact(&line.end));
    let columns = and_group(columns, fields, |line| &line.group)
        .and("currency", |line| Cell::exact(line.currency));
    let columns = and_figures(columns, "stream", |line| line.stream.as_ref());
    let columns = and_figures(columns, "recount", |line| line.recount.as_ref());
    and_figures(columns, "difference", |line| Some(&line.difference))
}

/// The columns of a recount: both sides and their difference.
pub(super) fn recount_columns(fields: &[EventField]) -> Columns<LineBody> {
    and_verdict(of_windows(fields))
}

/// The columns of a reconciliation. `late_event_ids` is a JSON array.
pub(super) fn reconciliation_columns(fields: &[EventField]) -> Columns<LineBody> {
    let mut columns = and_figures(of_windows(fields), "late", |line| Some(&line.late.figures)).and(
        "late_event_ids",
        |line| {
            // Texts: writing them cannot fail.
            Cell::Text(serde_json::to_string(&line.late.event_ids).unwrap_or_default())
        },
    );
    let parts: [(&str, FiguresOf); 6] = [
        ("open", |line| Some(&line.parts.open)),
        ("waiting", |line| Some(&line.parts.waiting)),
        ("repeats", |line| Some(&line.parts.repeats)),
        ("duplicates", |line| Some(&line.parts.duplicates)),
        ("quarantined", |line| Some(&line.parts.quarantined)),
        ("corrections", |line| Some(&line.parts.corrections)),
    ];
    for (name, figures) in parts {
        columns = and_figures(columns, name, figures);
    }
    and_verdict(columns)
}

fn and_verdict(columns: Columns<LineBody>) -> Columns<LineBody> {
    columns
        .and("final", |line| Cell::exact(line.r#final))
        .and("status", |line| Cell::exact(line.status))
}

/// The lines of a report that was made already, a page at a time.
pub(super) struct LinePages(std::vec::IntoIter<LineBody>);

impl LinePages {
    /// The lines of `body`.
    pub(super) fn of(body: ReconciliationBody) -> Self {
        Self(body.windows.into_iter())
    }
}

impl Pages for LinePages {
    type Row = LineBody;

    async fn next(&mut self) -> Result<Option<Vec<LineBody>>, DatabaseError> {
        let page: Vec<LineBody> = self.0.by_ref().take(PAGE_ROWS as usize).collect();
        Ok((!page.is_empty()).then_some(page))
    }
}
