//! Why an import did not come to its end, each a sentence for the person who started it.

use std::io;
use std::path::PathBuf;

use crate::app::StartError;
use crate::database::DatabaseError;
use crate::embedded::EmbeddedError;
use crate::intake::{BodyError, InvalidHeader};

/// The command line is wrong (`EX_USAGE`).
const EXIT_USAGE: u8 = 64;
/// A file does not hold what it should (`EX_DATAERR`).
const EXIT_DATA: u8 = 65;
/// A file cannot be read (`EX_NOINPUT`).
const EXIT_NO_INPUT: u8 = 66;
/// No database to work with (`EX_UNAVAILABLE`).
const EXIT_UNAVAILABLE: u8 = 69;
/// A file cannot be written (`EX_CANTCREAT`).
const EXIT_CANNOT_CREATE: u8 = 73;

/// A failure of an import. What was stored before stays, and running it again is safe.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// Nothing says how events are written.
    #[error(
        "the name of {file} does not say how its events are written; add `--format ndjson` or \
         `--format csv`, or name it .ndjson, .jsonl or .csv, with .gz or .zst behind it if you like"
    )]
    UnknownFormat {
        /// The file, as it was named.
        file: String,
    },
    /// Standard input was named twice.
    #[error("standard input (`-`) can be read only once")]
    StandardInputTwice,
    /// The rejected rows would overwrite what is imported.
    #[error("--rejected names {}, which is to be imported", file.display())]
    RejectedIsInput {
        /// The file.
        file: PathBuf,
    },
    /// A CSV file does not begin with a header that can be used.
    #[error("{file} cannot be imported: {source}")]
    Header {
        /// The file, as it was named.
        file: String,
        /// What is wrong with its header.
        source: InvalidHeader,
    },
    /// A file cannot be read, or not further.
    #[error("could not read {file} {place}")]
    Read {
        /// The file, as it was named.
        file: String,
        /// How far it was read.
        place: String,
        /// The system's answer, or what is damaged.
        #[source]
        source: io::Error,
    },
    /// A quote is left open, or a row is endless.
    #[error(
        "the row of {file} that begins on line {line} is longer than any event may be; is a quote \
         left open in it?"
    )]
    EndlessRow {
        /// The file, as it was named.
        file: String,
        /// The line on which the row begins, from 1.
        line: u64,
    },
    /// Rows that were refused cannot be kept.
    #[error("could not write rejected rows to {}; name another file with --rejected", file.display())]
    Rejected {
        /// The file.
        file: PathBuf,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// The rows that were read together could not be taken apart; no file can cause it.
    #[error("rows that were read could not be checked")]
    Check(#[from] BodyError),
    /// The database cannot be used.
    #[error("the database cannot be used")]
    Database(#[from] DatabaseError),
    /// The private Postgres did not start or stop.
    #[error(transparent)]
    Embedded(#[from] EmbeddedError),
    /// The system refused something that every command needs.
    #[error(transparent)]
    Start(#[from] StartError),
}

impl ImportError {
    /// What the process answers.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::UnknownFormat { .. }
            | Self::StandardInputTwice
            | Self::RejectedIsInput { .. }
            | Self::Header { .. }
            | Self::Database(DatabaseError::Address(_)) => EXIT_USAGE,
            Self::EndlessRow { .. } | Self::Check(_) => EXIT_DATA,
            Self::Read { .. } => EXIT_NO_INPUT,
            Self::Rejected { .. } => EXIT_CANNOT_CREATE,
            Self::Embedded(error) if error.is_setting() => EXIT_USAGE,
            Self::Start(error) if error.is_setting() => EXIT_USAGE,
            Self::Database(_) | Self::Embedded(_) | Self::Start(_) => EXIT_UNAVAILABLE,
        }
    }
}
