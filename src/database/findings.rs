//! What a report met that cannot be: it is said, and the report goes on.

use super::DatabaseError;
use crate::domain::WindowKey;

/// Something that a report met and that should not be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The line that it belongs to, where that can be told.
    pub key: Option<WindowKey>,
    /// What it is, in one sentence without its full stop.
    pub detail: String,
    /// Whether somebody must look: not for what the query has set aside already.
    pub is_fault: bool,
}

/// The findings of one report.
#[derive(Debug, Default)]
pub(super) struct Findings(pub(super) Vec<Finding>);

impl Findings {
    /// Notes what is wrong with a line.
    pub(super) fn note(&mut self, key: Option<WindowKey>, detail: String) {
        self.0.push(Finding { key, detail, is_fault: true });
    }

    /// What was read of a row of `table`; a row that cannot be read becomes a finding.
    pub(super) fn readable<T>(&mut self, table: &str, read: Result<T, DatabaseError>) -> Option<T> {
        read.map_err(|error| {
            self.note(None, format!("a row of {table} cannot be read: {}", error.chain()));
        })
        .ok()
    }
}
