//! CSV (RFC 4180): rows under a header that names the fields.

use std::io::{self, Read};

use csv::{ByteRecord, Position, Reader, ReaderBuilder, Terminator};

use super::chunk::Chunk;
use crate::domain::Fault;
use crate::intake::{Columns, InvalidHeader};

const BUFFER_BYTES: usize = 64 * 1024;

/// The rows of a CSV file.
pub(super) struct Table {
    rows: Reader<Bounded>,
    columns: Columns,
    row: ByteRecord,
    row_bytes_max: usize,
    /// The line after the last row, from 1.
    next_line: u64,
}

/// Why a row cannot be read, and all after it.
#[derive(Debug)]
pub(super) enum TableError {
    Header(InvalidHeader),
    Io(io::Error),
    /// No row ends within the bounds of an event.
    Endless,
}

impl Table {
    /// Reads the header.
    pub(super) fn of(
        bytes: Box<dyn Read + Send>,
        row_bytes_max: usize,
    ) -> Result<Self, TableError> {
        let bounded =
            Bounded { bytes, room: room_of_row(row_bytes_max), is_over: false, ends_line: true };
        let mut rows = ReaderBuilder::new()
            .has_headers(false)
            // A row with too few cells costs nobody but itself.
            .flexible(true)
            // The carriage return before it is taken off the last cell: were it the end, lines
            // could not be counted.
            .terminator(Terminator::Any(b'\n'))
            .buffer_capacity(BUFFER_BYTES)
            .from_reader(bounded);
        let mut row = ByteRecord::new();
        read(&mut rows, &mut row, row_bytes_max)?;
        let names: Vec<_> = row.iter().map(String::from_utf8_lossy).collect();
        // What stands around a name was meant for the eye.
        let columns = Columns::of_header(names.iter().map(|name| name.trim()));
        let columns = columns.map_err(TableError::Header)?;
        let next_line = rows.position().line();
        Ok(Self { rows, columns, row, row_bytes_max, next_line })
    }

    /// The line after the last row, from 1.
    pub(super) const fn next_line(&self) -> u64 {
        self.next_line
    }

    /// Adds rows to `chunk` until it is full; answers whether there may be more.
    pub(super) fn fill(&mut self, chunk: &mut Chunk) -> Result<bool, TableError> {
        while chunk.has_room() {
            if !read(&mut self.rows, &mut self.row, self.row_bytes_max)? {
                return Ok(false);
            }
            self.next_line = self.rows.position().line();
            self.add(chunk);
        }
        Ok(true)
    }

    fn add(&self, chunk: &mut Chunk) {
        let mut cells: Vec<&[u8]> = self.row.iter().collect();
        if let Some(last) = cells.last_mut() {
            *last = last.strip_suffix(b"\r").unwrap_or(last);
        }
        if matches!(*cells, [b""]) {
            return;
        }
        let line = self.first_line();
        let (found, expected) = (cells.len(), self.columns.count());
        let texts: Result<Vec<&str>, _> =
            cells.iter().map(|cell| std::str::from_utf8(cell)).collect();
        let fault = match texts {
            Ok(texts) if found == expected => {
                let write = |text: &mut Vec<u8>| self.columns.write_item(texts.into_iter(), text);
                return chunk.add(line, None, write);
            }
            Ok(_) => {
                let mut detail = format!("The row has {found} cells; the header has {expected}");
                if self.line_ends() > 0 {
                    detail.push_str("; it goes over several lines: is a quote left open?");
                }
                Fault::new("", "wrong_cell_count", detail)
            }
            Err(_) => Fault::new("", "not_utf8", "The row is not UTF-8"),
        };
        let cells: Vec<_> = cells.into_iter().map(String::from_utf8_lossy).collect();
        let text_of_row = serde_json::Value::from(cells).to_string();
        chunk.add(line, Some(fault), |text| text.extend_from_slice(text_of_row.as_bytes()));
    }

    /// The line on which the row that was just read begins. Counted back from its end, because
    /// blank lines may stand before it; the last row may have no end.
    fn first_line(&self) -> u64 {
        let counted_back = self.next_line.saturating_sub(self.line_ends() + 1);
        counted_back.max(self.row.position().map_or(0, Position::line))
    }

    /// How many line ends the row has inside of it.
    fn line_ends(&self) -> u64 {
        self.row.as_slice().iter().filter(|byte| **byte == b'\n').count() as u64
    }
}

