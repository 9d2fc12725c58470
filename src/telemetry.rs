//! What the service says of itself: logs, once per fact, readable alone, searchable by field; and counts.

mod context;
mod histogram;

use std::io::IsTerminal as _;
use std::str::FromStr;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format;

use context::Lines;
pub use context::LogContext;
pub use histogram::{Counted, Histogram};

/// Which log lines are written: a tracing filter such as `info` or `tillmark::pipeline=debug`.
#[derive(Debug, Clone)]
pub struct LogFilter(String);

impl FromStr for LogFilter {
    type Err = tracing_subscriber::filter::ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        EnvFilter::try_new(text).map(|_| Self(text.to_owned()))
    }
}

impl LogFilter {
    /// The filter, and no notices of Postgres ("relation already exists, skipping") unless it names them.
    fn directives(&self) -> EnvFilter {
        let filter = EnvFilter::new(&self.0);
        if filter.max_level_hint().is_some_and(|level| level < LevelFilter::INFO) {
            return filter;
        }
        EnvFilter::new(format!("sqlx::postgres::notice=warn,{}", self.0))
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
    let lines =
        tracing_subscriber::fmt().with_env_filter(filter.directives()).with_writer(std::io::stderr);
    // On a terminal the default stands: colours, unless NO_COLOR is set.
    let lines = if std::io::stderr().is_terminal() { lines } else { lines.with_ansi(false) };
    let started = match format {
        LogFormat::Text => {
            lines.event_format(Lines::Text(format::format().with_target(false))).try_init()
        }
        LogFormat::Json => {
            let json = format::format().json().flatten_event(true);
            lines.json().event_format(Lines::Json(json)).try_init()
        }
    };
    drop(started);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_of_postgres_are_written_only_when_they_are_asked_for() {
        for (filter, notices) in [
            ("info", Some("sqlx::postgres::notice=warn")),
            ("tillmark=debug", Some("sqlx::postgres::notice=warn")),
            ("warn,sqlx::postgres::notice=info", Some("sqlx::postgres::notice=info")),
            ("off", None),
            ("error", None),
        ] {
            let directives =
                filter.parse::<LogFilter>().expect("a filter").directives().to_string();
            let found = directives.split(',').find(|directive| directive.contains("notice"));
            assert_eq!(found, notices, "{filter}");
        }
    }
}
