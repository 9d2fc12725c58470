//! Puts the service together, starts it, and ends it without losing an answer.

mod on_database;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::{info, warn};

pub(crate) use self::on_database::{NoData, on_database};
use crate::access::{AccessSettings, Keyring};
use crate::config::{LimitSettings, ListenSettings, ServeSettings, ShopSettings};
use crate::database::{Database, DatabaseError, FutureGuard, PoolSizes};
use crate::domain::{
    EventField, Filter, OutputMode, QueryName, QuerySpec, Seq, Span, Start, Trigger, WindowSpec,
};
use crate::embedded::{EmbeddedError, EmbeddedPostgres};
use crate::http::{self, App, DataDisk, HttpSettings, LocalClient, Phase};
use crate::intake::{Intake, IntakeSettings};
use crate::pipeline::Pipeline;
use crate::telemetry;

/// Connections that may wait to be accepted, as far as the system allows: all tills of a chain come back at
/// once after a restart, and one that finds no room tries again only after a second.
const BACKLOG: u32 = 4_096;
const POOL_SIZES: PoolSizes = PoolSizes { ingest: 2, engine: 8, reads: 10 };
/// A commit takes about this many events at most; beyond it, the next commit goes on.
const COMMIT_EVENTS_MAX: usize = 10_000;
const DRAIN_SECONDS_MAX: i64 = 20;
const WRITER_STOP_MAX: Duration = Duration::from_secs(3);
const PIPELINE_STOP_MAX: Duration = Duration::from_secs(3);
/// How often old event ids are looked for: 24 times in the time for which they are kept, within these.
const FORGET_PAUSE_MIN: Duration = Duration::from_millis(100);
const FORGET_PAUSE_MAX: Duration = Duration::from_hours(1);
/// How long what is left may take to end.
pub(crate) const CLOSE_MAX: Duration = Duration::from_secs(2);

/// Why the service did not start, or did not end as it should.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another program listens there already.
    #[error(
        "{address} is taken by another program; choose another with TILLMARK_LISTEN or --listen"
    )]
    AddressTaken {
        /// The address and port.
        address: SocketAddr,
    },
    /// The system does not let us listen there.
    #[error("TILLMARK_LISTEN is {address}, which cannot be listened on")]
    Listen {
        /// The address and port.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Others could do what they like.
    #[error(
        "TILLMARK_LISTEN is {address}, which others can reach, and there is no API key yet. Create one \
         with `tillmark keys create --name admin --scope admin` on the same database, or listen on \
         127.0.0.1, or add --insecure-no-auth if something in front of Tillmark keeps others out"
    )]
    OpenToOthers {
        /// The address and port.
        address: SocketAddr,
    },
    /// The private Postgres did not start or stop.
    #[error(transparent)]
    Embedded(#[from] EmbeddedError),
    /// There is no data to work on.
    #[error(
        "there is no Tillmark database in {}: set TILLMARK_DATA_DIR to the folder of the service's line `Data:`, \
         or DATABASE_URL to its server; `tillmark serve` makes a new one",
        data_dir.display()
    )]
    NoData {
        /// The data folder.
        data_dir: PathBuf,
    },
    /// The database cannot be used.
    #[error("the database cannot be used")]
    Database(#[from] DatabaseError),
    /// The operating system refused something.
    #[error("could not {doing}")]
    System {
        /// What was being tried.
        doing: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl StartError {
    /// Whether a setting is to blame, rather than the database or the system.
    pub const fn is_setting(&self) -> bool {
        match self {
            Self::AddressTaken { .. }
            | Self::OpenToOthers { .. }
            | Self::Listen { .. }
            | Self::Database(DatabaseError::Address(_)) => true,
            Self::Embedded(error) => error.is_setting(),
            Self::NoData { .. } | Self::Database(_) | Self::System { .. } => false,
        }
    }

    /// What the process answers: `EX_USAGE` or `EX_UNAVAILABLE`.
    pub const fn exit_code(&self) -> u8 {
        if self.is_setting() { 64 } else { 69 }
    }
}

/// Runs the service until it is asked to end.
///
/// # Errors
/// [`StartError`] when it cannot start.
pub fn serve(settings: &ServeSettings) -> Result<(), StartError> {
    telemetry::start(&settings.log.log, settings.log.log_format);
    #[cfg(feature = "faults")]
    crate::faults::arm(settings.fault.as_ref());
    let runtime = tokio::runtime::Runtime::new().map_err(|source| StartError::System {
        doing: "start the threads of the service",
        source,
    })?;
    let listener = runtime.block_on(async { listen(settings.listen.listen) })?;
    let (private, url) = match settings.database.url() {
        Some(url) => (None, url.to_owned()),
        None => {
            let private = EmbeddedPostgres::start(&settings.database.embedded())?;
            let url = private.url().to_owned();
            (Some(private), url)
        }
    };
    let place = private.as_ref().map(|private| private.data_dir().to_owned());
    let ended = runtime.block_on(run(settings, &url, listener, place));
    runtime.shutdown_timeout(CLOSE_MAX);
    if let Some(private) = private {
        private.stop()?;
    }
    ended
}

/// To be called inside a runtime.
fn listen(address: SocketAddr) -> Result<TcpListener, StartError> {
    let bound = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // A service that starts again takes its port back from connections that are still ending.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    bound().map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => StartError::AddressTaken { address },
        _ => StartError::Listen { address, source },
    })
}

