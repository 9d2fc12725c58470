//! `tillmark recount` and `tillmark reconcile`: the reports of the API, read from the database without the
//! service.
//!
//! Absent on purpose: rules. Both print what [`finance::reconcile`](crate::finance::reconcile) finds.

mod grid;
mod spinner;

use std::io::{self, Write as _};

use crate::app::{NoData, StartError, on_database};
use crate::config::{ReportFormat, ReportSettings};
use crate::database::{Database, DatabaseError, PoolSizes, RecountRange};
use crate::embedded::EmbeddedError;
use crate::http::{Depth, ReportText};
use crate::telemetry::{self, LogFormat};
use spinner::Spinner;

const POOL_SIZES: PoolSizes = PoolSizes { ingest: 1, engine: 1, reads: 1 };

/// Something does not add up.
const EXIT_UNEXPLAINED: u8 = 1;
/// Wrong settings (`EX_USAGE`).
const EXIT_USAGE: u8 = 64;
/// No database to work with (`EX_UNAVAILABLE`).
const EXIT_UNAVAILABLE: u8 = 69;
/// The report cannot be written (`EX_IOERR`).
const EXIT_CANNOT_WRITE: u8 = 74;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The database cannot be used, or has no such query.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The private Postgres did not start or stop.
    #[error(transparent)]
    Embedded(#[from] EmbeddedError),
    /// The system refused something that every command needs.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The report was made and could not be written.
    #[error("could not write the report")]
    Write(#[source] io::Error),
}

impl ReportError {
    /// What the process answers.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Database(
                DatabaseError::Address(_)
                | DatabaseError::NoSuchQuery(_)
                | DatabaseError::NotYet { .. }
                | DatabaseError::BeforeHistory { .. }
                | DatabaseError::TooManyWindows { .. },
            ) => EXIT_USAGE,
            Self::Embedded(error) if error.is_setting() => EXIT_USAGE,
            Self::Start(error) if error.is_setting() => EXIT_USAGE,
            Self::Write(_) => EXIT_CANNOT_WRITE,
            Self::Database(_) | Self::Embedded(_) | Self::Start(_) => EXIT_UNAVAILABLE,
        }
    }
}

/// Prints a report, and says what the process answers: 0, or 1 when something is unexplained.
///
/// # Errors
/// [`ReportError`] says why there is none.
pub fn run(settings: &ReportSettings, depth: Depth) -> Result<u8, ReportError> {
    telemetry::start(&settings.log, LogFormat::Text);
    let report = on_database(&settings.database, NoData::Refuse, async |url| {
        let spinner = Spinner::start(format!("Recounting {}", settings.query));
        let report = report(settings, url, depth).await;
        spinner.end();
        report.map_err(ReportError::from)
    })?;
    print(&report, settings.format).map_err(ReportError::Write)?;
    Ok(if report.unexplained() == 0 { 0 } else { EXIT_UNEXPLAINED })
}

async fn report(
    settings: &ReportSettings,
    url: &str,
    depth: Depth,
) -> Result<ReportText, DatabaseError> {
    let database = Database::join(url, POOL_SIZES, settings.database.database_wait).await?;
    let database = database.with_long_reads();
    let end = |end: Option<crate::domain::RangeEnd>| end.map(|end| end.0);
    let range = RecountRange { from: end(settings.from), to: end(settings.to) };
    let snapshot =
        database.reconciliation_snapshot(&settings.query, range, end(settings.as_of)).await;
    database.close().await;
    Ok(ReportText::of(snapshot?, depth))
}

fn print(report: &ReportText, format: ReportFormat) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match format {
        ReportFormat::Table => out.write_all(grid::text(report).as_bytes())?,
        ReportFormat::Csv => out.write_all(&report.csv())?,
        ReportFormat::Json => out.write_all(&report.json())?,
        ReportFormat::NdJson => out.write_all(&report.ndjson())?,
    }
    out.flush()
}
