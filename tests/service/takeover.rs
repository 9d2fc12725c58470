//! Three replicas on one Postgres: one leads, and another takes over whatever happens to it.

use std::time::Duration;

use serde_json::{Value, json};
use tillmark::clock::Stopwatch;

use crate::support::tcp_way::TcpWay;
use crate::support::{TestDatabase, TestService, a_sale};

const LEASE: Duration = Duration::from_secs(3);
/// What a takeover may take beyond what is left of the lease.
const BEYOND_LEASE: Duration = Duration::from_secs(2);
const IN_TRANSACTION: &str = "state = 'idle in transaction'";
/// Their duplicates rule makes the commit of each of their batches a transaction of several statements.
const QUERIES: [&str; 2] = ["orders", "orders_live"];

/// Replicas on one database; those that are out of order are left alone.
struct Replicas {
    database: TestDatabase,
    services: Vec<TestService>,
    posted: usize,
}

impl Replicas {
    async fn start(database: TestDatabase, lease: &str, urls: [&str; 3]) -> Self {
        let mut services = Vec::new();
        for url in urls {
            let settings = [("DATABASE_URL", url), ("TILLMARK_LEASE", lease)];
            services.push(TestService::start_with(&settings).await);
        }
        for (query, output_mode) in QUERIES.into_iter().zip(["append", "update"]) {
            let rule = json!({
                "window": {"kind": "tumbling", "size": "1 hour"}, "watermark_delay": "1 hour",
                "output_mode": output_mode, "deduplicate": {"keys": ["order_id"]},
            });
            assert_eq!(services[0].put(&format!("/v1/queries/{query}"), rule).await.status, 201);
        }
        for query in ["hourly_sales", "hourly_sales_live"] {
            services[0].delete(&format!("/v1/queries/{query}")).await;
        }
        Self { database, services, posted: 0 }
    }

    async fn three(lease: &str) -> Self {
        let database = TestDatabase::create().await;
        let url = database.url.clone();
        Self::start(database, lease, [&url, &url, &url]).await
    }

