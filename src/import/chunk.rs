//! Rows that are checked and stored together.

use std::ops::Range;

use super::ImportError;
use crate::domain::{Fault, IdentifiedEvent};
use crate::intake::{BodyFormat, BodyLimits, EventDefaults, events};

/// The most rows that are stored in one transaction: a service beside us waits for no more.
pub(super) const CHUNK_ROWS_MAX: usize = 5_000;
/// A chunk with this much text takes no more rows.
const CHUNK_BYTES_ENOUGH: usize = 4 << 20;

/// Rows as lines of JSON.
#[derive(Debug)]
pub(super) struct Chunk {
    /// Begins with an empty line, so that no row stands at the beginning of what is checked: a byte
    /// order mark there would be the fault of all.
    text: Vec<u8>,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    /// Where it begins in its file, from 1.
    line: u64,
    text: Range<usize>,
    /// What was seen to be wrong with it before the check.
    fault: Option<Fault>,
}

impl Default for Chunk {
    fn default() -> Self {
        Self { text: b"\n".to_vec(), rows: Vec::new() }
    }
}

impl Chunk {
    /// Whether there is room for another row.
    pub(super) fn has_room(&self) -> bool {
        self.rows.len() < CHUNK_ROWS_MAX && self.text.len() < CHUNK_BYTES_ENOUGH
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds a row, whose text `write` appends: one line that is not blank.
    pub(super) fn add(
        &mut self,
        line: u64,
        fault: Option<Fault>,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        let start = self.text.len();
        write(&mut self.text);
        self.rows.push(Row { line, text: start..self.text.len(), fault });
        self.text.push(b'\n');
    }

    /// Checks every row as the API would.
    pub(super) fn check(
        self,
        defaults: &EventDefaults,
        event_bytes_max: usize,
    ) -> Result<CheckedChunk, ImportError> {
        let limits = BodyLimits { events_max: self.rows.len(), event_bytes_max };
        let items = events(&self.text, BodyFormat::NdJson, defaults, &limits)?;
        let (mut good, mut events, mut rejected) = (Vec::new(), Vec::new(), Vec::new());
        for (row, item) in items.into_iter().enumerate() {
            match (&self.rows[row].fault, item.outcome) {
                (Some(fault), _) => rejected.push((row, vec![fault.clone()])),
                (None, Err(invalid)) => rejected.push((row, invalid.faults)),
                (None, Ok(event)) => {
                    good.push(row);
                    events.push(event);
                }
            }
        }
        Ok(CheckedChunk { chunk: self, good, events, rejected })
    }
}

/// Rows after their check.
#[derive(Debug)]
pub(super) struct CheckedChunk {
    chunk: Chunk,
    /// The numbers of the rows that `events` are from, in their order.
    pub(super) good: Vec<usize>,
    pub(super) events: Vec<IdentifiedEvent>,
    /// The numbers of the other rows, and all that is wrong with each.
    pub(super) rejected: Vec<(usize, Vec<Fault>)>,
}

impl CheckedChunk {
    pub(super) const fn row_count(&self) -> usize {
        self.chunk.rows.len()
    }

    /// The line on which a row begins, from 1, and its text.
    pub(super) fn row(&self, number: usize) -> (u64, &[u8]) {
        let row = &self.chunk.rows[number];
        (row.line, &self.chunk.text[row.text.clone()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SALE: &str =
        r#"{"order_id":"1","status":"placed","amount":"1","event_time":"2026-10-01T09:00:00Z"}"#;

    fn check(rows: &[&[u8]]) -> CheckedChunk {
        let mut chunk = Chunk::default();
        for (number, row) in rows.iter().enumerate() {
            chunk.add(number as u64 + 7, None, |text| text.extend_from_slice(row));
        }
        let defaults = EventDefaults { currency: "USD".parse().unwrap() };
        chunk.check(&defaults, 65_536).unwrap()
    }

    #[test]
    fn every_row_keeps_its_number_and_its_own_faults() {
        let sale = SALE.as_bytes();
        let marked = [b"\xEF\xBB\xBF", sale].concat();
        let checked = check(&[&marked, sale, b"\xFF", sale]);
        assert_eq!((checked.row_count(), checked.events.len()), (4, 2));
        assert_eq!(checked.good, [1, 3]);
        let rejected: Vec<_> =
            checked.rejected.iter().map(|(row, faults)| (*row, faults[0].code)).collect();
        assert_eq!(rejected, [(0, "not_json"), (2, "not_utf8")]);
        assert_eq!(checked.row(3), (10, sale));
    }

    #[test]
    fn a_fault_that_was_seen_before_the_check_is_the_one_to_tell() {
        let mut chunk = Chunk::default();
        let fault = Fault::new("", "too_large", "The line is too long");
        chunk.add(1, Some(fault.clone()), |text| text.extend_from_slice(SALE.as_bytes()));
        let defaults = EventDefaults { currency: "USD".parse().unwrap() };
        let checked = chunk.check(&defaults, 65_536).unwrap();
        assert_eq!(checked.rejected, [(0, vec![fault])]);
        assert!(checked.events.is_empty());
    }
}
