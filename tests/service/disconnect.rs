//! Clients that go away in the middle of a request.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{TestDatabase, TestService, a_sale};

const CUT_REQUESTS: usize = 10_000;

fn post(events: &[Value]) -> String {
    let body = serde_json::to_string(&events).unwrap();
    format!(
        "POST /v1/events HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Waits until the number is the one expected, for half a minute at most.
async fn comes_to(database: &TestDatabase, select: &str, expected: i64) {
    for _ in 0..1_500 {
        if database.number(select).await == expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(database.number(select).await, expected, "{select}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_sends_no_more_gets_the_answer_and_who_is_gone_is_not_forgotten() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let address = service.base.trim_start_matches("http://").to_owned();
    for number in 0..40 {
        let events = [a_sale(&format!("{number}-half"), "09:05:00", "1.00")];
        let mut connection = TcpStream::connect(&address).await.unwrap();
        connection.write_all(post(&events).as_bytes()).await.unwrap();
        connection.shutdown().await.unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{number}: {answer}");
    }
    for number in 0..40 {
        let events = [a_sale(&format!("{number}-gone"), "09:05:00", "1.00")];
        let mut connection = TcpStream::connect(&address).await.unwrap();
        connection.write_all(post(&events).as_bytes()).await.unwrap();
    }
    comes_to(&database, "select count(*) from raw_events", 80).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_cut_requests_leave_no_open_transaction_and_no_half_post() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let address = service.base.trim_start_matches("http://").to_owned();
    for number in 0..CUT_REQUESTS {
        let events = [
            a_sale(&format!("{number}-a"), "09:05:00", "1.00"),
            a_sale(&format!("{number}-b"), "09:06:00", "1.00"),
        ];
        let request = post(&events);
        // Every length comes up, the whole request too, and then nobody waits for the answer.
        let sent = request.len() - number * 7 % request.len() * (number % 2);
        let mut connection = TcpStream::connect(&address).await.unwrap();
        connection.write_all(&request.as_bytes()[..sent]).await.unwrap();
    }
    service.post_events(&[a_sale("last", "09:07:00", "1.00")]).await;
    service.wait_until_idle("hourly_sales_live").await;
    let left_open = "select count(*) from pg_stat_activity
        where datname = current_database() and state like 'idle in transaction%'";
    // What nobody waits for may still be at work; what was left open stays open.
    comes_to(&database, left_open, 0).await;
    let halves =
        "select count(*) from (select 1 from raw_events group by split_part(order_id, '-', 1)
        having count(*) <> 2 and min(order_id) <> 'last') halves";
    assert_eq!(database.number(halves).await, 0);
    assert!(database.number("select count(*) from raw_events").await > 2);
    assert_eq!(service.get("/v1/reconciliation").await.body["unexplained"], 0);
}
