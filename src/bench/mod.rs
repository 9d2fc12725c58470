//! `tillmark bench ingest`: a load generator against a running service.
//!
//! Invariants:
//! * It ends by itself: sending is bounded in time and in events, and so is waiting for answers.
//! * It loads nothing but this machine.
//! * Latency counts from when a request was due, so that a service which stalls does not slow down
//!   its own measurement ("coordinated omission").
//! * One thread does everything, because service and Postgres share the machine with it.

mod connection;
mod events;
mod pace;
mod report;
mod tally;
mod verify;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex};

use tokio::net::TcpStream;

use crate::clock::{self, Stopwatch};
use crate::config::BenchIngestSettings;
use crate::database::{Database, DatabaseError, PoolSizes};
use crate::domain::{Seq, Span};
use crate::embedded::running_url;
use connection::{Run, post_until_over};
use events::Recipe;
use pace::Pace;
use report::Report;
use tally::Tally;

const POOL_SIZES: PoolSizes = PoolSizes { ingest: 1, engine: 1, reads: 1 };
/// How long answers are waited for after the last request.
const GRACE_US: u64 = 15_000_000;

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// Nobody listens.
    #[error(
        "no service listens on {address}; start one with `tillmark serve`, or name it with --url"
    )]
    NoService {
        /// The address and port.
        address: SocketAddr,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// Not one request was answered.
    #[error("{address} answered none of the requests")]
    NoAnswer {
        /// The address and port.
        address: SocketAddr,
    },
    /// No request was let in.
    #[error(
        "{address} lets nobody post who has no key for it: set TILLMARK_KEY to one with the scope `events:write` and no stores"
    )]
    NotLetIn {
        /// The address and port.
        address: SocketAddr,
    },
    /// There is no database to look into.
    #[error(
        "--verify needs the database of the service: set DATABASE_URL, or TILLMARK_DATA_DIR where its private Postgres is"
    )]
    NoDatabase,
    /// The database cannot be looked into.
    #[error("the answers cannot be verified")]
    Verify(#[from] DatabaseError),
    /// The system refused something.
    #[error("could not start the threads of the measurement")]
    System(#[source] io::Error),
}

impl BenchError {
    /// What the process answers: `EX_USAGE` or `EX_UNAVAILABLE`.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::NotLetIn { .. } | Self::NoDatabase | Self::Verify(DatabaseError::Address(_)) => {
                64
            }
            Self::NoService { .. } | Self::NoAnswer { .. } | Self::Verify(_) | Self::System(_) => {
                69
            }
        }
    }
}

/// Whether the service kept its promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// As far as anybody looked.
    Sound,
    /// Good events were refused, or answered ones are not in the log exactly once (`EX_SOFTWARE`).
    Unsound,
}

impl Found {
    /// What the process answers.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Sound => 0,
            Self::Unsound => 70,
        }
    }
}

/// Posts made-up events, and prints how they were answered.
///
/// # Errors
/// [`BenchError`] when nothing could be measured or verified.
pub fn ingest(settings: &BenchIngestSettings) -> Result<Found, BenchError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(BenchError::System)?;
    let report = runtime.block_on(measure(settings))?;
    if settings.json {
        println!("{}", serde_json::json!(report));
    } else {
        println!("{report}");
    }
    Ok(if report.is_sound() { Found::Sound } else { Found::Unsound })
}

async fn measure(settings: &BenchIngestSettings) -> Result<Report, BenchError> {
    let address = settings.url.0;
    TcpStream::connect(address)
        .await
        .map_err(|source| BenchError::NoService { address, source })?;
    let log = if settings.verify { Some(Log::join(settings).await?) } else { None };
    let run = send(settings).await?;
    let tally = run.take_tally();
    if tally.statuses.is_empty() {
        return Err(BenchError::NoAnswer { address });
    }
    if tally.statuses.keys().all(|status| matches!(status, 401 | 403)) {
        return Err(BenchError::NotLetIn { address });
    }
    let verification = match log {
        Some(log) => Some(verify::verify(&log.database, log.start, &run.recipe, &tally).await?),
        None => None,
    };
    Ok(Report::of(settings, &tally, run.pace.not_sent(), verification))
}

/// Sends everything and waits for the answers.
async fn send(settings: &BenchIngestSettings) -> Result<Arc<Run>, BenchError> {
    let recipe = Recipe::of(settings, clock::now());
    let since = Stopwatch::start();
    let until_us = settings.duration.as_micros().unsigned_abs();
    let pace = Arc::new(match settings.rate {
        None => Pace::closed_loop(since, until_us),
        Some(rate) => Pace::open_loop(since, until_us, rate, settings.batch, settings.events),
    });
    let run = Arc::new(Run {
        address: settings.url.0,
        authorization: settings
            .key
            .as_ref()
            .map_or_else(String::new, |key| format!("authorization: Bearer {key}\r\n")),
        recipe,
        pace: Arc::clone(&pace),
        batch: u32::from(settings.batch),
        events_left: AtomicU32::new(settings.events),
        give_up_us: until_us + GRACE_US,
        tally: Mutex::new(Tally::of(settings.connections)),
    });
    pace.start().map_err(BenchError::System)?;
    let connections: Vec<_> = (0..settings.connections)
        .map(|number| tokio::spawn(post_until_over(Arc::clone(&run), number)))
        .collect();
    for connection in connections {
        // A connection that panicked has its answers counted; they will not verify.
        drop(connection.await);
    }
    Ok(run)
}

/// The log as it was before the run.
struct Log {
    database: Database,
    start: Seq,
}

impl Log {
    async fn join(settings: &BenchIngestSettings) -> Result<Self, BenchError> {
        let url = match settings.database.url() {
            Some(url) => url.to_owned(),
            None => running_url(&settings.database.embedded()).ok_or(BenchError::NoDatabase)?,
        };
        let wait_max: Span = settings.database.database_wait;
        let database = Database::join(&url, POOL_SIZES, wait_max).await?;
        let start = database.raw_log_head().await?;
        Ok(Self { database, start })
    }
}
