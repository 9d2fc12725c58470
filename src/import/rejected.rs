//! The file of the rows that were not taken: what each says, where it stands, and why.
//!
//! A row stands in it as JSON where it is JSON, so that `jq -c .row` gives lines to mend and import.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::value::RawValue;

use super::ImportError;
use crate::domain::Fault;

/// The file, made with its first row.
#[derive(Debug)]
pub(super) struct RejectedFile {
    path: PathBuf,
    file: Option<BufWriter<File>>,
}

#[derive(Serialize)]
struct Line<'a> {
    file: &'a str,
    line: u64,
    row: RowText<'a>,
    errors: Vec<Error<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum RowText<'a> {
    Json(&'a RawValue),
    Text(std::borrow::Cow<'a, str>),
}

#[derive(Serialize)]
struct Error<'a> {
    pointer: &'a str,
    code: &'a str,
    detail: &'a str,
}

impl RejectedFile {
    /// A file at `path`. What an earlier import left there is removed: its rows were read again.
    pub(super) fn at(path: PathBuf) -> Result<Self, ImportError> {
        // Nothing but a file: `/dev/null` may be named too.
        if path.symlink_metadata().is_ok_and(|found| found.is_file())
            && let Err(source) = fs::remove_file(&path)
        {
            return Err(ImportError::Rejected { file: path, source });
        }
        Ok(Self { path, file: None })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps a row of `input` that begins on `line`, and what is wrong with it.
    pub(super) fn add(
        &mut self,
        input: &str,
        (line, text): (u64, &[u8]),
        faults: &[Fault],
    ) -> Result<(), ImportError> {
        let row = match serde_json::from_slice(text) {
            Ok(json) => RowText::Json(json),
            Err(_) => RowText::Text(String::from_utf8_lossy(text)),
        };
        let errors = faults.iter().map(|fault| Error {
            pointer: &fault.pointer,
            code: fault.code,
            detail: &fault.detail,
        });
        let line = Line { file: input, line, row, errors: errors.collect() };
        self.write(&line).map_err(|source| self.failure(source))
    }

    /// Hands what was added to the system.
    pub(super) fn flush(&mut self) -> Result<(), ImportError> {
        let flushed = self.file.as_mut().map_or(Ok(()), BufWriter::flush);
        flushed.map_err(|source| self.failure(source))
    }

    fn write(&mut self, line: &Line<'_>) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(BufWriter::new(File::create(&self.path)?)),
        };
        serde_json::to_writer(&mut *file, line)?;
        file.write_all(b"\n")
    }

    fn failure(&self, source: io::Error) -> ImportError {
        ImportError::Rejected { file: self.path.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_kept_as_json_where_it_is_json_and_as_text_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.rejected.ndjson");
        fs::write(&path, "of an earlier import").unwrap();
        let mut file = RejectedFile::at(path.clone()).unwrap();
        assert!(!path.exists());
        let faults = [Fault::new("/amount", "missing", "`amount` is required")];
        for row in [br#"{"amount":1.50}"#.as_slice(), b"{\xFF"] {
            file.add("a.csv", (7, row), &faults).unwrap();
        }
        file.flush().unwrap();
        let errors =
            r#""errors":[{"pointer":"/amount","code":"missing","detail":"`amount` is required"}]"#;
        let expected = format!(
            "{{\"file\":\"a.csv\",\"line\":7,\"row\":{{\"amount\":1.50}},{errors}}}\n\
             {{\"file\":\"a.csv\",\"line\":7,\"row\":\"{{\u{FFFD}\",{errors}}}\n"
        );
        assert_eq!(fs::read_to_string(path).unwrap(), expected);
    }
}