async fn run(
    settings: &ServeSettings,
    url: &str,
    listener: TcpListener,
    private_data: Option<PathBuf>,
) -> Result<(), StartError> {
    let address = listener.local_addr().map_err(|source| StartError::System {
        doing: "read the address that is listened on",
        source,
    })?;
    let data_disk = DataDisk::of(private_data.as_deref());
    let service = Service::start(url, settings, data_disk).await?;
    if let Err(error) = check_keys(&service, &settings.listen, address) {
        service.end().await;
        return Err(error);
    }
    let ask_to_end = asked_to_end()?;
    say_hello(address, private_data);
    service.serve_until(listener, ask_to_end).await;
    Ok(())
}

/// Nobody beyond this machine gets in without a key, unless that is what is wanted.
fn check_keys(
    service: &Service,
    settings: &ListenSettings,
    address: SocketAddr,
) -> Result<(), StartError> {
    if service.app.keyring.has_keys() {
        return Ok(());
    }
    if !settings.is_open_without_keys() {
        return Err(StartError::OpenToOthers { address });
    }
    warn!(
        "There is no API key: everybody who reaches {address} may do everything. `tillmark keys \
         create` makes one"
    );
    Ok(())
}

/// The parts of a running service.
pub struct Service {
    app: App,
    database: Database,
    pipeline: Pipeline,
    writer: JoinHandle<()>,
    forgetting: JoinHandle<()>,
}

impl Service {
    /// Connects, migrates, resumes the queries, and is ready for requests.
    ///
    /// # Errors
    /// [`StartError`] when the database cannot be used.
    pub async fn start(
        url: &str,
        settings: &ServeSettings,
        data_disk: DataDisk,
    ) -> Result<Self, StartError> {
        let (limits, shop) = (&settings.limits, &settings.shop);
        let wait_max = settings.database.database_wait;
        let database = Database::start(url, POOL_SIZES, wait_max).await?;
        fault_point!("recovery.migrated");
        database.queries_create_first(&first_queries(shop)).await?;
        fault_point!("recovery.queries_created");
        let head = watch::Sender::new(Seq::START);
        let pipeline = Pipeline::start(database.clone(), head.clone(), limits.lease).await;
        let intake_settings = IntakeSettings {
            queue_events_max: limits.queue_events_max,
            queue_bytes_max: limits.queue_bytes_max,
            commit_events_max: COMMIT_EVENTS_MAX,
            future_guard: FutureGuard { skew_max: limits.max_future_skew.0 },
        };
        let (intake, writer) = Intake::start(database.clone(), intake_settings, head);
        let access = AccessSettings {
            open_without_keys: settings.listen.is_open_without_keys(),
            is_local: settings.listen.is_local(),
            key_events_per_second: limits.key_events_per_second,
        };
        let keyring = Keyring::start(database.clone(), access).await?;
        let origins = settings.listen.cors_origins.clone();
        let app = App::new(
            database.clone(),
            intake,
            pipeline.clone(),
            keyring,
            http_settings(limits, shop),
            (origins, data_disk),
        );
        let forgetting =
            tokio::spawn(forget_event_ids(database.clone(), limits.event_id_retention));
        Ok(Self { app, database, pipeline, writer, forgetting })
    }

