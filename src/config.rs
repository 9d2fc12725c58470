//! Settings: the only place that reads the command line and the environment.
//!
//! One struct per concern. A wrong value stops the start with exit code 64 and names its variable.

mod bench;
mod checks;
mod import;
mod keys;
mod report;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use self::checks::{check_database_url, check_queue, check_range};
use crate::domain::{Currency, InvalidSpan, Origin, Span};
use crate::embedded::EmbeddedSettings;
use crate::telemetry::{LogFilter, LogFormat};
pub use bench::{
    BenchCommand, BenchFormat, BenchIngestSettings, InvalidLoopbackUrl, InvalidShare, LoopbackUrl,
    Share, UnknownBenchFormat,
};
pub use import::{ImportSettings, RowFormat, UnknownRowFormat};
pub use keys::{KeyIdSettings, KeysCommand, KeysCreateSettings, KeysListSettings};
pub use report::{ReportFormat, ReportSettings, UnknownReportFormat};

/// Final sales hours and a reconciliation that adds up: one binary, one Postgres.
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
pub struct CommandLine {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: ServeSettings,
}

/// What the binary can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Runs the service (the default).
    Serve(Box<ServeSettings>),
    /// Imports files of events; running it again is safe.
    Import(Box<ImportSettings>),
    /// Recounts the raw log beside what a query wrote; 1 when something does not add up.
    Recount(Box<ReportSettings>),
    /// Itemises every difference between the raw log and what a query wrote; 1 when something does not
    /// add up.
    Reconcile(Box<ReportSettings>),
    /// Measures a running service.
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Makes, lists, revokes and rotates API keys.
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Plays the worked example against a scratch database and says what each step shows.
    Demo(DemoSettings),
    /// Asks the service on this machine whether it is ready; 1 when it is not.
    Healthcheck(HealthcheckSettings),
    /// Prints the OpenAPI document.
    Openapi,
}

impl Command {
    /// The database that it works on; nothing for those that need none.
    const fn database(&self) -> Option<&DatabaseSettings> {
        match self {
            Self::Serve(settings) => Some(&settings.database),
            Self::Import(settings) => Some(&settings.database),
            Self::Recount(settings) | Self::Reconcile(settings) => Some(&settings.database),
            Self::Bench(BenchCommand::Ingest(settings)) => Some(&settings.database),
            Self::Keys(command) => Some(command.database()),
            Self::Demo(_) | Self::Healthcheck(_) | Self::Openapi => None,
        }
    }
}

/// Which service to ask.
#[derive(Debug, Clone, Args)]
pub struct HealthcheckSettings {
    /// Where it listens.
    #[arg(long, env = "TILLMARK_LISTEN", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
}

/// Everything that `tillmark serve` can be told.
#[derive(Debug, Clone, Args)]
pub struct ServeSettings {
    /// Where requests come in.
    #[command(flatten)]
    pub listen: ListenSettings,
    /// Where the data is.
    #[command(flatten)]
    pub database: DatabaseSettings,
    /// What a request may ask for.
    #[command(flatten)]
    pub limits: LimitSettings,
    /// What is filled in.
    #[command(flatten)]
    pub shop: ShopSettings,
    /// What is logged.
    #[command(flatten)]
    pub log: LogSettings,
    /// Where `tests/campaign` has the service die.
    #[cfg(feature = "faults")]
    #[arg(long, env = "TILLMARK_FAULT", hide = true)]
    pub fault: Option<crate::faults::FaultPlan>,
}

impl ServeSettings {
    /// The settings of a service that nobody configured, whatever the environment says.
    ///
    /// # Panics
    /// Never: every setting of a service has a default.
    pub fn defaults() -> Self {
        let command = CommandLine::command().mut_args(|argument| argument.env(None::<&str>));
        let matches = command.try_get_matches_from(["tillmark"]);
        let line = matches.and_then(|matches| CommandLine::from_arg_matches(&matches));
        line.expect("every setting of a service has a default").serve
    }
}

