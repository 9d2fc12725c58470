//! A database that goes away and comes back.

use std::time::Duration;

use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::support::tcp_way::{carry, way_to};
use crate::support::{TestDatabase, TestService, a_sale};

#[tokio::test(flavor = "multi_thread")]
async fn a_service_is_not_ready_while_its_database_is_away_and_recovers_by_itself() {
    let database = TestDatabase::create().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (socket, url) = way_to(&database, &listener);
    let (_open, is_open) = watch::channel(true);
    let way = carry(listener, socket.clone(), is_open.clone());
    let service = TestService::start_with(&[("DATABASE_URL", &url)]).await;

    let assert_away = async || {
        for path in ["/readyz", "/v1/hourly-sales"] {
            let answer = service.get(path).await;
            let found = (answer.status, &answer.body["type"]);
            assert_eq!(found, (503, &json!("/problems/database-away")), "{path}");
            assert!(!answer.header("retry-after").is_empty(), "{path}");
        }
        assert_eq!(service.get("/livez").await.status, 200);
    };
    way.abort();
    assert!(way.await.is_err_and(|error| error.is_cancelled()));
    assert_away().await;
    // Next it takes connections and says nothing.
    let silent = TcpListener::bind(address).await.unwrap();
    assert_away().await;

    carry(silent, socket, is_open);
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
