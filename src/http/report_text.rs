//! The reconciliation in the API's words, for the command line.

use std::collections::BTreeMap;

use serde::Serialize;

use super::figures::RangeBody;
use super::figures::{Figures, GroupMembers};
use super::json::json_line;
use super::reconciliation_body::{LineBody, ReconciliationBody, ReportRow, TotalsBody};
use super::reconciliation_table::{reconciliation_columns, recount_columns};
use crate::database::ReconciliationSnapshot;
use crate::finance::reconcile::LineFilter;
use crate::table::{Cell, Columns};

/// How much a report says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Both sides and their difference.
    Recount,
    /// What each difference is made of, too.
    Reconciliation,
}

/// A report as it is printed.
#[derive(Debug)]
pub struct ReportText {
    body: ReconciliationBody,
    columns: Columns<ReportRow>,
    depth: Depth,
}

impl ReportText {
    /// The report on a snapshot.
    pub fn of(snapshot: ReconciliationSnapshot, depth: Depth) -> Self {
        let fields = &snapshot.query.spec.group_by;
        let columns = match depth {
            Depth::Recount => recount_columns(fields),
            Depth::Reconciliation => reconciliation_columns(fields),
        };
        let body = ReconciliationBody::of(snapshot, &LineFilter::default());
        Self { body, columns, depth }
    }

    /// How many windows have a difference that is not fully itemised.
    pub fn unexplained(&self) -> usize {
        self.body.unexplained
    }

    /// The names of the columns and the cells of each window.
    pub fn table(&self) -> (Vec<String>, Vec<Vec<Cell>>) {
        let names = self.columns.names().map(str::to_owned).collect();
        let windows = self.body.rows(0).filter(|row| row.window().is_some());
        (names, windows.map(|row| self.columns.cells(&row)).collect())
    }

    /// What is wrong, with the start of the window that it is wrong with; each a sentence.
    pub fn findings(&self) -> Vec<String> {
        let of_row = |row: ReportRow| {
            let start = row.window().map(|line| format!("{}: ", line.start)).unwrap_or_default();
            let findings = row.findings().iter();
            findings.map(|finding| format!("{start}{finding}")).collect::<Vec<_>>()
        };
        self.body.rows(0).flat_map(of_row).collect()
    }

    /// The sums of each currency: its code, and the counts and money by name.
    pub fn totals(&self) -> Vec<(&'static str, Vec<(&'static str, String)>)> {
        let totals = self.body.totals.iter();
        totals.map(|(currency, sums)| (*currency, told(sums, self.depth))).collect()
    }

    /// The whole report as JSON.
    pub fn json(&self) -> Vec<u8> {
        // Plain texts and numbers: writing them cannot fail.
        match self.depth {
            Depth::Reconciliation => json_line(&self.body).unwrap_or_default(),
            Depth::Recount => json_line(&RecountBody::of(&self.body)).unwrap_or_default(),
        }
    }

    /// Its lines as CSV.
    pub fn csv(&self) -> Vec<u8> {
        let mut text = self.columns.csv_header();
        for row in self.body.rows(0) {
            text.extend(self.columns.csv_rows([&row]));
        }
        text
    }

    /// Its lines as NDJSON.
    pub fn ndjson(&self) -> Vec<u8> {
        let lines = self.body.rows(0).map(|row| match (self.depth, row) {
            (Depth::Recount, ReportRow::Window(line)) => json_line(&RecountLine::of(*line)),
            (Depth::Recount | Depth::Reconciliation, row) => json_line(&row),
        });
        lines.flat_map(Result::unwrap_or_default).collect()
    }
}

/// The sums by name, those that are not zero and the sides.
fn told(sums: &TotalsBody, depth: Depth) -> Vec<(&'static str, String)> {
    let parts = &sums.parts;
    let sides =
        [("stream", &sums.stream), ("recount", &sums.recount), ("difference", &sums.difference)];
    let itemised = [
        ("late", &sums.late),
        ("open", &parts.open),
        ("waiting", &parts.waiting),
        ("repeats", &parts.repeats),
        ("duplicates", &parts.duplicates),
        ("quarantined", &parts.quarantined),
        ("corrections", &parts.corrections),
    ];
    let itemised = itemised
        .into_iter()
        .filter(|(_, figures)| depth == Depth::Reconciliation && figures.orders != 0);
    let all = sides.into_iter().chain(itemised);
    all.map(|(name, figures)| (name, format!("{} orders, {}", figures.orders, figures.revenue)))
        .collect()
}

/// A recount in JSON: a reconciliation without what the differences are made of.
#[derive(Serialize)]
struct RecountBody<'report> {
    query: &'report str,
    as_of: &'report str,
    watermark: &'report str,
    complete_through: Option<&'report str>,
    range: &'report RangeBody,
    windows: Vec<RecountLine>,
    totals: BTreeMap<&'static str, Sides<'report>>,
    unexplained: usize,
    findings: Vec<&'report str>,
}

impl<'report> RecountBody<'report> {
    fn of(body: &'report ReconciliationBody) -> Self {
        let totals = body.totals.iter().map(|(currency, sums)| (*currency, Sides::of(sums)));
        Self {
            query: &body.query,
            as_of: &body.as_of,
            watermark: &body.watermark,
            complete_through: body.complete_through.as_deref(),
            range: &body.range,
            windows: body.windows.bodies(0).map(RecountLine::of).collect(),
            totals: totals.collect(),
            unexplained: body.unexplained,
            findings: body.findings.iter().map(|finding| finding.detail.as_str()).collect(),
        }
    }
}

/// Both sides of one currency added up.
#[derive(Serialize)]
struct Sides<'report> {
    stream: &'report Figures,
    recount: &'report Figures,
    difference: &'report Figures,
}

impl<'report> Sides<'report> {
    fn of(sums: &'report TotalsBody) -> Self {
        Self { stream: &sums.stream, recount: &sums.recount, difference: &sums.difference }
    }
}

/// One window of a recount.
#[derive(Serialize)]
struct RecountLine {
    start: String,
    end: String,
    #[serde(flatten)]
    group: GroupMembers,
    currency: &'static str,
    stream: Option<Figures>,
    recount: Option<Figures>,
    difference: Figures,
    r#final: bool,
    status: &'static str,
    findings: Vec<String>,
}

impl RecountLine {
    fn of(line: LineBody) -> Self {
        let LineBody { start, end, group, currency, stream, recount, difference, .. } = line;
        let (r#final, status, findings) = (line.r#final, line.status, line.findings);
        Self { start, end, group, currency, stream, recount, difference, r#final, status, findings }
    }
}