/// Where requests come in.
#[derive(Debug, Clone, Args)]
pub struct ListenSettings {
    /// Address and port to listen on; port 0 takes a free one.
    #[arg(long, env = "TILLMARK_LISTEN", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// Listen beyond this machine although there is no API key, so that nobody has to show one.
    #[arg(long, env = "TILLMARK_INSECURE_NO_AUTH")]
    pub insecure_no_auth: bool,
    /// Origins of web pages that may ask from a browser, with commas between them; unset: none.
    #[arg(long, env = "TILLMARK_CORS_ORIGINS", value_delimiter = ',')]
    pub cors_origins: Vec<Origin>,
}

impl ListenSettings {
    /// Whether everybody may come in while there is no API key: nobody beyond this machine, unless
    /// that is what is wanted.
    pub const fn is_open_without_keys(&self) -> bool {
        self.listen.ip().is_loopback() || self.insecure_no_auth
    }

    /// Whether only this machine reaches the service, as far as anybody said.
    pub const fn is_local(&self) -> bool {
        self.listen.ip().is_loopback() && !self.insecure_no_auth
    }
}

/// Where the data is.
#[derive(Debug, Clone, Args)]
pub struct DatabaseSettings {
    /// Postgres 15 or newer; unset: a private Postgres, started and stopped with the service.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    database_url: Option<String>,
    /// Where the private Postgres keeps its data; `./tillmark-data` unless set, as root
    /// `/var/lib/tillmark`.
    #[arg(long, env = "TILLMARK_DATA_DIR")]
    pub data_dir: Option<PathBuf>,
    /// Folder of the server programs for the private Postgres; the newest found unless set.
    #[arg(long, env = "PG_BIN_DIR")]
    pub pg_bin_dir: Option<PathBuf>,
    /// How long to wait at the start for the database to answer.
    #[arg(long, env = "TILLMARK_DATABASE_WAIT", default_value = "30 seconds", value_parser = some_time)]
    pub database_wait: Span,
    #[arg(long, env = "PATH", hide = true)]
    search_path: Option<OsString>,
}

impl DatabaseSettings {
    /// The address of the database, if there is one of its own; an empty one counts as unset.
    pub fn url(&self) -> Option<&str> {
        self.database_url.as_deref().filter(|url| !url.is_empty())
    }

    /// The settings of the private Postgres.
    pub fn embedded(&self) -> EmbeddedSettings {
        EmbeddedSettings {
            data_dir: self.data_dir.clone(),
            pg_bin_dir: self.pg_bin_dir.clone(),
            search_path: self.search_path.clone(),
        }
    }
}

/// What requests may ask for.
#[derive(Debug, Clone, Args)]
pub struct LimitSettings {
    /// The most events of one request.
    #[arg(long, env = "TILLMARK_REQUEST_EVENTS_MAX", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub request_events_max: u32,
    /// The most bytes of a request's body, before and after decompression.
    #[arg(long, env = "TILLMARK_BODY_BYTES_MAX", default_value_t = 10 << 20, value_parser = clap::value_parser!(u32).range(1024..))]
    pub body_bytes_max: u32,
    /// The most bytes of one event's JSON.
    #[arg(long, env = "TILLMARK_EVENT_BYTES_MAX", default_value_t = 64 << 10, value_parser = clap::value_parser!(u32).range(256..))]
    pub event_bytes_max: u32,
    /// The most events waiting to be stored, over all requests; at least those of one request.
    #[arg(long, env = "TILLMARK_QUEUE_EVENTS_MAX", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub queue_events_max: u32,
    /// The most bytes of bodies waiting to be stored, over all requests; at least those of one body.
    #[arg(long, env = "TILLMARK_QUEUE_BYTES_MAX", default_value_t = 64 << 20, value_parser = clap::value_parser!(u32).range(1024..))]
    pub queue_bytes_max: u32,
    /// How far ahead of the database's clock an event may be before it is put in quarantine; `off`:
    /// any distance.
    #[arg(long, env = "TILLMARK_MAX_FUTURE_SKEW", default_value = "15 minutes")]
    pub max_future_skew: MaxFutureSkew,
    /// How long after its receipt an event's id is remembered, so that a retry is a duplicate.
    #[arg(long, env = "TILLMARK_EVENT_ID_RETENTION", default_value = "45 days", value_parser = some_time)]
    pub event_id_retention: Span,
    /// How long the replica that runs the queries keeps them without renewing its lease; no other
    /// replica takes over from a frozen one sooner.
    #[arg(long, env = "TILLMARK_LEASE", default_value = "10 seconds", value_parser = a_second_or_more)]
    pub lease: Span,
    /// The most events that one API key may post a second, twice as many at once, on each replica;
    /// unset: as many as it likes.
    #[arg(long, env = "TILLMARK_KEY_EVENTS_PER_SECOND", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub key_events_per_second: Option<u32>,
    /// The most connections of clients at a time; others wait to be accepted.
    #[arg(long, env = "TILLMARK_CONNECTIONS_MAX", default_value_t = 4_096, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub connections_max: u32,
    /// How long a request's header may take.
    #[arg(long, env = "TILLMARK_HEADER_TIMEOUT", default_value = "10 seconds", value_parser = some_time)]
    pub header_timeout: Span,
    /// How long a request's body may take.
    #[arg(long, env = "TILLMARK_BODY_TIMEOUT", default_value = "30 seconds", value_parser = some_time)]
    pub body_timeout: Span,
    /// How long an answer may take.
    #[arg(long, env = "TILLMARK_REQUEST_TIMEOUT", default_value = "30 seconds", value_parser = some_time)]
    pub request_timeout: Span,
}

