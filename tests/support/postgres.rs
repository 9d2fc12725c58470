//! One Postgres for all tests of a binary, one database for each test.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool};
use tillmark::embedded::{EmbeddedPostgres, EmbeddedSettings};

static SERVER: OnceLock<EmbeddedPostgres> = OnceLock::new();
static DATABASES: AtomicU32 = AtomicU32::new(0);

/// The server of this test binary. Its folder is kept from run to run, so that only the first
/// start has to make a cluster; the kernel ends the server together with the test binary.
fn server() -> &'static EmbeddedPostgres {
    SERVER.get_or_init(|| {
        let owner = std::env::temp_dir()
            .join(format!("tillmark-tests-{}", rustix::process::getuid().as_raw()));
        let settings = EmbeddedSettings {
            data_dir: Some(owner),
            search_path: Some("/usr/bin:/usr/local/bin".into()),
            ..EmbeddedSettings::default()
        };
        let mut last = None;
        // Another test binary may still be using the folder.
        for _ in 0..600 {
            match EmbeddedPostgres::start(&settings) {
                Ok(server) => return server,
                Err(error) => last = Some(error),
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        panic!("the Postgres of the tests did not start: {last:?}");
    })
}

/// An empty database of its own for one test.
#[derive(Debug, Clone)]
pub struct TestDatabase {
    pub url: String,
    pub pool: PgPool,
}

impl TestDatabase {
    pub async fn create() -> Self {
        let server = tokio::task::spawn_blocking(server).await.unwrap();
        let mut admin = PgConnection::connect(server.url()).await.unwrap();
        let number = DATABASES.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{}_{number}", std::process::id());
        if number == 0 {
            drop_old_databases(&mut admin).await;
        }
        sqlx::raw_sql(AssertSqlSafe(format!("create database {name}")))
            .execute(&mut admin)
            .await
            .unwrap();
        let url = server.url().replacen("/tillmark?", &format!("/{name}?"), 1);
        let pool = PgPool::connect_lazy(&url).unwrap();
        Self { url, pool }
    }

    /// Runs one statement, as somebody with psql could.
    pub async fn execute(&self, statement: &str) -> u64 {
        sqlx::raw_sql(AssertSqlSafe(statement.to_owned()))
            .execute(&self.pool)
            .await
            .unwrap()
            .rows_affected()
    }

    /// The number that a statement answers.
    pub async fn number(&self, select: &str) -> i64 {
        sqlx::query_scalar(AssertSqlSafe(select.to_owned())).fetch_one(&self.pool).await.unwrap()
    }
}

/// Removes what earlier runs left behind.
async fn drop_old_databases(admin: &mut PgConnection) {
    let own = format!("test_{}_%", std::process::id());
    let old: Vec<String> = sqlx::query_scalar(
        "select datname from pg_database where datname like 'test\\_%' and datname not like $1",
    )
    .bind(own)
    .fetch_all(&mut *admin)
    .await
    .unwrap();
    for name in old {
        let drop = format!("drop database if exists {name} with (force)");
        sqlx::raw_sql(AssertSqlSafe(drop)).execute(&mut *admin).await.unwrap();
    }
}
