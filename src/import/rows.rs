//! The rows of one input, whatever their format.

use std::io::Read;

use super::ImportError;
use super::chunk::Chunk;
use super::file::Input;
use super::lines::Lines;
use super::table::{Table, TableError};
use crate::config::RowFormat;

/// Reads an input in chunks.
pub(super) struct Rows {
    input: Input,
    rows: Format,
}

enum Format {
    Lines(Lines),
    Table(Box<Table>),
}

impl Rows {
    /// Reads as far as the first row.
    pub(super) fn of(
        input: &Input,
        bytes: Box<dyn Read + Send>,
        row_bytes_max: usize,
    ) -> Result<Self, ImportError> {
        let rows = match input.format {
            RowFormat::NdJson => Lines::of(bytes, row_bytes_max)
                .map(Format::Lines)
                .map_err(|source| input.unreadable("from its beginning".to_owned(), source))?,
            RowFormat::Csv => Table::of(bytes, row_bytes_max)
                .map(|table| Format::Table(Box::new(table)))
                .map_err(|error| failure(input, error, 1))?,
        };
        Ok(Self { input: input.clone(), rows })
    }

    /// Adds rows to `chunk` until it is full; answers whether there may be more. The chunk keeps
    /// what was read before a failure.
    pub(super) fn fill(&mut self, chunk: &mut Chunk) -> Result<bool, ImportError> {
        match &mut self.rows {
            Format::Lines(lines) => lines.fill(chunk).map_err(|source| {
                let place = format!("from line {} on", lines.next_line());
                self.input.unreadable(place, source)
            }),
            Format::Table(table) => table.fill(chunk).map_err(|error| {
                let line = table.next_line();
                failure(&self.input, error, line)
            }),
        }
    }
}

fn failure(input: &Input, error: TableError, line: u64) -> ImportError {
    match error {
        TableError::Header(source) => ImportError::Header { file: input.to_string(), source },
        TableError::Io(source) => input.unreadable(format!("from line {line} on"), source),
        TableError::Endless => ImportError::EndlessRow { file: input.to_string(), line },
    }
}
