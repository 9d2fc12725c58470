//! Logs: once per fact, readable alone, searchable by field.

use tracing_subscriber::EnvFilter;

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Starts writing logs to standard error; `filter` is a tracing filter such as `info`.
///
/// A second start in one process is ignored: the first one's settings stay.
pub fn start(filter: EnvFilter, format: LogFormat) {
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match format {
        LogFormat::Text => lines.with_target(false).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    drop(started);
}