    /// Which of these leads, once exactly one does.
    async fn leader_of(&self, among: &[usize]) -> usize {
        for _ in 0..1200 {
            let mut leading = Vec::new();
            for at in among {
                if leads(&self.services[*at]).await {
                    leading.push(*at);
                }
            }
            if let [leader] = leading[..] {
                return leader;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("not exactly one of {among:?} led within 30 s");
    }

    /// Posts a sale to each of these.
    async fn post(&mut self, among: &[usize]) {
        for at in among {
            self.posted += 1;
            let clock = format!("09:{:02}:{:02}", self.posted / 60, self.posted % 60);
            let sale = a_sale(&self.posted.to_string(), &clock, "1.00");
            self.services[*at].post_events(&[sale]).await;
        }
    }

    async fn epoch(&self) -> i64 {
        self.database.number("select epoch from leadership").await
    }

    /// Waits for the next epoch, which must begin soon enough after `since`.
    async fn wait_for_takeover(&self, epoch: i64, since: Stopwatch) {
        while self.epoch().await == epoch {
            let waited = since.elapsed();
            assert!(waited < LEASE + BEYOND_LEASE, "nobody has taken over after {waited:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Everything posted is counted once, as one of these replicas has it.
    async fn assert_right(&self, at: usize) {
        let service = &self.services[at];
        for query in QUERIES {
            service.wait_until_idle(query).await;
            let report = service.get(&format!("/v1/queries/{query}/reconciliation")).await.body;
            assert_eq!(report["unexplained"], 0, "{report}");
            assert_eq!(report["totals"]["USD"]["recount"]["orders"], self.posted, "{report}");
            let stands = service.get(&format!("/v1/queries/{query}")).await.body;
            assert_eq!((&stands["status"], &stands["error"]), (&json!("running"), &Value::Null));
        }
        let rows = service.rows("orders_live").await;
        assert_eq!((rows.len(), &rows[0]["orders"]), (1, &json!(self.posted)));
    }

    /// How many batches were committed.
    async fn batches(&self) -> i64 {
        self.database.number("select count(*) from progress").await
    }

    /// Holds up the commits of both queries inside their transactions, runs `meanwhile`, and lets Postgres
    /// go on.
    async fn inside_commits(&mut self, poster: usize, meanwhile: impl AsyncFnOnce(&mut Self)) {
        let mut lock = self.database.pool.begin().await.unwrap();
        sqlx::raw_sql("lock table progress in share mode").execute(&mut *lock).await.unwrap();
        self.post(&[poster]).await;
        self.wait_for_sessions(
            "wait_event_type = 'Lock' and query like 'select * from commit_batch(%'",
            2,
        )
        .await;
        meanwhile(self).await;
        lock.rollback().await.unwrap();
    }

    async fn wait_for_sessions(&self, such: &str, count: i64) {
        let select = format!(
            "select count(*) from pg_stat_activity where datname = current_database() and {such}"
        );
        let are_there = async || self.database.number(&select).await == count;
        wait_until(&format!("there are {count} sessions with {such}"), are_there).await;
    }

    /// Waits until one that led knows that it does not any more.
    async fn wait_until_stepped_down(&self, at: usize) {
        let service = &self.services[at];
        wait_until("it stops leading", async || service.log().contains("has lost the lease")).await;
    }
}

async fn wait_until(what: &str, is_so: impl AsyncFn() -> bool) {
    for _ in 0..1200 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("waited 30 s in vain until {what}");
}

async fn leads(service: &TestService) -> bool {
    let metrics = service.get("/metrics").await;
    metrics.body.as_str().unwrap().contains("\ntillmark_leads 1\n")
}

fn others(leader: usize) -> [usize; 2] {
    [(leader + 1) % 3, (leader + 2) % 3]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_replica_takes_events_and_reads_and_can_steer_while_one_runs_the_queries() {
    let mut replicas = Replicas::three("3 seconds").await;
    let leader = replicas.leader_of(&[0, 1, 2]).await;
    for _ in 0..5 {
        replicas.post(&[0, 1, 2]).await;
    }
    for at in [0, 1, 2] {
        replicas.assert_right(at).await;
    }
    assert_eq!(replicas.leader_of(&[0, 1, 2]).await, leader);
    assert_eq!(replicas.epoch().await, 1);

    let [one, other] = others(leader).map(|at| &replicas.services[at]);
    let rule = json!({
        "window": {"kind": "tumbling", "size": "1 hour"}, "watermark_delay": "1 hour",
        "output_mode": "update", "trigger": {"kind": "manual"}, "max_events_per_batch": 5,
    });
    one.put("/v1/queries/q", rule).await;
    let ran = other.post("/v1/queries/q/run", json!({"max_batches": 2})).await;
    assert_eq!(ran.status, 200, "{}", ran.body);
    let ids = |body: &Value| -> Vec<i64> {
        let entries = body["progress"].as_array().unwrap().iter();
        entries.map(|entry| entry["batch_id"].as_i64().unwrap()).collect()
    };
    assert_eq!(ids(&ran.body), [0, 1]);
    // The rest, and the batch without data.
    assert_eq!(one.run("q").await.len(), 2);
    assert_eq!(other.rows("q").await[0]["orders"], 15);
    assert_eq!(other.run("q").await, Vec::<Value>::new());
    one.post("/v1/queries/q/reset", json!({})).await;
    assert_eq!(other.run("q").await.len(), 4);
    one.post("/v1/queries/q/pause", json!({})).await;
    let refused = other.post("/v1/queries/q/run", json!({})).await;
    assert_eq!((refused.status, &refused.body["type"]), (409, &json!("/problems/query-paused")));
    one.delete("/v1/queries/q").await;
    assert_eq!(other.post("/v1/queries/q/run", json!({})).await.status, 404);
    assert_eq!(replicas.database.number("select count(*) from run_requests").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_replica_takes_over_from_a_leader_that_is_killed() {
    let mut replicas = Replicas::three("3 seconds").await;
    for epoch in [1, 2] {
        let alive: Vec<usize> = (0..3).filter(|at| replicas.services[*at].is_running()).collect();
        let leader = replicas.leader_of(&alive).await;
        assert_eq!(replicas.epoch().await, epoch);
        for _ in 0..10 {
            replicas.post(&alive).await;
        }
        replicas.services[leader].kill().await;
        let killed = Stopwatch::start();
        let left: Vec<usize> = alive.into_iter().filter(|at| *at != leader).collect();
        replicas.post(&left).await;
        replicas.wait_for_takeover(epoch, killed).await;
        replicas.post(&left).await;
        replicas.assert_right(left[0]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_was_frozen_commits_nothing_when_it_wakes_up() {
    let mut replicas = Replicas::three("3 seconds").await;
    let leader = replicas.leader_of(&[0, 1, 2]).await;
    replicas.post(&[0, 1, 2]).await;
    replicas.assert_right(leader).await;
    replicas.services[leader].freeze();
    let frozen = Stopwatch::start();
    replicas.post(&others(leader)).await;
    // What is asked of another meanwhile is done by the next leader.
    let asked = replicas.services[others(leader)[0]].run("orders");
    tokio::join!(replicas.wait_for_takeover(1, frozen), asked);
    replicas.assert_right(others(leader)[0]).await;
    let (epoch, batches) = (replicas.epoch().await, replicas.batches().await);

    replicas.services[leader].wake();
    replicas.wait_until_stepped_down(leader).await;
    assert_eq!((replicas.epoch().await, replicas.batches().await), (epoch, batches));
    // It goes on as one of the others.
    replicas.post(&[0, 1, 2]).await;
    replicas.assert_right(leader).await;
    assert_ne!(replicas.leader_of(&[0, 1, 2]).await, leader);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_is_frozen_inside_its_commit_does_not_hold_up_the_next() {
    let mut replicas = Replicas::three("3 seconds").await;
    let leader = replicas.leader_of(&[0, 1, 2]).await;
    replicas.post(&[0, 1, 2]).await;
    replicas.assert_right(leader).await;
    let mut frozen = Stopwatch::start();
    replicas
        .inside_commits(others(leader)[0], async |replicas| {
            replicas.services[leader].freeze();
            frozen = Stopwatch::start();
        })
        .await;
    replicas.wait_for_sessions(IN_TRANSACTION, 2).await;
    replicas.wait_for_takeover(1, frozen).await;
    replicas.assert_right(others(leader)[0]).await;
    let batches = replicas.batches().await;

    replicas.services[leader].wake();
    replicas.wait_until_stepped_down(leader).await;
    assert_eq!((replicas.epoch().await, replicas.batches().await), (2, batches));
    replicas.post(&[0, 1, 2]).await;
    replicas.assert_right(leader).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_is_cut_off_inside_its_commit_stops_and_another_takes_over() {
    let database = TestDatabase::create().await;
    let way = TcpWay::to(&database).await;
    let direct = database.url.clone();
    let mut replicas = Replicas::start(database, "3 seconds", [&way.url, &direct, &direct]).await;
    assert_eq!(replicas.leader_of(&[0, 1, 2]).await, 0);
    replicas.post(&[0, 1, 2]).await;
    replicas.assert_right(0).await;
    let mut cut = Stopwatch::start();
    replicas
        .inside_commits(1, async |_| {
            way.hold();
            cut = Stopwatch::start();
        })
        .await;
    replicas.wait_for_sessions(IN_TRANSACTION, 2).await;
    replicas.wait_for_takeover(1, cut).await;
    replicas.assert_right(1).await;
    replicas.wait_until_stepped_down(0).await;
    let batches = replicas.batches().await;

    // What was under way arrives after all, and comes too late.
    way.let_pass();
    replicas.post(&[0, 1, 2]).await;
    replicas.assert_right(0).await;
    assert_ne!(replicas.leader_of(&[0, 1, 2]).await, 0);
    assert!(replicas.batches().await > batches);
    assert_eq!(replicas.epoch().await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_is_asked_to_end_gives_the_lease_back() {
    let mut replicas = Replicas::three("1 hour").await;
    let leader = replicas.leader_of(&[0, 1, 2]).await;
    replicas.post(&[0, 1, 2]).await;
    // So that nobody is there to take it.
    for at in others(leader) {
        replicas.services[at].freeze();
    }
    assert_eq!(replicas.services[leader].terminate().await, Some(0));
    let free = "select count(*) from leadership where expires_at <= clock_timestamp()";
    assert_eq!(replicas.database.number(free).await, 1);
    for at in others(leader) {
        replicas.services[at].wake();
    }
    let next = replicas.leader_of(&others(leader)).await;
    replicas.post(&others(leader)).await;
    replicas.assert_right(next).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_whose_epoch_is_over_is_refused_and_stops() {
    for (case, status) in [("events that count", "placed"), ("events that are skipped", "paid")] {
        let database = TestDatabase::create().await;
        let settings = [("DATABASE_URL", &*database.url), ("TILLMARK_LEASE", "1 hour")];
        let service = TestService::start_with(&settings).await;
        assert!(leads(&service).await, "{case}");
        // As a replica would that leads for an hour; the one before will not renew for long.
        let mut other = database.pool.acquire().await.unwrap();
        sqlx::raw_sql(
            "update leadership set epoch = epoch + 1, holder = 'other', session_pid = pg_backend_pid(),
                 session_start = null, expires_at = clock_timestamp() + interval '1 hour'",
        )
        .execute(&mut *other)
        .await
        .unwrap();
        let mut sale = a_sale("1", "09:05:00", "1.00");
        sale["status"] = status.into();
        service.post_events(&[sale]).await;
        wait_until(case, async || !leads(&service).await).await;
        let moved = "select count(*) from queries where position <> 0 or error is not null";
        assert_eq!(database.number(moved).await, 0, "{case}");
        assert_eq!(database.number("select count(*) from progress").await, 0, "{case}");
        assert_eq!(database.number("select epoch from leadership").await, 2, "{case}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_epoch_does_not_end_under_a_commit_and_a_renewal_does_not_wait_for_one() {
    let mut replicas = Replicas::three("1 hour").await;
    let poster = replicas.leader_of(&[0, 1, 2]).await;
    replicas
        .inside_commits(poster, async |replicas| {
            let mut other = replicas.database.pool.acquire().await.unwrap();
            sqlx::raw_sql("set lock_timeout = '200ms'").execute(&mut *other).await.unwrap();
            let renewal = "update leadership set expires_at = expires_at";
            sqlx::raw_sql(renewal).execute(&mut *other).await.unwrap();
            let takeover = "update leadership set epoch = epoch + 1";
            let refused = sqlx::raw_sql(takeover).execute(&mut *other).await.unwrap_err();
            assert!(refused.to_string().contains("lock timeout"), "{refused}");
        })
        .await;
    replicas.assert_right(poster).await;
    assert_eq!(replicas.epoch().await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_that_has_to_wait_for_a_lock_costs_nobody_the_lead() {
    let replicas = Replicas::three("3 seconds").await;
    let leader = replicas.leader_of(&[0, 1, 2]).await;
    let epoch = replicas.epoch().await;
    let mut held = replicas.database.pool.begin().await.unwrap();
    sqlx::raw_sql("select from leadership for no key update").execute(&mut *held).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    held.rollback().await.unwrap();
    tokio::time::sleep(LEASE).await;
    assert_eq!(replicas.leader_of(&[0, 1, 2]).await, leader);
    assert_eq!(replicas.epoch().await, epoch);
}
