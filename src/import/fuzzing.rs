//! Files to import, as bytes that can be anything.

use std::io::Cursor;

use super::chunk::Chunk;
use super::lines::Lines;
use super::table::Table;
use crate::intake::EventDefaults;

const EVENT_BYTES_MAX: usize = 4 * 1024;

/// Reads a file of CSV: every row is taken or rejected, on a line that is in the file.
pub(crate) fn csv_rows(bytes: &[u8]) {
    let Ok(mut table) = Table::of(Box::new(Cursor::new(bytes.to_vec())), EVENT_BYTES_MAX) else {
        return;
    };
    let mut goes_on = true;
    while goes_on {
        let mut chunk = Chunk::default();
        match table.fill(&mut chunk) {
            Ok(is_there_more) => goes_on = is_there_more,
            Err(_) => return,
        }
        check(chunk, bytes);
    }
}

/// The same of a file of NDJSON, which is never too damaged to go on.
pub(crate) fn json_lines(bytes: &[u8]) {
    let Ok(mut lines) = Lines::of(Box::new(Cursor::new(bytes.to_vec())), EVENT_BYTES_MAX) else {
        return;
    };
    let mut goes_on = true;
    while goes_on {
        let mut chunk = Chunk::default();
        goes_on = lines.fill(&mut chunk).unwrap_or(false);
        check(chunk, bytes);
    }
}

fn check(chunk: Chunk, file: &[u8]) {
    let Ok(currency) = "USD".parse() else { return };
    let Ok(checked) = chunk.check(&EventDefaults { currency }, EVENT_BYTES_MAX) else {
        panic!("rows are lines of their own, so a chunk is never damaged as a whole");
    };
    let lines_max = file.iter().filter(|byte| **byte == b'\n').count() + 1;
    for row in 0..checked.row_count() {
        let (line, text) = checked.row(row);
        assert!((1..=lines_max).contains(&usize::try_from(line).unwrap_or(usize::MAX)));
        assert!(!text.contains(&b'\n'), "a row is one line");
    }
    assert_eq!(checked.good.len(), checked.events.len());
    assert_eq!(checked.good.len() + checked.rejected.len(), checked.row_count());
    assert!(checked.rejected.iter().all(|(_, faults)| !faults.is_empty()));
}
