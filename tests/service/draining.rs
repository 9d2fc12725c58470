//! SIGTERM: what was answered stays, what was begun is answered, and the end comes in time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::support::{Answer, Scrape, TestDatabase, TestService, a_sale};

const CLIENTS: usize = 8;

/// What became of the posts of one client.
#[derive(Debug, Default)]
struct Posted {
    answered: Vec<String>,
    /// Sent, and not answered: the client would post them again.
    unanswered: usize,
    /// Statuses other than 200.
    refusals: Vec<u16>,
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_was_answered_is_lost_when_the_service_is_stopped_under_load() {
    let database = TestDatabase::create().await;
    let mut service = TestService::start(&database).await;
    let (count, stopped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let url = service.url("/v1/events");
        let (count, stopped) = (Arc::clone(&count), Arc::clone(&stopped));
        // A connection of its own, kept open.
        let http = reqwest::Client::builder().timeout(Duration::from_secs(60)).build().unwrap();
        clients.spawn(async move {
            let mut posted = Posted::default();
            for number in 0.. {
                let id = format!("{client}-{number}");
                let batch = [
                    a_sale(&id, "09:05:00", "1.00"),
                    a_sale(&format!("{id}-b"), "09:06:00", "1.00"),
                ];
                match http.post(&url).json(&batch).send().await {
                    Ok(answer) if answer.status() == 200 => {
                        // Answered is what the client has read to its end.
                        if answer.text().await.is_ok_and(|text| text.contains("\"accepted\":2")) {
                            posted.answered.push(id);
                            count.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    Ok(answer) => posted.refusals.push(answer.status().as_u16()),
                    Err(error) if error.is_connect() && stopped.load(Ordering::Relaxed) => break,
                    Err(_) => posted.unanswered += 1,
                }
            }
            posted
        });
    }
    while count.load(Ordering::Relaxed) < 50 * CLIENTS {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stopped.store(true, Ordering::Relaxed);
    assert_eq!(service.terminate().await, Some(0), "{}", service.log());

    let stored: BTreeSet<String> = sqlx::query_scalar("select order_id from raw_events")
        .fetch_all(&database.pool)
        .await
        .unwrap()
        .into_iter()
        .collect();
    for posted in clients.join_all().await {
        for id in &posted.answered {
            assert!(
                stored.contains(id) && stored.contains(&format!("{id}-b")),
                "{id} was answered"
            );
        }
        // At the end each connection has at most one post under way.
        assert!(posted.unanswered <= 1, "{posted:?}");
        assert!(posted.refusals.iter().all(|status| *status == 503), "{posted:?}");
    }
    assert!(!service.log().contains("were not finished in time"), "{}", service.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_begun_before_the_signal_is_answered_after_it() {
    let database = TestDatabase::create().await;
    let mut service = TestService::start(&database).await;
    let mut held = database.pool.begin().await.unwrap();
    sqlx::raw_sql("select pg_advisory_xact_lock(8388354993901630059)")
        .execute(&mut *held)
        .await
        .unwrap();
    let mut posts = JoinSet::new();
    for client in 0..CLIENTS {
        let post = service.client.post(service.url("/v1/events"));
        let post = post.json(&a_sale(&client.to_string(), "09:05:00", "1.00"));
        posts.spawn(Answer::of(post));
    }
    let queued = async || {
        let text = service.get("/metrics").await.body;
        Scrape::read(text.as_str().unwrap()).value("tillmark_queue_events")
    };
    while queued().await < CLIENTS as f64 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut ready = service.get("/readyz").await;
    assert_eq!(ready.status, 200);
    let (url, client) = (service.url("/readyz"), service.client.clone());
    let release = async {
        // Until it takes no connections any more.
        while let Ok(answer) = client.get(&url).send().await {
            ready.status = answer.status().as_u16();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        held.commit().await.unwrap();
    };
    let (code, ()) = tokio::join!(service.terminate(), release);
    assert_eq!(code, Some(0), "{}", service.log());
    for answer in posts.join_all().await {
        assert_eq!((answer.status, &answer.body["accepted"]), (200, &json!(1)), "{}", answer.body);
    }
    assert_eq!(database.number("select count(*) from raw_events").await, CLIENTS as i64);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_never_ends_its_request_does_not_hold_up_the_stop() {
    let database = TestDatabase::create().await;
    // But for the deadline of heads, nothing would end the request while the service drains.
    let mut service = TestService::start_with(&[
        ("DATABASE_URL", &database.url),
        ("TILLMARK_HEADER_TIMEOUT", "1 second"),
        ("TILLMARK_BODY_TIMEOUT", "1 hour"),
        ("TILLMARK_REQUEST_TIMEOUT", "1 hour"),
    ])
    .await;
    let mut stream = TcpStream::connect(service.base.trim_start_matches("http://")).await.unwrap();
    let begin = "POST /v1/events HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: 100\r\n\r\n[";
    stream.write_all(begin.as_bytes()).await.unwrap();
    let active = async || {
        let text = service.get("/metrics").await.body;
        Scrape::read(text.as_str().unwrap()).value("http_server_active_requests")
    };
    while active().await < 2.0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(service.terminate().await, Some(0));
    assert!(!service.log().contains("were not finished in time"), "{}", service.log());
}
