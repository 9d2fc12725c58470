//! Settings of `tillmark bench`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use clap::{Args, Subcommand};

use super::DatabaseSettings;
use crate::domain::Span;

/// What can be measured.
#[derive(Debug, Clone, Subcommand)]
pub enum BenchCommand {
    /// Posts made-up events to a service on this machine and measures its answers.
    Ingest(Box<BenchIngestSettings>),
}

/// What `tillmark bench ingest` can be told.
#[derive(Debug, Clone, Args)]
pub struct BenchIngestSettings {
    /// The service; on this machine.
    #[arg(long, default_value = "http://127.0.0.1:8080")]
    pub url: LoopbackUrl,
    /// The API key to post with, of scope `events:write`, where the service asks for one.
    #[arg(long, env = "TILLMARK_KEY", hide_env_values = true, value_parser = key)]
    pub key: Option<String>,
    /// Events to send a second, whether they are answered or not (open loop); unset: each connection
    /// posts again as soon as it has its answer (closed loop).
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub rate: Option<u32>,
    /// Connections to post on.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub connections: u16,
    /// Tills that the events say they come from.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub tills: u16,
    /// Events in one request.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub batch: u16,
    /// How long to send, at most 10 minutes.
    #[arg(long, default_value = "10 seconds", value_parser = duration)]
    pub duration: Span,
    /// The most events to send.
    #[arg(long, default_value_t = 5_000_000, value_parser = clap::value_parser!(u32).range(1..=20_000_000))]
    pub events: u32,
    /// How events are written: `json` or `ndjson`.
    #[arg(long, default_value = "json")]
    pub format: BenchFormat,
    /// Share of events that were sent before, such as `1%`.
    #[arg(long, default_value = "0%")]
    pub duplicates: Share,
    /// Share of events whose time lies behind, such as `1%`.
    #[arg(long, default_value = "0%")]
    pub late: Share,
    /// How far the time of those lies behind.
    #[arg(long, default_value = "2 hours")]
    pub late_by: Span,
    /// Afterwards look into the database that every answered event is in the log exactly once.
    #[arg(long)]
    pub verify: bool,
    /// Which database: `DATABASE_URL`, or the private Postgres of the running service.
    #[command(flatten)]
    pub database: DatabaseSettings,
    /// Print the results as JSON.
    #[arg(long)]
    pub json: bool,
}

const DURATION_MILLIS_MAX: i64 = 600_000;

fn duration(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error| format!("{error}"))?;
    if (1..=DURATION_MILLIS_MAX).contains(&span.as_millis()) {
        return Ok(span);
    }
    Err("is not between 1 millisecond and 10 minutes".to_owned())
}

/// A text that can stand in a header.
fn key(text: &str) -> Result<String, &'static str> {
    let is_fit = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    is_fit.then(|| text.to_owned()).ok_or("is not a key: they look like `tm_<id>_<secret>`")
}

/// Where a service on this machine listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopbackUrl(pub SocketAddr);

/// An address that will not be loaded with made-up events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLoopbackUrl {
    /// Not of the form.
    #[error("is not of the form `http://127.0.0.1:8080`")]
    Form,
    /// Another machine.
    #[error("is not on this machine; made-up events are sent to 127.0.0.1, ::1 or localhost only")]
    Remote,
}

impl FromStr for LoopbackUrl {
    type Err = InvalidLoopbackUrl;

    fn from_str(text: &str) -> Result<Self, InvalidLoopbackUrl> {
        let authority = text.strip_prefix("http://").ok_or(InvalidLoopbackUrl::Form)?;
        let authority = authority.strip_suffix('/').unwrap_or(authority);
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| InvalidLoopbackUrl::Form)?)
            }
            Some(_) | None => (authority, 80),
        };
        if host.is_empty() || host.contains(['/', '@', '?', '#']) {
            return Err(InvalidLoopbackUrl::Form);
        }
        let host = host.trim_matches(['[', ']']);
        let ip = match host.parse::<IpAddr>() {
            Ok(ip) => ip,
            Err(_) if host.eq_ignore_ascii_case("localhost") => Ipv4Addr::LOCALHOST.into(),
            Err(_) => return Err(InvalidLoopbackUrl::Remote),
        };
        if ip.is_loopback() {
            Ok(Self(SocketAddr::new(ip, port)))
        } else {
            Err(InvalidLoopbackUrl::Remote)
        }
    }
}