/// A duration, or nothing for `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaxFutureSkew(pub Option<Span>);

impl FromStr for MaxFutureSkew {
    type Err = InvalidSpan;

    fn from_str(text: &str) -> Result<Self, InvalidSpan> {
        if text == "off" { Ok(Self(None)) } else { text.parse().map(|span| Self(Some(span))) }
    }
}

/// What the shop is like.
#[derive(Debug, Clone, Args)]
pub struct ShopSettings {
    /// Currency of events that name none (ISO 4217).
    #[arg(long, env = "TILLMARK_CURRENCY", default_value = "USD")]
    pub currency: Currency,
    /// Status that `hourly_sales` and `hourly_sales_live` count; read when they are created.
    #[arg(long, env = "TILLMARK_HOURLY_SALES_STATUS", default_value = "placed")]
    pub hourly_sales_status: crate::domain::Status,
    /// Their watermark delay; read when they are created.
    #[arg(long, env = "TILLMARK_HOURLY_SALES_DELAY", default_value = "1 hour")]
    pub hourly_sales_delay: Span,
}

/// What is logged.
#[derive(Debug, Clone, Args)]
pub struct LogSettings {
    /// A tracing filter, such as `info` or `tillmark::pipeline=debug`.
    #[arg(long, env = "TILLMARK_LOG", default_value = "info")]
    pub log: LogFilter,
    /// How log lines are written: `text` or `json`.
    #[arg(long, env = "TILLMARK_LOG_FORMAT", default_value = "text")]
    pub log_format: LogFormat,
}

/// What `tillmark demo` can be told.
#[derive(Debug, Clone, Args)]
pub struct DemoSettings {
    /// Folder of the server programs for the scratch Postgres.
    #[arg(long, env = "PG_BIN_DIR")]
    pub pg_bin_dir: Option<PathBuf>,
    #[arg(long, env = "PATH", hide = true)]
    search_path: Option<OsString>,
}

impl DemoSettings {
    /// Where the folder of the scratch Postgres is made.
    pub fn scratch_parent(&self) -> PathBuf {
        std::env::temp_dir()
    }

    /// The settings of a scratch Postgres in `folder`.
    pub fn embedded(&self, folder: &Path) -> EmbeddedSettings {
        EmbeddedSettings {
            data_dir: Some(folder.to_owned()),
            pg_bin_dir: self.pg_bin_dir.clone(),
            search_path: self.search_path.clone(),
        }
    }
}

/// The command line or the environment asked for something else than a command.
#[derive(Debug)]
pub enum Refusal {
    /// Help or version, asked for: print it and end well.
    Shown(String),
    /// A wrong setting: print it and end with exit code 64.
    Wrong(String),
}

impl CommandLine {
    /// Reads the command line and the environment.
    ///
    /// # Errors
    /// [`Refusal`] holds the text to print.
    pub fn read() -> Result<Command, Refusal> {
        Self::read_from(std::env::args_os())
    }

