//! A Postgres of its own, tills that post, a service, and the oracle that looks after each fault.

use std::path::Path;
use std::time::Duration;

use fastrand::Rng;
use rustix::process::{Pid, Signal, kill_process};
use sqlx::PgPool;
use tempfile::TempDir;
use tillmark::embedded::{EmbeddedPostgres, EmbeddedSettings};

use crate::oracle::{FinalRows, lost, queries};
use crate::support::{TestDatabase, TestService};
use crate::tills::{Kind, Tills};

/// A replica that leads is given up soon.
const LEASE: (&str, &str) = ("TILLMARK_LEASE", "2 seconds");
/// What has not come by then will not come.
pub const WAIT_MAX: Duration = Duration::from_secs(60);

/// Everything that a fault can befall.
pub struct Bed {
    pub database: TestDatabase,
    pub tills: Tills,
    pub rng: Rng,
    /// The one that runs; none while a fault is under way.
    pub service: Option<TestService>,
    /// How often the oracle has looked.
    pub checks: u32,
    final_rows: FinalRows,
    postgres: EmbeddedPostgres,
    _folder: Option<TempDir>,
}

impl Bed {
    /// On a disk with room enough, with tills of all kinds.
    pub async fn make(rng: Rng) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let kinds = [Kind::Single, Kind::Single, Kind::Bulk, Kind::Odd];
        let bed = Self::make_in(folder.path(), &kinds, rng).await;
        Self { _folder: Some(folder), ..bed }
    }

    /// In this folder, which must be empty.
    pub async fn make_in(folder: &Path, kinds: &[Kind], mut rng: Rng) -> Self {
        let settings = EmbeddedSettings {
            data_dir: Some(folder.to_owned()),
            search_path: Some("/usr/bin:/usr/local/bin".into()),
            ..EmbeddedSettings::default()
        };
        let start = move || EmbeddedPostgres::start(&settings).unwrap();
        let postgres = tokio::task::spawn_blocking(start).await.unwrap();
        let url = postgres.url().to_owned();
        let database = TestDatabase { pool: PgPool::connect_lazy(&url).unwrap(), url };
        let tills = Tills::open(kinds, &mut rng);
        let (service, final_rows) = (None, FinalRows::default());
        let mut bed =
            Self { database, tills, rng, service, checks: 0, final_rows, postgres, _folder: None };
        bed.start().await;
        for (query, rule, _) in queries() {
            if let Some(rule) = rule {
                let answer = bed.service().put(&format!("/v1/queries/{query}"), rule).await;
                assert!(answer.status < 300, "{}", answer.body);
            }
        }
        bed
    }

    pub fn service(&self) -> &TestService {
        self.service.as_ref().expect("a service runs")
    }

    /// Starts a service; an error says how it ended before it listened.
    pub async fn launch(&self, more: &[(&str, &str)]) -> Result<TestService, String> {
        let settings = [&[("DATABASE_URL", &*self.database.url), LEASE], more].concat();
        TestService::launch(&settings).await
    }

    /// Starts the service that runs from now on.
    pub async fn start(&mut self) {
        self.start_with(&[]).await;
    }

    pub async fn start_with(&mut self, more: &[(&str, &str)]) {
        let service = self.launch(more).await.unwrap_or_else(|error| panic!("{error}"));
        service.wait_until_ready().await;
        self.tills.post_to(&[&service.base]);
        self.service = Some(service);
    }

    /// Kills the service that runs.
    pub async fn kill(&mut self) {
        self.service.take().expect("a service runs").kill().await;
    }

    /// Lets the tills post for some time between these bounds, in milliseconds.
    pub async fn post_for(&mut self, from_ms: u64, to_ms: u64) {
        tokio::time::sleep(Duration::from_millis(self.rng.u64(from_ms..to_ms))).await;
    }

    /// What `pg_ctl stop -m immediate` does: SIGQUIT to the server, until it is gone. Its keeper starts it
    /// again.
    pub async fn stop_postgres(&self) {
        let server = || {
            let file = self.postgres.data_dir().join("pg/postmaster.pid");
            std::fs::read_to_string(file).ok()?.lines().next()?.parse().ok()
        };
        let stopped: i32 = server().expect("Postgres runs");
        kill_process(Pid::from_raw(stopped).unwrap(), Signal::QUIT).unwrap();
        wait_until("Postgres has stopped", async || server() != Some(stopped)).await;
    }

    /// Waits until Postgres takes connections again.
    pub async fn wait_for_postgres(&self) {
        let answers = async || sqlx::query("select 1").execute(&self.database.pool).await.is_ok();
        wait_until("Postgres is back", answers).await;
    }

    /// Everything answered is there and counted once, and nothing is left to do.
    pub async fn check(&mut self, after: &str) {
        self.service().wait_until_ready().await;
        let findings = self.findings().await;
        assert!(findings.is_empty(), "after {after}:\n{}", findings.join("\n"));
    }

    /// What is not as it was answered.
    pub async fn findings(&mut self) -> Vec<String> {
        let _quiet = self.tills.pause().await;
        self.checks += 1;
        let answers = std::mem::take(&mut *self.tills.answers());
        let mut findings = lost(&answers, &self.database).await;
        *self.tills.answers() = answers;
        let service = self.service.as_ref().expect("a service runs");
        findings.extend(self.final_rows.miscounted(service, &self.database).await);
        findings
    }
}

/// Waits for what must come.
pub async fn wait_until(what: &str, is_so: impl AsyncFn() -> bool) {
    let waiting = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let waited = tokio::time::timeout(WAIT_MAX, waiting).await;
    waited.unwrap_or_else(|_| panic!("waited in vain until {what}"));
}
