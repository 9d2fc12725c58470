//! A service whose reads are all held up.

use std::time::Duration;

use serde_json::json;
use sqlx::Acquire as _;
use tokio::task::JoinSet;

use crate::support::{Answer, TestDatabase, TestService};

/// As many as are made at a time, and as many lists as are read at a time.
const REPORTS_MAX: usize = 4;
const READS_MAX: usize = 10;

#[track_caller]
fn assert_busy(answer: &Answer) {
    assert_eq!((answer.status, &answer.body["type"]), (503, &json!("/problems/busy")));
    assert!(!answer.header("retry-after").is_empty());
}

/// Asks so many times at once and waits until all the statements stand before a lock.
async fn held_up(
    service: &TestService,
    database: &TestDatabase,
    paths: &[String],
) -> JoinSet<Answer> {
    let mut asked = JoinSet::new();
    for path in paths {
        let request = service.client.get(service.url(path));
        asked.spawn(async move { Answer::of(request).await });
    }
    let waiting = "select count(*) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'";
    for _ in 0..400 {
        if database.number(waiting).await >= i64::try_from(paths.len()).unwrap() {
            return asked;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{paths:?} were not held up");
}

async fn statuses(asked: JoinSet<Answer>) -> Vec<u16> {
    asked.join_all().await.iter().map(|answer| answer.status).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_reports_are_shed_and_leave_the_service_ready() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let mut conn = database.pool.acquire().await.unwrap();
    let mut lock = conn.begin().await.unwrap();
    sqlx::raw_sql("lock table window_rows").execute(&mut *lock).await.unwrap();
    let mut reports =
        held_up(&service, &database, &vec!["/v1/reconciliation".to_owned(); REPORTS_MAX]).await;
    assert_busy(&service.get("/v1/queries/hourly_sales/reconciliation").await);
    assert_eq!(service.get("/v1/queries").await.status, 200);
    assert_eq!(service.get("/readyz").await.status, 200);
    // What the server does by itself to a statement at its time limit.
    let give_one_up = "select pg_cancel_backend(pid) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' limit 1";
    database.execute(give_one_up).await;
    let slow = reports.join_next().await.unwrap().unwrap();
    assert_eq!((slow.status, &slow.body["type"]), (503, &json!("/problems/deadline-exceeded")));
    lock.rollback().await.unwrap();
    assert_eq!(statuses(reports).await, [200; REPORTS_MAX - 1]);
    assert_eq!(service.get("/v1/reconciliation").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_finds_no_connection_is_told_that_the_service_is_busy_and_not_that_it_is_down()
{
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let mut conn = database.pool.acquire().await.unwrap();
    let mut lock = conn.begin().await.unwrap();
    sqlx::raw_sql("lock table window_rows").execute(&mut *lock).await.unwrap();
    // What is asked for twice at a time is read once.
    let paths: Vec<String> =
        (1..=READS_MAX).map(|limit| format!("/v1/hourly-sales?limit={limit}")).collect();
    let lists = held_up(&service, &database, &paths).await;
    let (list, ready) = tokio::join!(service.get("/v1/queries"), service.get("/readyz"));
    assert_busy(&list);
    assert_eq!(ready.status, 200, "{}", ready.body);
    lock.rollback().await.unwrap();
    assert_eq!(statuses(lists).await, [200; READS_MAX]);
}