    fn read_from(arguments: impl IntoIterator<Item = OsString>) -> Result<Command, Refusal> {
        let line = Self::try_parse_from(arguments).map_err(|error| match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Refusal::Shown(error.to_string()),
            _ => Refusal::Wrong(explain(&error)),
        })?;
        let command = line.command.unwrap_or_else(|| Command::Serve(Box::new(line.serve)));
        if let Some(settings) = command.database() {
            check_database_url(settings)?;
        }
        match &command {
            Command::Serve(settings) => check_queue(&settings.limits)?,
            Command::Recount(settings) | Command::Reconcile(settings) => check_range(settings)?,
            _ => {}
        }
        Ok(command)
    }
}

/// A timeout of nothing would refuse everything.
fn some_time(text: &str) -> Result<Span, String> {
    match text.parse() {
        Ok(Span::ZERO) => Err("it must be longer than nothing".to_owned()),
        Ok(span) => Ok(span),
        Err(error) => Err(format!("`{text}` {error}")),
    }
}

/// A lease is renewed four times in its length, over a network.
fn a_second_or_more(text: &str) -> Result<Span, String> {
    let span = some_time(text)?;
    if span < Span::from_micros(1_000_000) {
        return Err("it must be at least one second".to_owned());
    }
    Ok(span)
}

/// The error's own text, and the variable of the setting that it is about.
fn explain(error: &clap::Error) -> String {
    let variable = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(shown)) => variable_of(shown),
        _ => None,
    };
    match variable {
        Some(variable) => format!("{}The setting is {variable}.\n", error.render()),
        None => error.render().to_string(),
    }
}

/// The environment variable of an argument, by the text that clap shows for it.
fn variable_of(shown: &str) -> Option<String> {
    let command = CommandLine::command();
    let subcommands = command.get_subcommands().flat_map(clap::Command::get_arguments);
    let flag = shown.split([' ', '=']).next()?.trim_start_matches('-').to_owned();
    command
        .get_arguments()
        .chain(subcommands)
        .find(|argument| argument.get_long() == Some(flag.as_str()))
        .and_then(|argument| argument.get_env())
        .map(|variable| variable.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_cannot_work_is_refused_by_its_variable() {
        for (arguments, variable) in [
            ("--database-url=mysql://root:secret@localhost/shop", Some("DATABASE_URL")),
            ("--database-url=", None),
            ("--database-url=postgres://localhost/shop", None),
            ("--database-url=postgresql://localhost/shop", None),
            ("--database-wait=PT0S", Some("TILLMARK_DATABASE_WAIT")),
            ("--header-timeout=PT0S", Some("TILLMARK_HEADER_TIMEOUT")),
            ("--body-timeout=PT0S", Some("TILLMARK_BODY_TIMEOUT")),
            ("--request-timeout=PT0S", Some("TILLMARK_REQUEST_TIMEOUT")),
            ("--lease=999 ms", Some("TILLMARK_LEASE")),
            ("--request-timeout=soon", Some("TILLMARK_REQUEST_TIMEOUT")),
            ("--hourly-sales-delay=PT0S", None),
            ("--queue-events-max=9999", Some("TILLMARK_QUEUE_EVENTS_MAX")),
            ("--queue-events-max=9999 --request-events-max=9999", None),
            ("--queue-bytes-max=10485759", Some("TILLMARK_QUEUE_BYTES_MAX")),
            ("--queue-bytes-max=10485760", None),
            ("--connections-max=0", Some("TILLMARK_CONNECTIONS_MAX")),
            ("--cors-origins=https://a.example,*", Some("TILLMARK_CORS_ORIGINS")),
            ("--cors-origins=https://a.example,http://localhost:3000", None),
        ] {
            let arguments = format!("tillmark serve {arguments}");
            let refused = match CommandLine::read_from(arguments.split(' ').map(OsString::from)) {
                Ok(_) => None,
                Err(Refusal::Wrong(text)) => Some(text),
                Err(Refusal::Shown(text)) => panic!("{arguments} shows {text}"),
            };
            assert_eq!(refused.is_some(), variable.is_some(), "{arguments}: {refused:?}");
            let text = refused.unwrap_or_default();
            assert!(text.contains(variable.unwrap_or_default()), "{arguments}: {text}");
            assert!(!text.contains("secret"), "{text}");
        }
    }
}
