//! A query over a fixed log while one call to the database fails, held against the run in which
//! none does.

use std::collections::BTreeSet;

use serde_json::Value;
use sqlx::AssertSqlSafe;
use tillmark::database::{
    AppendMemory, AppendRequest, Database, FutureGuard, PoolSizes, RecountRange,
};
use tillmark::domain::{IdentifiedEvent, QueryName, QuerySpec, QuerySpecText, Seq};
use tillmark::finance::reconcile::{self, LineFilter};
use tillmark::intake::{BodyFormat, BodyLimits, EventDefaults};
use tillmark::pipeline::{Pipeline, RunError};
use tokio::sync::watch;

use super::TestDatabase;
use super::fault_proxy::{Fault, FaultProxy, Met};

/// One connection for the engine, so that every run makes the same calls.
const POOL_SIZES: PoolSizes = PoolSizes { ingest: 2, engine: 1, reads: 1 };
const LEASE: &str = "10 seconds";
/// One fault may fail one run; what fails more often does not recover.
const ATTEMPTS_MAX: u32 = 5;
/// Everything that a query leaves behind, without what depends on the time of day.
const TRACES: [(&str, &str); 8] = [
    ("queries", "'{spec,created_at,history_since,epoch}'::text[]"),
    ("window_rows", "'{written_at}'::text[]"),
    ("window_row_versions", "'{written_at}'::text[]"),
    ("window_state", "'{}'::text[]"),
    ("duplicate_state", "'{}'::text[]"),
    ("dropped_events", "'{}'::text[]"),
    ("poison_events", "'{found_at}'::text[]"),
    ("progress", "'{timestamp,read_us,compute_us,commit_us,total_us}'::text[]"),
];

/// What a whole proof came to, when nothing disagreed.
#[derive(Debug)]
pub struct Proof {
    /// How many calls a run makes: each of them has failed once.
    pub calls: u32,
    /// What failed, each statement once.
    pub failed: BTreeSet<String>,
    /// What every run left behind, line by line.
    pub traces: Vec<String>,
}

/// What one run came to.
struct Ran {
    traces: Vec<String>,
    calls: u32,
    failed: Option<String>,
}

/// A database whose log grows in stages, reached directly and through a proxy.
pub struct FaultedStore {
    database: TestDatabase,
    direct: Database,
    proxy: FaultProxy,
    /// The `seq` at which each stage ends.
    stages: Vec<i64>,
    /// The last touch to the database that the pipeline works on.
    prepare: fn(Database) -> Database,
}

impl FaultedStore {
    /// A store whose log gets these events, stage by stage; a query runs after each.
    pub async fn with_log(stages: &[Vec<Value>]) -> Self {
        let database = TestDatabase::create().await;
        let direct = start(&database.url).await;
        let (mut memory, mut ends) = (AppendMemory::default(), Vec::new());
        for stage in stages {
            let events = identified(stage);
            let request = AppendRequest::Events { events, all_or_nothing: false };
            let guard = FutureGuard { skew_max: None };
            direct.append(&[request], guard, &mut memory, &mut || {}).await.unwrap();
            ends.push(database.number("select max(seq) from raw_events").await);
        }
        database.execute("create table whole_log as select * from raw_events").await;
        let proxy = FaultProxy::start(&database.url);
        Self { database, direct, proxy, stages: ends, prepare: |database| database }
    }

    /// Gives the pipeline a database that `prepare` has touched.
    pub fn prepared_by(self, prepare: fn(Database) -> Database) -> Self {
        Self { prepare, ..self }
    }

    /// Makes the first call fail, then the second, and so on until a run meets no fault any more.
    ///
    /// # Errors
    /// The first disagreement with the run without faults, with the number of the call.
    pub async fn prove(&self, rule: &Value, fault: Fault) -> Result<Proof, String> {
        let text: QuerySpecText = serde_json::from_value(rule.clone()).unwrap();
        let spec = QuerySpec::try_from(text).unwrap();
        let Ran { traces, calls, .. } = self.run(&spec, None).await?;
        let mut failed = BTreeSet::new();
        for nth in 1.. {
            let place = |call: &str| format!("call {nth} of the run, {fault:?}: {call}");
            let ran = self.run(&spec, Some((nth, fault))).await;
            let ran = ran.map_err(|error| format!("{}\n{error}", place("the run fails")))?;
            let call = ran.failed.as_deref().unwrap_or("no fault");
            difference(&traces, &ran.traces)
                .map_or(Ok(()), |lines| Err(format!("{}\n{lines}", place(call))))?;
            match ran.failed {
                Some(call) => failed.insert(call),
                None if nth <= calls => continue,
                None => return Ok(Proof { calls: nth - 1, failed, traces }),
            };
        }
        unreachable!("a run has fewer calls than there are numbers")
    }

