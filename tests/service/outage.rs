//! A database that goes away and comes back.

use std::time::Duration;

use serde_json::json;

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
    way.strand();
    let sale = a_sale("3", "09:05:00", "1.00");
    let answered = async {
        loop {
            let answer = service.post("/v1/events", sale.clone()).await;
            if answer.status == 200 {
                return;
            }
            assert_eq!(answer.status, 503, "{}", answer.body);
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(45), answered).await;
    waited.expect("the connections that nobody answers on are given up");
    service.wait_until_idle("hourly_sales").await;
    assert_eq!(database.number("select count(*) from raw_events").await, 3);
}
