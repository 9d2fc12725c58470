//! Clients that go away in the middle of a request.

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::support::{TestDatabase, TestService, a_sale};

const CUT_REQUESTS: usize = 10_000;

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
        let body = serde_json::to_string(&events).unwrap();
        let request = format!(
            "POST /v1/events HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        // Every length comes up, the whole request too, and then nobody waits for the answer.
        let sent = request.len() - number * 7 % request.len() * (number % 2);
        let mut connection = TcpStream::connect(&address).await.unwrap();
        connection.write_all(&request.as_bytes()[..sent]).await.unwrap();
    }
    service.post_events(&[a_sale("last", "09:07:00", "1.00")]).await;
    service.wait_until_idle("hourly_sales_live").await;
    let left_open = "select count(*) from pg_stat_activity
        where datname = current_database() and state like 'idle in transaction%'";
    assert_eq!(database.number(left_open).await, 0);
    let halves =
        "select count(*) from (select 1 from raw_events group by split_part(order_id, '-', 1)
        having count(*) <> 2 and min(order_id) <> 'last') halves";
    assert_eq!(database.number(halves).await, 0);
    assert!(database.number("select count(*) from raw_events").await > 2);
    assert_eq!(service.get("/v1/reconciliation").await.body["unexplained"], 0);
}
