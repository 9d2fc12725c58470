//! Runs what the command line asks for.

mod healthcheck;
mod keys;

use std::io::{self, Write as _};

use std::error::Error;

use crate::app::{self, StartError};
use crate::bench::{self, BenchError};
use crate::config::{BenchCommand, Command};
use crate::http::Depth;
use crate::import::{self, ImportError};
use crate::report::{self, ReportError};
use crate::{demo, http};
use keys::KeysError;

/// Why a command did not do its work.
#[derive(Debug)]
pub struct Failure {
    /// What the process answers.
    pub exit_code: u8,
    /// What happened and why, in one line.
    pub text: String,
}

/// Does what was asked for, and says what the process answers.
///
/// # Errors
/// [`Failure`] has the exit code that says what went wrong.
pub fn run(command: Command) -> Result<u8, Failure> {
    match command {
        Command::Serve(settings) => app::serve(&settings)?,
        Command::Demo(settings) => demo::play(&settings)?,
        Command::Import(settings) => return Ok(import::run(&settings)?.exit_code()),
        Command::Recount(settings) => return Ok(report::run(&settings, Depth::Recount)?),
        Command::Reconcile(settings) => return Ok(report::run(&settings, Depth::Reconciliation)?),
        Command::Bench(BenchCommand::Ingest(settings)) => {
            return Ok(bench::ingest(&settings)?.exit_code());
        }
        Command::Keys(command) => keys::run(&command)?,
        Command::Healthcheck(settings) => return Ok(healthcheck::run(settings.listen)),
        // Whoever reads it may stop when they have seen enough.
        Command::Openapi => drop(writeln!(io::stdout(), "{}", http::openapi_json())),
    }
    Ok(0)
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        Self { exit_code: error.exit_code(), text: in_one_line(&error) }
    }
}

impl From<KeysError> for Failure {
    fn from(error: KeysError) -> Self {
        Self { exit_code: error.exit_code(), text: in_one_line(&error) }
    }
}

impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Self {
        Self { exit_code: error.exit_code(), text: in_one_line(&error) }
    }
}

impl From<ReportError> for Failure {
    fn from(error: ReportError) -> Self {
        Self { exit_code: error.exit_code(), text: in_one_line(&error) }
    }
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Self {
        Self { exit_code: error.exit_code(), text: in_one_line(&error) }
    }
}

/// The error and its causes, without a cause that the text before it repeats, as sqlx does.
fn in_one_line(error: &dyn Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !line.ends_with(&text) {
            line = format!("{line}: {text}");
        }
        cause = error.source();
    }
    line
}