    /// Answers requests until `ask_to_end` comes back, then ends in order: no longer ready, no new
    /// connections, requests answered, events stored, batches finished, connections closed.
    pub async fn serve_until(
        self,
        listener: TcpListener,
        ask_to_end: impl Future<Output = ()> + Send,
    ) {
        self.app.readiness.enter(Phase::Ready);
        fault_point!("recovery.ready");
        let pipeline = self.pipeline.clone();
        let ask_to_end = async move {
            ask_to_end.await;
            pipeline.end_runs();
            info!("Asked to end; answering what is under way");
        };
        http::serve(listener, self.app.clone(), ask_to_end).await;
        self.end().await;
    }

    /// A client of this service without a socket.
    pub fn local_client(&self) -> LocalClient {
        LocalClient::new(self.app.clone())
    }

    /// Stores what is waiting, finishes the batches under way, and closes the connections.
    pub async fn end(self) {
        self.forgetting.abort();
        drop(self.app);
        if tokio::time::timeout(WRITER_STOP_MAX, self.writer).await.is_err() {
            warn!("Some events were not stored in time; their requests were not answered");
        }
        self.pipeline.stop(PIPELINE_STOP_MAX).await;
        drop(tokio::time::timeout(CLOSE_MAX, self.database.close()).await);
        info!("Ended");
    }
}

/// Forgets ids again and again once they are old enough; a failure is made up for the next time.
async fn forget_event_ids(database: Database, retention: Span) {
    let pause = (retention.to_duration() / 24).clamp(FORGET_PAUSE_MIN, FORGET_PAUSE_MAX);
    loop {
        tokio::time::sleep(pause).await;
        match database.event_ids_forget(retention).await {
            Ok(0) => {}
            Ok(forgotten) => info!(ids.n_forgotten = forgotten, "Forgot old event ids"),
            Err(error) => warn!(error = %error.chain(), "Could not forget old event ids"),
        }
    }
}

fn http_settings(limits: &LimitSettings, shop: &ShopSettings) -> HttpSettings {
    let size = |limit: u32| usize::try_from(limit).unwrap_or(usize::MAX);
    HttpSettings {
        body_bytes_max: size(limits.body_bytes_max),
        events_max: size(limits.request_events_max),
        event_bytes_max: size(limits.event_bytes_max),
        queue_events_max: limits.queue_events_max,
        queue_bytes_max: limits.queue_bytes_max,
        max_future_skew: limits.max_future_skew.0,
        key_events_per_second: limits.key_events_per_second,
        connections_max: http::connections_within_limits(size(limits.connections_max)),
        header_timeout: limits.header_timeout,
        body_timeout: limits.body_timeout,
        request_timeout: limits.request_timeout,
        drain_timeout: Span::from_micros(DRAIN_SECONDS_MAX * 1_000_000),
        ..HttpSettings::new(shop.currency)
    }
}

/// `hourly_sales` and `hourly_sales_live`: the hours of a shop, final and as they come in.
fn first_queries(shop: &ShopSettings) -> Vec<(QueryName, QuerySpec)> {
    let spec = |output_mode| QuerySpec {
        filter: Filter([(EventField::Status, vec![shop.hourly_sales_status.to_string()])].into()),
        window: WindowSpec::Tumbling { size: Span::HOUR, offset: Span::ZERO },
        watermark_delay: shop.hourly_sales_delay,
        group_by: Vec::new(),
        deduplicate: Vec::new(),
        output_mode,
        trigger: Trigger::Continuous,
        max_events_per_batch: 100_000,
        start: Start::Earliest,
        idle_timeout: None,
    };
    [("hourly_sales", OutputMode::Append), ("hourly_sales_live", OutputMode::Update)]
        .into_iter()
        .filter_map(|(name, mode)| Some((name.parse().ok()?, spec(mode))))
        .collect()
}

/// Tells the person who started the service what to do with it.
fn say_hello(address: SocketAddr, private_data: Option<PathBuf>) {
    println!("Tillmark is listening on http://{address}");
    println!("Try: curl http://{address}/v1/hourly-sales");
    match private_data {
        Some(folder) => println!(
            "Data: {} (psql \"$(cat {})\")",
            folder.display(),
            folder.join("postgres.url").display()
        ),
        None => println!("Data: the database that DATABASE_URL names"),
    }
}

/// Comes back on SIGTERM or SIGINT (Ctrl-C).
pub(crate) fn asked_to_end() -> Result<impl Future<Output = ()> + Send, StartError> {
    use tokio::signal::unix::{SignalKind, signal};
    let catch = |kind| {
        signal(kind).map_err(|source| StartError::System { doing: "listen for signals", source })
    };
    let (mut terminate, mut interrupt) =
        (catch(SignalKind::terminate())?, catch(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
