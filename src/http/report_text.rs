//! The reconciliation in the API's words, for the command line.

use serde_json::Value;

use super::json::json_line;
use super::reconciliation_body::{LineBody, ReconciliationBody};
use super::reconciliation_table::{reconciliation_columns, recount_columns};
use crate::database::ReconciliationSnapshot;
use crate::finance::reconcile;
use crate::table::{Cell, Columns};

/// The parts that a recount leaves to the reconciliation.
const PARTS: [&str; 7] =
    ["late", "open", "waiting", "repeats", "duplicates", "quarantined", "corrections"];

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
    columns: Columns<LineBody>,
    depth: Depth,
}

impl ReportText {
    /// The report on a snapshot.
    pub fn of(snapshot: &ReconciliationSnapshot, depth: Depth) -> Self {
        let body = ReconciliationBody::of(snapshot, &reconcile::compare(snapshot));
        let fields = &snapshot.query.spec.group_by;
        let columns = match depth {
            Depth::Recount => recount_columns(fields),
            Depth::Reconciliation => reconciliation_columns(fields),
        };
        Self { body, columns, depth }
    }

    /// How many windows have a difference that is not fully itemised.
    pub fn unexplained(&self) -> usize {
        self.body.unexplained()
    }

    /// The names of the columns and the cells of each line.
    pub fn table(&self) -> (Vec<String>, Vec<Vec<Cell>>) {
        let names = self.columns.names().map(str::to_owned).collect();
        (names, self.body.windows.iter().map(|line| self.columns.cells(line)).collect())
    }

    /// The totals of each currency: its code, and the counts and sums by name.
    pub fn totals(&self) -> Vec<(String, Vec<(String, String)>)> {
        let json = self.json_value();
        let currencies = json["totals"].as_object().into_iter().flatten();
        let figures = |totals: &Value| {
            let parts = totals.as_object().into_iter().flatten();
            let told = parts.map(|(name, figures)| {
                let revenue = figures["revenue"].as_str().unwrap_or_default();
                (name.clone(), format!("{} orders, {revenue}", figures["orders"]))
            });
            told.collect()
        };
        currencies.map(|(currency, totals)| (currency.clone(), figures(totals))).collect()
    }

    /// The whole report as JSON.
    pub fn json(&self) -> Vec<u8> {
        // Plain texts and numbers: writing them cannot fail.
        match self.depth {
            Depth::Reconciliation => json_line(&self.body).unwrap_or_default(),
            Depth::Recount => json_line(&self.json_value()).unwrap_or_default(),
        }
    }

    /// Its lines as CSV.
    pub fn csv(&self) -> Vec<u8> {
        let mut text = self.columns.csv_header();
        text.extend(self.columns.csv_rows(&self.body.windows));
        text
    }

    /// Its lines as NDJSON.
    pub fn ndjson(&self) -> Vec<u8> {
        let json = self.json_value();
        let lines = json["windows"].as_array().into_iter().flatten();
        lines.flat_map(|line| json_line(line).unwrap_or_default()).collect()
    }

    fn json_value(&self) -> Value {
        let mut json = serde_json::to_value(&self.body).unwrap_or_default();
        if self.depth == Depth::Recount {
            let windows = json["windows"].as_array_mut().into_iter().flatten();
            windows.for_each(without_parts);
            let totals = json["totals"].as_object_mut().into_iter().flatten();
            totals.for_each(|(_, totals)| without_parts(totals));
        }
        json
    }
}

fn without_parts(object: &mut Value) {
    if let Some(object) = object.as_object_mut() {
        object.retain(|name, _| !PARTS.contains(&name.as_str()));
    }
}
