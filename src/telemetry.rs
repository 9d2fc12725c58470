//! Logs: once per fact, readable alone, searchable by field.

use std::str::FromStr;

use tracing_subscriber::EnvFilter;

/// Which log lines are written: a tracing filter such as `info` or `tillmark::pipeline=debug`.
#[derive(Debug, Clone)]
pub struct LogFilter(String);

impl FromStr for LogFilter {
    type Err = tracing_subscriber::filter::ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        EnvFilter::try_new(text).map(|_| Self(text.to_owned()))
    }
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// A word that names no format.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("is neither `text` nor `json`")]
pub struct UnknownLogFormat;

impl FromStr for LogFormat {
    type Err = UnknownLogFormat;

    fn from_str(text: &str) -> Result<Self, UnknownLogFormat> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(UnknownLogFormat),
        }
    }
}

/// Starts writing logs to standard error.
///
/// A second start in one process is ignored: the first one's settings stay.
pub fn start(filter: &LogFilter, format: LogFormat) {
    let lines = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(&filter.0))
        .with_writer(std::io::stderr);
    let started = match format {
        LogFormat::Text => lines.with_target(false).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    drop(started);
}
