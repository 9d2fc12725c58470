//! Connections: one pool per kind of work, so that a heavy report never starves the tills.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection as _, PgConnection, PgPool, Postgres};
use uuid::Uuid;

use super::DatabaseError;
use super::error::Doing;
use super::log_tail::LogTail;
use crate::domain::Span;

static MIGRATOR: sqlx::migrate::Migrator = sqlx::migrate!();

/// How many connections are looked at before they are used after a server has refused to write:
/// more than the pools have, so that each of them is.
const DOUBTS: u32 = 64;
static DOUBTED: AtomicU32 = AtomicU32::new(0);

/// A connection that was idle for so long may have ended.
const IDLE_ASKED: Duration = Duration::from_secs(1);

/// How long a connection that is given back may take to answer.
const COMES_BACK_WITHIN: Duration = Duration::from_secs(2);

const VERSION_MIN: i32 = 150_000;
const RETRY_PAUSE: Duration = Duration::from_millis(250);
/// Of so many attempts one is told.
const RETRIES_SAID: u32 = 20;

/// How many connections each kind of work may use.
#[derive(Debug, Clone, Copy)]
pub struct PoolSizes {
    /// For the group commit.
    pub ingest: u32,
    /// For micro-batches, and as many again for what they read of the raw log.
    pub engine: u32,
    /// For everything that is read over HTTP.
    pub reads: u32,
}

/// How a pool of connections is used.
#[derive(Debug, Clone, Copy)]
pub struct PoolGauges {
    /// For which kind of work.
    pub name: &'static str,
    /// Connections at work.
    pub used: u32,
    /// Open connections that nobody uses.
    pub idle: u32,
    /// The most that it opens.
    pub max: u32,
}

/// The database, by kind of work. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Database {
    pub(super) ingest: PgPool,
    pub(super) engine: PgPool,
    /// For the engine's reading of the raw log.
    pub(super) log: PgPool,
    /// Of one connection for as long as it lives: its session stands for the holder of the lease.
    pub(super) lease: PgPool,
    /// What its sessions are called, like those of no other process.
    pub(super) process: Arc<str>,
    /// What those are called that work under the lease: `process/number`.
    pub(super) name: Arc<str>,
    reads: PgPool,
    pub(super) tail: Arc<LogTail>,
    /// Of one connection: whatever else is going on, somebody can ask whether the server answers, and
    /// which keys work.
    pub(super) readiness: PgPool,
    /// A mistake to make on purpose; only `tests/defects` sets it.
    #[cfg(feature = "defects")]
    pub defect: Option<crate::domain::Defect>,
}

impl Database {
    /// Connects, waiting up to `wait_max` for a server to answer; then checks that it will do and
    /// brings the tables to this version.
    ///
    /// # Errors
    /// [`DatabaseError::Address`], [`DatabaseError::NoAnswer`], [`DatabaseError::Unsuitable`] or
    /// [`DatabaseError::Migrate`]; the service cannot start then.
    pub async fn start(url: &str, sizes: PoolSizes, wait_max: Span) -> Result<Self, DatabaseError> {
        let database = Self::join(url, sizes, wait_max).await?;
        fault_point!("recovery.connected");
        MIGRATOR.run(&database.engine).await.map_err(DatabaseError::Migrate)?;
        Ok(database)
    }

    /// The same for a look into the database of a running service: its tables stay as they are.
    ///
    /// # Errors
    /// As of [`Database::start`].
    pub async fn join(url: &str, sizes: PoolSizes, wait_max: Span) -> Result<Self, DatabaseError> {
        let process: Arc<str> = format!("tillmark {}", Uuid::new_v4()).into();
        let name = holder_name(&process);
        let options = PgConnectOptions::from_str(url)
            .map_err(DatabaseError::Address)?
            .application_name(&process);
        let of_holder = options.clone().application_name(&name);
        // Ids are looked up by the index, whatever the planner believes of a table that grew a moment ago.
        // Whoever waits longer for their turn looks whether the one before them is stuck (`append.rs`).
        let by_index = options.clone().options([("enable_seqscan", "off"), ("lock_timeout", "5s")]);
        // The log is read in its order, of which the planner would know only after an analyze.
        let in_order =
            of_holder.clone().options([("enable_seqscan", "off"), ("enable_bitmapscan", "off")]);
        let database = Self {
            ingest: writing(&by_index, sizes.ingest, "20s", Duration::from_secs(5)),
            engine: often(&of_holder, sizes.engine, "0", Duration::from_secs(10)),
            log: often(&in_order, sizes.engine, "0", Duration::from_secs(10)),
            lease: lease_pool(&of_holder),
            process,
            name,
            reads: pool(&options, sizes.reads, "25s", Duration::from_secs(3)),
            tail: Arc::default(),
            readiness: pool(&options, 1, "2s", Duration::from_secs(2)),
            #[cfg(feature = "defects")]
            defect: None,
        };
        database.wait_for_server(wait_max).await?;
        database.check_server().await?;
        Ok(database)
    }

