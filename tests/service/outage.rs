//! A database that goes away and comes back.

use std::time::Duration;

use serde_json::json;
use sqlx::{Connection as _, PgConnection};

use crate::support::tcp_way::TcpWay;
use crate::support::{TestDatabase, TestService, a_sale};

/// What `tillmark healthcheck` answers for a service that listens there.
async fn healthcheck(listen: &str) -> Option<i32> {
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_tillmark"));
    let output = command.arg("healthcheck").env("TILLMARK_LISTEN", listen).output().await.unwrap();
    assert_eq!(output.stderr.is_empty(), output.status.success(), "{output:?}");
    output.status.code()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_is_not_ready_while_its_database_is_away_and_recovers_by_itself() {
    let database = TestDatabase::create().await;
    let mut way = TcpWay::to(&database).await;
    let service = TestService::start_with(&[("DATABASE_URL", &way.url)]).await;

    let listen = service.base.trim_start_matches("http://");
    let (_, port) = listen.split_once(':').unwrap();
    assert_eq!(healthcheck(listen).await, Some(0));
    assert_eq!(healthcheck(&format!("0.0.0.0:{port}")).await, Some(0));
    assert_eq!(healthcheck(&format!("[::ffff:127.0.0.1]:{port}")).await, Some(0));
    assert_eq!(healthcheck("127.0.0.1:1").await, Some(1), "nobody listens");

    let assert_away = async || {
        for path in ["/readyz", "/v1/hourly-sales"] {
            let answer = service.get(path).await;
            let found = (answer.status, &answer.body["type"]);
            assert_eq!(found, (503, &json!("/problems/database-away")), "{path}");
            assert!(!answer.header("retry-after").is_empty(), "{path}");
        }
        assert_eq!(service.get("/livez").await.status, 200);
        assert_eq!(healthcheck(listen).await, Some(1));
    };
    way.cut().await;
    assert_away().await;
    let silent = way.silence().await;
    assert_away().await;

    way.carry(silent);
    let recovered = async {
        while service.get("/readyz").await.status != 200 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(10), recovered).await;
    waited.expect("the service recovers within 10 s");
    service.post_events(&[a_sale("1", "09:05:00", "1.00")]).await;
    service.wait_until_idle("hourly_sales").await;
    assert_eq!(service.get("/v1/hourly-sales").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_key_is_good_for_long_while_nobody_can_tell_whether_it_was_revoked() {
    let database = TestDatabase::create().await;
    let mut way = TcpWay::to(&database).await;
    let service = TestService::start_with(&[("DATABASE_URL", &way.url)]).await;
    let made = json!({ "name": "head office", "scopes": ["admin"] });
    let made = service.post("/v1/keys", made).await;
    let key = made.body["key"].as_str().unwrap();
    // The limits are in memory: nothing but the key asks the database.
    let status_is = async |status: u16| {
        let answered = async {
            while service.get_as(key, "/v1/limits").await.status != status {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(10), answered).await;
        waited.unwrap_or_else(|_| panic!("it answers {status} within 10 s"));
    };
    status_is(200).await;
    way.cut().await;
    let silent = way.silence().await;
    status_is(503).await;
    let answer = service.get_as(key, "/v1/limits").await;
    assert_eq!(answer.body["type"], "/problems/database-away");
    assert_eq!(service.get("/v1/limits").await.status, 503, "nor is it told what is no key");
    assert_eq!(service.get("/livez").await.status, 200);
    way.carry(silent);
    status_is(200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn appends_go_on_when_another_server_takes_over_without_a_word() {
    let database = TestDatabase::create().await;
    let way = TcpWay::to(&database).await;
    let service = TestService::start_with(&[
        ("DATABASE_URL", &*way.url),
        ("TILLMARK_REQUEST_TIMEOUT", "5 seconds"),
    ])
    .await;
    // Both writers have a connection of their own.
    service.post_events(&[a_sale("1", "09:05:00", "1.00")]).await;
    service.post_events(&[a_sale("2", "09:05:00", "1.00")]).await;
    let goes_on = async |id: &str, within: u64| {
        let sale = a_sale(id, "09:05:00", "1.00");
        let answered = async {
            while let answer = service.post("/v1/events", sale.clone()).await
                && answer.status != 200
            {
                assert_eq!(answer.status, 503, "{}", answer.body);
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(within), answered).await;
        waited.unwrap_or_else(|_| panic!("{id} was not stored within {within} s"));
    };
    // While appends are under way, and after a rest, when the writers have given their connections back.
    way.strand();
    goes_on("3", 40).await;
    service.wait_until_idle("hourly_sales").await;
    service.post_events(&[a_sale("4", "09:05:00", "1.00")]).await;
    way.strand();
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    goes_on("5", 15).await;
    goes_on("6", 5).await;
    service.wait_until_idle("hourly_sales").await;
    assert_eq!(database.number("select count(*) from raw_events").await, 6);
    assert_eq!(service.get("/v1/hourly-sales").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_whose_process_says_nothing_is_ended() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    service.post_events(&[a_sale("0", "09:05:00", "1.00")]).await;
    // Between two transactions, and inside a copy: there no time limit of the server acts.
    let stuck = "select pg_advisory_lock(8388354993901630059)";
    let mut between = database.pool.acquire().await.unwrap().detach();
    sqlx::raw_sql(stuck).execute(&mut between).await.unwrap();
    let post = async |id: &str| {
        let posting = service.post("/v1/events", a_sale(id, "09:05:00", "1.00"));
        tokio::time::timeout(Duration::from_secs(15), posting).await.expect(id)
    };
    assert_eq!(post("1").await.status, 200);
    assert!(sqlx::raw_sql("select 1").execute(&mut between).await.is_err(), "it was ended");
    let mut inside = database.pool.acquire().await.unwrap().detach();
    let stuck = "begin; select pg_advisory_xact_lock(8388354993734774132)";
    sqlx::raw_sql(stuck).execute(&mut inside).await.unwrap();
    let copy = inside.copy_in_raw("copy event_keys from stdin").await.unwrap();
    assert_eq!(post("2").await.status, 200);
    assert!(copy.finish().await.is_err(), "it was ended");
    assert_eq!(database.number("select count(*) from raw_events").await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_told_of_a_duplicate_is_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let service = TestService::start_with(&[("TILLMARK_DATA_DIR", data.to_str().unwrap())]).await;
    let sale = json!([a_sale("1", "09:05:00", "1.00")]);
    assert_eq!(service.post("/v1/events?atomic=true", sale.clone()).await.status, 200);
    for query in ["hourly_sales", "hourly_sales_live"] {
        service.wait_until_idle(query).await;
        service.post(&format!("/v1/queries/{query}/pause"), json!({})).await;
    }
    let url = std::fs::read_to_string(data.join("postgres.url")).unwrap();
    let mut conn = PgConnection::connect(url.trim()).await.unwrap();
    let slow = ["alter system set wal_writer_delay = '10s'", "select pg_reload_conf()"];
    for statement in slow {
        sqlx::raw_sql(statement).execute(&mut conn).await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    // As a large append of another process does, which its own client was not yet told of.
    sqlx::raw_sql(
        "begin; set local synchronous_commit = off; create table written (lsn pg_lsn);
         insert into written select pg_logical_emit_message(true, 'test', ''); commit",
    )
    .execute(&mut conn)
    .await
    .unwrap();
    let again = service.post("/v1/events?atomic=true", sale).await;
    assert_eq!(again.body["duplicates"], 1, "{}", again.body);
    let is_flushed: bool =
        sqlx::query_scalar("select pg_current_wal_flush_lsn() >= lsn from written")
            .fetch_one(&mut conn)
            .await
            .unwrap();
    assert!(is_flushed);
}