/// Reads the next row; answers whether there was one.
fn read(
    rows: &mut Reader<Bounded>,
    row: &mut ByteRecord,
    row_bytes_max: usize,
) -> Result<bool, TableError> {
    rows.get_mut().room = room_of_row(row_bytes_max);
    rows.read_byte_record(row).map_err(|error| {
        if rows.get_ref().is_over {
            return TableError::Endless;
        }
        TableError::Io(error.into())
    })
}

/// How much may be read for one row: every quote in it is written twice, and reading goes ahead.
const fn room_of_row(row_bytes_max: usize) -> usize {
    2 * row_bytes_max + 2 * BUFFER_BYTES
}

/// Reads up to a bound, which is set anew for every row.
struct Bounded {
    bytes: Box<dyn Read + Send>,
    room: usize,
    /// Whether there would have been more.
    is_over: bool,
    /// Whether the last byte was a line's end; one is put behind a file without.
    ends_line: bool,
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.room == 0 {
            self.is_over = true;
            return Err(io::Error::other("over the limit"));
        }
        let length = buffer.len().min(self.room);
        let length = match self.bytes.read(&mut buffer[..length])? {
            0 if !self.ends_line && !buffer.is_empty() => {
                buffer[0] = b'\n';
                1
            }
            length => length,
        };
        if let Some(last) = buffer[..length].last() {
            self.ends_line = *last == b'\n';
        }
        self.room = self.room.saturating_sub(length);
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intake::EventDefaults;

    fn table(text: &str) -> Result<Table, TableError> {
        Table::of(Box::new(io::Cursor::new(text.as_bytes().to_vec())), 65_536)
    }

    #[test]
    fn a_row_is_told_by_the_line_on_which_it_begins() {
        let header = "order_id,status,amount,event_time";
        for (case, end) in [("line feeds", "\n"), ("carriage returns", "\r\n")] {
            let rows = ["1,placed,1,x", "2,\"pla", "ced\",1,x", "", "3,placed", "4,placed,1,x"];
            let text = [&[header], rows.as_slice()].concat().join(end);
            let mut chunk = Chunk::default();
            assert!(!table(&text).unwrap().fill(&mut chunk).unwrap(), "{case}");
            let defaults = EventDefaults { currency: "USD".parse().unwrap() };
            let checked = chunk.check(&defaults, 65_536).unwrap();
            let lines: Vec<u64> = (0..checked.row_count()).map(|row| checked.row(row).0).collect();
            assert_eq!(lines, [2, 3, 6, 7], "{case}");
            assert_eq!(checked.rejected[2].1[0].code, "wrong_cell_count", "{case}");
            assert_eq!(checked.row(2).1, br#"["3","placed"]"#, "{case}");
        }
    }

    #[test]
    fn a_last_row_without_an_end_is_told_by_its_line_too() {
        for (last, detail) in [
            ("3,placed", "The row has 2 cells; the header has 4"),
            (
                "3,\"placed,1,x\n4,placed,1,x\n",
                "The row has 2 cells; the header has 4; it goes over several lines: is a quote left open?",
            ),
        ] {
            let text = format!("order_id,status,amount,event_time\n2,placed,1,x\n{last}");
            let mut chunk = Chunk::default();
            assert!(!table(&text).unwrap().fill(&mut chunk).unwrap(), "{last}");
            let defaults = EventDefaults { currency: "USD".parse().unwrap() };
            let checked = chunk.check(&defaults, 65_536).unwrap();
            assert_eq!(checked.row(1).0, 3, "{last}");
            assert_eq!(checked.rejected[1].1[0].detail, detail);
        }
    }

    #[test]
    fn a_quote_that_is_left_open_does_not_swallow_the_file() {
        let text = "order_id,status,amount,event_time\n1,\"placed,1,x\n".to_owned()
            + &"2,placed,1,x\n".repeat(100_000);
        let mut chunk = Chunk::default();
        let mut table = table(&text).unwrap();
        assert!(matches!(table.fill(&mut chunk), Err(TableError::Endless)));
        assert_eq!(table.next_line(), 2);
    }

    #[test]
    fn a_header_may_have_a_byte_order_mark_and_blanks() {
        assert!(table("\u{FEFF}order_id, status ,amount,event_time\n").is_ok());
        assert!(matches!(table(""), Err(TableError::Header(InvalidHeader::Empty))));
        assert!(matches!(table("a;b\n"), Err(TableError::Header(InvalidHeader::Unknown { .. }))));
    }
}
