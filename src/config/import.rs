//! Settings of `tillmark import`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

use super::{DatabaseSettings, MaxFutureSkew};
use crate::domain::Currency;
use crate::telemetry::LogFilter;

/// What `tillmark import` can be told.
#[derive(Debug, Clone, Args)]
pub struct ImportSettings {
    /// Files of events, NDJSON or CSV with a header, each plain, gzip or zstd; `-`: standard input.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// How events are written, `ndjson` or `csv`, where the name of a file does not say it.
    #[arg(long)]
    pub format: Option<RowFormat>,
    /// Where rows go that were not taken, each with its line and the reasons; `<FILE>.rejected`
    /// unless set.
    #[arg(long, value_name = "FILE")]
    pub rejected: Option<PathBuf>,
    /// Where the data is; with a private Postgres, also while a service runs on it.
    #[command(flatten)]
    pub database: DatabaseSettings,
    /// Currency of events that name none (ISO 4217).
    #[arg(long, env = "TILLMARK_CURRENCY", default_value = "USD")]
    pub currency: Currency,
    /// The most bytes of one event's JSON.
    #[arg(long, env = "TILLMARK_EVENT_BYTES_MAX", default_value_t = 64 << 10, value_parser = clap::value_parser!(u32).range(256..))]
    pub event_bytes_max: u32,
    /// How far ahead of the database's clock an event may be before it is put in quarantine; `off`:
    /// any distance.
    #[arg(long, env = "TILLMARK_MAX_FUTURE_SKEW", default_value = "15 minutes")]
    pub max_future_skew: MaxFutureSkew,
    /// A tracing filter for what is logged beside the progress.
    #[arg(long, env = "TILLMARK_LOG", default_value = "warn")]
    pub log: LogFilter,
}

/// How the events of a file are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowFormat {
    /// An event a line, as JSON.
    NdJson,
    /// Rows under a header that names the fields.
    Csv,
}

/// A word that names no format.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("is neither `ndjson` nor `csv`")]
pub struct UnknownRowFormat;

impl FromStr for RowFormat {
    type Err = UnknownRowFormat;

    fn from_str(text: &str) -> Result<Self, UnknownRowFormat> {
        match text {
            "ndjson" => Ok(Self::NdJson),
            "csv" => Ok(Self::Csv),
            _ => Err(UnknownRowFormat),
        }
    }
}