    /// A new query of this rule, by a process that has just started, over the whole log.
    async fn run(&self, spec: &QuerySpec, fault: Option<(u32, Fault)>) -> Result<Ran, String> {
        let name: QueryName = "query".parse().unwrap();
        self.database.execute("delete from raw_events").await;
        self.direct.query_put(&name, spec).await.unwrap();
        let database = (self.prepare)(start(&self.proxy.url).await);
        self.proxy.count(fault);
        let head = watch::Sender::new(Seq::START);
        let pipeline = Pipeline::start(database.clone(), head, LEASE.parse().unwrap()).await;
        let ran = self.run_stages(&pipeline, &name).await;
        let Met { calls, failed } = self.proxy.stop_counting();
        pipeline.stop(std::time::Duration::from_secs(5)).await;
        database.close().await;
        let traces = match ran {
            Ok(()) => self.traces(&name).await,
            Err(error) => Err(format!("{error}; failed: {failed:?}")),
        };
        self.direct.query_delete(&name, None).await.unwrap();
        Ok(Ran { traces: traces?, calls, failed })
    }

    async fn run_stages(&self, pipeline: &Pipeline, name: &QueryName) -> Result<(), String> {
        for end in &self.stages {
            let insert = "insert into raw_events select * from whole_log
                where seq > (select coalesce(max(seq), 0) from raw_events)";
            self.database.execute(&format!("{insert} and seq <= {end}")).await;
            run_until_it_succeeds(pipeline, name).await?;
        }
        Ok(())
    }

    /// Everything that the query left behind. The reconciliation must add up as well.
    async fn traces(&self, name: &QueryName) -> Result<Vec<String>, String> {
        let mut traces = Vec::new();
        for (table, without) in TRACES {
            let select = format!(
                "select '{table} ' || (to_jsonb({table}) - 'query_id' - {without})::text
                 from {table} order by 1"
            );
            let rows: Vec<String> = sqlx::query_scalar(AssertSqlSafe(select))
                .fetch_all(&self.database.pool)
                .await
                .unwrap();
            traces.extend(rows);
        }
        let whole = RecountRange::default();
        let snapshot = self.direct.reconciliation_snapshot(name, whole, None).await.unwrap();
        match reconcile::compare(&snapshot, &LineFilter::default()).unexplained {
            0 => Ok(traces),
            lines => Err(format!("the reconciliation has {lines} unexplained lines")),
        }
    }
}

/// Connects as the service does.
pub async fn start(url: &str) -> Database {
    Database::start(url, POOL_SIZES, "30 seconds".parse().unwrap()).await.unwrap()
}

/// Events as the intake checks and identifies them.
pub fn identified(events: &[Value]) -> Vec<IdentifiedEvent> {
    let body = serde_json::to_vec(events).unwrap();
    let defaults = EventDefaults { currency: "USD".parse().unwrap() };
    let items =
        tillmark::intake::events(&body, BodyFormat::Json, &defaults, &BodyLimits::default());
    items.unwrap().into_iter().map(|item| item.outcome.unwrap()).collect()
}

/// Runs the query again after a failure, as whoever asked for the run would.
async fn run_until_it_succeeds(pipeline: &Pipeline, name: &QueryName) -> Result<(), String> {
    let mut last = None;
    for _ in 0..ATTEMPTS_MAX {
        match pipeline.run(name, None).await {
            Ok(_) => return Ok(()),
            Err(RunError::Failed(error)) => last = Some(error),
            Err(other) => return Err(other.to_string()),
        }
    }
    Err(format!("{ATTEMPTS_MAX} runs failed, the last with {last:?}"))
}

/// The lines that only one side has.
fn difference(right: &[String], got: &[String]) -> Option<String> {
    let only = |mark: &str, of: &[String], other: &[String]| -> Vec<String> {
        of.iter()
            .filter(|line| !other.contains(line))
            .map(|line| format!("{mark} {line}"))
            .collect()
    };
    let mut lines = only("only without the fault:", right, got);
    lines.extend(only("only with the fault:   ", got, right));
    (right != got).then(|| lines.join("\n"))
}