/// A share of all, in millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    millionths: u32,
}

impl Share {
    /// Whether a number that was drawn evenly falls into the share.
    pub const fn holds(self, drawn: u64) -> bool {
        drawn % 1_000_000 < self.millionths as u64
    }
}

/// A text that is no share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not a share from `0%` to `100%`, such as `1%` or `0.5%`")]
pub struct InvalidShare;

impl FromStr for Share {
    type Err = InvalidShare;

    fn from_str(text: &str) -> Result<Self, InvalidShare> {
        let number = text.strip_suffix('%').ok_or(InvalidShare)?.trim_end();
        let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
        let are_digits =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !are_digits(whole) || !are_digits(decimals) || decimals.len() > 4 {
            return Err(InvalidShare);
        }
        let decimals = format!("{decimals:0<4}");
        let digits: u32 = format!("{whole}{decimals}").parse().map_err(|_| InvalidShare)?;
        if digits > 1_000_000 { Err(InvalidShare) } else { Ok(Self { millionths: digits }) }
    }
}

/// How events are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BenchFormat {
    /// An event, or an array of them.
    Json,
    /// An event a line.
    NdJson,
}

/// A word that names no format.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("is neither `json` nor `ndjson`")]
pub struct UnknownBenchFormat;

impl FromStr for BenchFormat {
    type Err = UnknownBenchFormat;

    fn from_str(text: &str) -> Result<Self, UnknownBenchFormat> {
        match text {
            "json" => Ok(Self::Json),
            "ndjson" => Ok(Self::NdJson),
            _ => Err(UnknownBenchFormat),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_up_events_stay_on_this_machine() {
        for (text, expected) in [
            ("http://127.0.0.1:8080", Ok("127.0.0.1:8080")),
            ("http://localhost:9000/", Ok("127.0.0.1:9000")),
            ("http://[::1]:8080", Ok("[::1]:8080")),
            ("http://[::1]", Ok("[::1]:80")),
            ("http://127.1.2.3", Ok("127.1.2.3:80")),
            ("http://10.0.0.1:8080", Err(InvalidLoopbackUrl::Remote)),
            ("http://0.0.0.0:8080", Err(InvalidLoopbackUrl::Remote)),
            ("http://tillmark.example:8080", Err(InvalidLoopbackUrl::Remote)),
            ("http://localhost@10.0.0.1:8080", Err(InvalidLoopbackUrl::Form)),
            ("http://127.0.0.1:x", Err(InvalidLoopbackUrl::Form)),
            ("http://127.0.0.1:8080/v1", Err(InvalidLoopbackUrl::Form)),
            ("https://127.0.0.1:8080", Err(InvalidLoopbackUrl::Form)),
        ] {
            let expected = expected.map(|address| LoopbackUrl(address.parse().unwrap()));
            assert_eq!(text.parse(), expected, "{text}");
        }
    }

    #[test]
    fn a_share_is_a_percentage_with_at_most_four_decimals() {
        for (text, expected) in [
            ("1%", Some(10_000)),
            ("0%", Some(0)),
            ("100%", Some(1_000_000)),
            ("0.5 %", Some(5_000)),
            ("0.0001%", Some(1)),
            ("100.0001%", None),
            ("0.00001%", None),
            ("-1%", None),
            ("1", None),
            (".5%", None),
        ] {
            let share = text.parse::<Share>().ok().map(|share| share.millionths);
            assert_eq!(share, expected, "{text}");
        }
    }
}
