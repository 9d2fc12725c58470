//! Settings of `tillmark recount` and `tillmark reconcile`.

use std::str::FromStr;

use clap::Args;

use super::DatabaseSettings;
use crate::domain::{QueryName, RangeEnd};
use crate::telemetry::LogFilter;

/// What `tillmark recount` and `tillmark reconcile` can be told.
#[derive(Debug, Clone, Args)]
pub struct ReportSettings {
    /// The name of the query.
    #[arg(value_name = "QUERY")]
    pub query: QueryName,
    /// The first moment inside: windows that start before are left out; RFC 3339.
    #[arg(long)]
    pub from: Option<RangeEnd>,
    /// The first moment no longer inside: windows that start then or later are left out; RFC 3339.
    #[arg(long)]
    pub to: Option<RangeEnd>,
    /// As both sides stood at this moment, by the database's clock; RFC 3339.
    #[arg(long)]
    pub as_of: Option<RangeEnd>,
    /// The form of the report: `table`, `csv`, `json` or `ndjson`.
    #[arg(long, default_value = "table")]
    pub format: ReportFormat,
    /// Where the data is; with a private Postgres, also while a service runs on it.
    #[command(flatten)]
    pub database: DatabaseSettings,
    /// A tracing filter for what is logged beside the report.
    #[arg(long, env = "TILLMARK_LOG", default_value = "warn")]
    pub log: LogFilter,
}

/// The form of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportFormat {
    /// For people: aligned, without what is zero everywhere, with the sums.
    Table,
    /// The API's CSV.
    Csv,
    /// The API's JSON.
    Json,
    /// The API's NDJSON.
    NdJson,
}

/// A word that names no form of a report.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("is not `table`, `csv`, `json` or `ndjson`")]
pub struct UnknownReportFormat;

impl FromStr for ReportFormat {
    type Err = UnknownReportFormat;

    fn from_str(text: &str) -> Result<Self, UnknownReportFormat> {
        match text {
            "table" => Ok(Self::Table),
            "csv" => Ok(Self::Csv),
            "json" => Ok(Self::Json),
            "ndjson" => Ok(Self::NdJson),
            _ => Err(UnknownReportFormat),
        }
    }
}