    /// The same without a limit on the time of a read: for a report that somebody waits for.
    #[must_use]
    pub fn with_long_reads(self) -> Self {
        Self { reads: self.engine.clone(), ..self }
    }

    /// The same as another holder of the lease, with new connections for it and for micro-batches:
    /// those of before may be cut off, and wait for answers for as long as TCP does.
    #[must_use]
    pub fn reconnected(&self) -> Self {
        let name = holder_name(&self.process);
        let again = |pool: &PgPool| {
            let options = pool.connect_options().as_ref().clone().application_name(&name);
            pool.options().clone().connect_lazy_with(options)
        };
        let (engine, log, lease) = (again(&self.engine), again(&self.log), again(&self.lease));
        Self { engine, log, lease, name, ..self.clone() }
    }

    async fn wait_for_server(&self, wait_max: Span) -> Result<(), DatabaseError> {
        let answered = async {
            let mut attempts = 0_u32;
            loop {
                match self.engine.acquire().await {
                    Ok(_) => return Ok(()),
                    Err(source) if is_hopeless(&source) => {
                        return Err(DatabaseError::Failed {
                            doing: "connect to the database",
                            source,
                        });
                    }
                    Err(source) => {
                        if attempts.is_multiple_of(RETRIES_SAID) {
                            tracing::warn!(error = %source, "Waiting for the database");
                        }
                        attempts = attempts.wrapping_add(1);
                        tokio::time::sleep(RETRY_PAUSE).await;
                    }
                }
            }
        };
        match tokio::time::timeout(wait_max.to_duration(), answered).await {
            Ok(result) => result,
            Err(_) => {
                Err(DatabaseError::NoAnswer { waited: wait_max, source: sqlx::Error::PoolTimedOut })
            }
        }
    }

    /// Refuses a server that is too old, a standby, or not durable.
    async fn check_server(&self) -> Result<(), DatabaseError> {
        let (version, standby, fsync, full_page_writes, synchronous_commit): (
            i32,
            bool,
            bool,
            bool,
            String,
        ) = sqlx::query_as(
            "select current_setting('server_version_num')::int, pg_is_in_recovery(),
                    current_setting('fsync')::bool, current_setting('full_page_writes')::bool,
                    current_setting('synchronous_commit')",
        )
        .fetch_one(&self.engine)
        .await
        .doing("read the server's settings")?;
        let fault = if version < VERSION_MIN {
            format!("it is version {}; version 15 or newer is needed", version / 10_000)
        } else if standby {
            "it is a standby in recovery, which cannot be written to; give the primary's address"
                .to_owned()
        } else if !fsync {
            "`fsync` is off, so a crash could lose answered events; turn it on".to_owned()
        } else if !full_page_writes {
            "`full_page_writes` is off, so a crash could damage the log; turn it on".to_owned()
        } else if synchronous_commit == "off" {
            "`synchronous_commit` is off, so a crash could lose answered events; turn it on"
                .to_owned()
        } else {
            return Ok(());
        };
        Err(DatabaseError::Unsuitable(fault))
    }

    /// Whether the database answers now.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`] when it does not.
    pub async fn ping(&self) -> Result<(), DatabaseError> {
        sqlx::query("select 1").execute(&self.readiness).await.doing("reach the database")?;
        Ok(())
    }

    /// A connection for reading.
    ///
    /// # Errors
    /// [`DatabaseError::ReadsBusy`] when all stay in use though the server answers;
    /// [`DatabaseError::Failed`].
    pub(super) async fn reader(&self) -> Result<PoolConnection<Postgres>, DatabaseError> {
        let acquired = self.reads.acquire().await;
        // The pool also says so when the server is away, so the server itself is asked.
        if matches!(acquired, Err(sqlx::Error::PoolTimedOut)) && self.ping().await.is_ok() {
            return Err(DatabaseError::ReadsBusy);
        }
        acquired.doing("reach the database")
    }

    /// How the pools are used now.
    pub fn pools(&self) -> [PoolGauges; 5] {
        let pools = [
            ("ingest", &self.ingest),
            ("engine", &self.engine),
            ("log", &self.log),
            ("reads", &self.reads),
            ("readiness", &self.readiness),
        ];
        pools.map(|(name, pool)| {
            let idle = u32::try_from(pool.num_idle()).unwrap_or(u32::MAX).min(pool.size());
            let max = pool.options().get_max_connections();
            PoolGauges { name, used: pool.size() - idle, idle, max }
        })
    }

