//! kill -9 of the service while clients post and retry.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::{TestDatabase, TestService, a_sale};
use tokio::sync::RwLock;

const KILLS: usize = 50;
const CLIENTS: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn everything_answered_before_fifty_kills_is_in_the_log_once_and_adds_up() {
    let database = TestDatabase::create().await;
    let mut service = TestService::start(&database).await;
    let base = Arc::new(RwLock::new(service.base.clone()));
    let done = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| tokio::spawn(post_until_done(client, Arc::clone(&base), Arc::clone(&done))))
        .collect();
    for kill in 0..KILLS {
        tokio::time::sleep(Duration::from_millis(20 + (kill as u64 * 37) % 120)).await;
        service.kill_and_restart().await;
        *base.write().await = service.base.clone();
    }
    done.store(true, Ordering::Relaxed);
    let mut answered = Vec::new();
    for client in clients {
        answered.extend(client.await.unwrap());
    }
    assert!(answered.len() > KILLS, "the clients got {} answers", answered.len());
    for query in ["hourly_sales", "hourly_sales_live"] {
        service.wait_until_idle(query).await;
        let report = service.get(&format!("/v1/queries/{query}/reconciliation")).await.body;
        assert_eq!(report["unexplained"], 0, "{report}");
        assert_eq!(report["totals"]["USD"]["waiting"]["orders"], 0);
    }
    let missing: i64 = sqlx::query_scalar(
        "select count(*) from unnest($1::text[]) answered (event_id)
         where (select count(*) from raw_events where raw_events.event_id = answered.event_id) <> 1",
    )
    .bind(&answered)
    .fetch_one(&database.pool)
    .await
    .unwrap();
    assert_eq!(missing, 0);
    assert_eq!(
        database.number("select count(*) - count(distinct event_id) from raw_events").await,
        0
    );
}

/// Posts one event after the other, each until it is answered, and returns the ids answered.
async fn post_until_done(
    client: usize,
    base: Arc<RwLock<String>>,
    done: Arc<AtomicBool>,
) -> Vec<String> {
    let http = reqwest::Client::builder().timeout(Duration::from_secs(5)).build().unwrap();
    let mut answered = Vec::new();
    for number in 0..100_000 {
        let clock =
            format!("{:02}:{:02}:{:02}", 6 + number / 600 % 12, number / 10 % 60, number % 60);
        let event = a_sale(&format!("{client}-{number}"), &clock, "1.25");
        loop {
            if done.load(Ordering::Relaxed) {
                return answered;
            }
            let url = format!("{}/v1/events", base.read().await);
            match http.post(url).json(&event).send().await {
                Ok(answer) if answer.status() == 200 => break,
                Ok(_) | Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
        answered.push(format!("{client}-{number}-placed"));
    }
    answered
}
