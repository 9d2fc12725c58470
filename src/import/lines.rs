//! NDJSON: a row a line, however long a line may be in no more memory than an event may have.

use std::io::{self, BufRead, BufReader, Read};

use super::chunk::Chunk;
use super::file::skip_byte_order_mark;
use crate::domain::Fault;

const BUFFER_BYTES: usize = 64 * 1024;
/// How much of a line that is too long is kept, to be told by.
const KEPT_BYTES: usize = 200;

/// The lines of a file.
pub(super) struct Lines {
    bytes: BufReader<Box<dyn Read + Send>>,
    line_bytes_max: usize,
    /// The number of the line that comes next, from 1.
    next_line: u64,
    line: Vec<u8>,
}

impl Lines {
    pub(super) fn of(bytes: Box<dyn Read + Send>, line_bytes_max: usize) -> io::Result<Self> {
        let mut bytes = BufReader::with_capacity(BUFFER_BYTES, bytes);
        skip_byte_order_mark(&mut bytes)?;
        Ok(Self { bytes, line_bytes_max, next_line: 1, line: Vec::new() })
    }

    /// The line after the last one that was read whole, from 1.
    pub(super) const fn next_line(&self) -> u64 {
        self.next_line
    }

    /// Adds lines to `chunk` until it is full; answers whether there may be more.
    pub(super) fn fill(&mut self, chunk: &mut Chunk) -> io::Result<bool> {
        while chunk.has_room() {
            let Some(length) = self.read_line()? else { return Ok(false) };
            let number = self.next_line;
            self.next_line += 1;
            let too_long = length > self.line_bytes_max;
            let fault = too_long.then(|| {
                let bytes_max = self.line_bytes_max;
                let detail =
                    format!("The line has {length} bytes; at most {bytes_max} are allowed");
                Fault::new("", "too_large", detail)
            });
            let line = self.line.trim_ascii();
            let kept = if too_long { &line[..line.len().min(KEPT_BYTES)] } else { line };
            match kept {
                // A line of nothing but blanks, and more of them than an event may have bytes.
                [] if too_long => chunk.add(number, fault, |text| text.push(b'?')),
                [] => {}
                kept => chunk.add(number, fault, |text| text.extend_from_slice(kept)),
            }
        }
        Ok(true)
    }

    /// Reads a line without its end and answers its length; of one that is too long only the
    /// beginning is kept. Nothing at the end of the file.
    fn read_line(&mut self) -> io::Result<Option<usize>> {
        self.line.clear();
        let mut length = 0_usize;
        let mut is_at_end = true;
        loop {
            let buffer = match self.bytes.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if buffer.is_empty() {
                return Ok((!is_at_end).then_some(length));
            }
            is_at_end = false;
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let piece = &buffer[..end.unwrap_or(buffer.len())];
            let room = self.line_bytes_max.saturating_sub(self.line.len());
            self.line.extend_from_slice(&piece[..piece.len().min(room)]);
            length += piece.len();
            let taken = piece.len() + usize::from(end.is_some());
            self.bytes.consume(taken);
            if end.is_some() {
                return Ok(Some(length));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intake::EventDefaults;

    /// The line numbers and texts of a file's rows.
    fn rows(text: &[u8]) -> Vec<(u64, String)> {
        let mut lines = Lines::of(Box::new(io::Cursor::new(text.to_vec())), 300).unwrap();
        let mut chunk = Chunk::default();
        assert!(!lines.fill(&mut chunk).unwrap());
        let defaults = EventDefaults { currency: "USD".parse().unwrap() };
        let checked = chunk.check(&defaults, 300).unwrap();
        (0..checked.row_count())
            .map(|row| checked.row(row))
            .map(|(line, text)| (line, String::from_utf8_lossy(text).into_owned()))
            .collect()
    }

    #[test]
    fn every_line_that_is_not_blank_is_a_row_under_its_number() {
        let row = |line, text: &str| (line, text.to_owned());
        for (case, text, expected) in [
            ("nothing", b"".as_slice(), vec![]),
            ("blank lines", b"\n \r\n\n", vec![]),
            ("without an end", b"1\n2", vec![row(1, "1"), row(2, "2")]),
            ("carriage returns", b"1\r\n\r\n2\r\n", vec![row(1, "1"), row(3, "2")]),
            ("a byte order mark", b"\xEF\xBB\xBF1\n", vec![row(1, "1")]),
        ] {
            assert_eq!(rows(text), expected, "{case}");
        }
    }

    #[test]
    fn a_line_that_is_too_long_costs_nobody_but_itself() {
        for long in ["x".repeat(100_000), " ".repeat(100_000)] {
            let rows = rows(format!("1\n{long}\n3\n").as_bytes());
            let lines: Vec<u64> = rows.iter().map(|(line, _)| *line).collect();
            assert_eq!(lines, [1, 2, 3]);
            assert!(rows[1].1.len() <= KEPT_BYTES);
        }
    }
}