    /// Closes every connection, waiting for what runs.
    pub async fn close(&self) {
        self.readiness.close().await;
        self.lease.close().await;
        self.reads.close().await;
        self.log.close().await;
        self.engine.close().await;
        self.ingest.close().await;
    }
}

/// The versions of all migrations.
pub(super) fn migrations() -> Vec<i64> {
    MIGRATOR.iter().map(|migration| migration.version).collect()
}

/// A server has refused to write: connections made before may lead to one that another has replaced.
pub(super) fn doubt_connections() {
    DOUBTED.store(DOUBTS, Ordering::Relaxed);
}

/// Whether a connection of a pool can be used for writing.
async fn is_usable(conn: &mut PgConnection, idle_for: Duration) -> Result<bool, sqlx::Error> {
    if idle_for >= IDLE_ASKED {
        conn.ping().await?;
    }
    is_writable(conn).await
}

/// Whether a connection takes writes; asked only while connections are in doubt.
async fn is_writable(conn: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let one_less = |doubts: u32| doubts.checked_sub(1);
    if DOUBTED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_err() {
        return Ok(true);
    }
    sqlx::query_scalar("select not current_setting('transaction_read_only')::bool")
        .fetch_one(conn)
        .await
}

/// Frees every lock of the session.
async fn unlock(conn: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query("select pg_advisory_unlock_all()").execute(conn).await.map(drop)
}

/// Whether a connection that comes back answers to a call. One that does not is closed: the pool itself
/// would wait for it for as long as TCP does, with one connection less meanwhile.
async fn comes_back(
    call: impl Future<Output = Result<(), sqlx::Error>>,
) -> Result<bool, sqlx::Error> {
    match tokio::time::timeout(COMES_BACK_WITHIN, call).await {
        Ok(answer) => answer.map(|()| true),
        Err(elapsed) => Err(sqlx::Error::Io(elapsed.into())),
    }
}

/// Whether waiting cannot help: a wrong password, or a database that does not exist.
fn is_hopeless(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else { return false };
    error.code().is_some_and(|code| code.starts_with("28") || code == "3D000")
}

fn holder_name(process: &str) -> Arc<str> {
    static NUMBER: AtomicU32 = AtomicU32::new(1);
    format!("{process}/{}", NUMBER.fetch_add(1, Ordering::Relaxed)).into()
}

/// Nobody waits long for the row of the lease: it is asked for again soon.
fn lease_pool(options: &PgConnectOptions) -> PgPool {
    let settings = [("statement_timeout", "2s"), ("lock_timeout", "500ms")];
    PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(Duration::from_secs(2))
        .idle_timeout(None)
        .max_lifetime(None)
        .connect_lazy_with(options.clone().options(settings))
}

/// A pool for what only reads.
fn pool(
    options: &PgConnectOptions,
    size: u32,
    statement_timeout: &str,
    acquire_max: Duration,
) -> PgPool {
    let (pool, options) = pool_options(options, size, statement_timeout, acquire_max);
    pool.after_release(|conn, _| Box::pin(comes_back(conn.ping()))).connect_lazy_with(options)
}

/// A pool for appends: connections to a server that takes no writes are not kept, and one that comes
/// back after a failure holds no lock.
fn writing(
    options: &PgConnectOptions,
    size: u32,
    statement_timeout: &str,
    acquire_max: Duration,
) -> PgPool {
    let (pool, options) = pool_options(options, size, statement_timeout, acquire_max);
    pool.before_acquire(|conn, _| Box::pin(is_writable(conn)))
        .after_release(|conn, _| Box::pin(comes_back(unlock(conn))))
        .connect_lazy_with(options)
}

/// The same for what the engine does all the time. A connection that was used a moment ago is not asked
/// whether it still is one, which costs a round trip, as much as most statements do: a micro-batch that
/// finds it broken is tried again.
fn often(
    options: &PgConnectOptions,
    size: u32,
    statement_timeout: &str,
    acquire_max: Duration,
) -> PgPool {
    let (pool, options) = pool_options(options, size, statement_timeout, acquire_max);
    pool.test_before_acquire(false)
        .before_acquire(|conn, past| Box::pin(is_usable(conn, past.idle_for)))
        .connect_lazy_with(options)
}

fn pool_options(
    options: &PgConnectOptions,
    size: u32,
    statement_timeout: &str,
    acquire_max: Duration,
) -> (PgPoolOptions, PgConnectOptions) {
    let settings = [
        ("statement_timeout", statement_timeout),
        // A process frozen inside its transaction must not block the others for long.
        ("idle_in_transaction_session_timeout", "10s"),
        ("standard_conforming_strings", "on"),
    ];
    let pool = PgPoolOptions::new().max_connections(size).acquire_timeout(acquire_max);
    (pool, options.clone().options(settings))
}
