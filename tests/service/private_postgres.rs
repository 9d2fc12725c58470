//! The private Postgres, stopped at once while clients post.

use std::time::Duration;

use serde_json::json;

use crate::support::{TestService, a_sale};

const STOPS: usize = 10;

#[tokio::test(flavor = "multi_thread")]
async fn everything_answered_before_ten_immediate_stops_of_postgres_is_kept_once() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let mut service = TestService::start_with(&[("TILLMARK_DATA_DIR", data)]).await;
    let mut posted = Vec::new();
    for stop in 0..STOPS {
        for number in 0..10 {
            let sale = a_sale(
                &format!("{stop}-{number}"),
                &format!("{:02}:{number:02}:00", 6 + stop),
                "1.25",
            );
            if number == 5 {
                stop_immediately(data);
            }
            post_until_answered(&service, &sale).await;
            posted.push(sale);
        }
    }
    let again = service.post("/v1/events", posted.clone().into()).await;
    assert_eq!(
        (again.status, &again.body["duplicates"]),
        (200, &json!(posted.len())),
        "{}",
        again.body
    );
    for query in ["hourly_sales", "hourly_sales_live"] {
        service.wait_until_idle(query).await;
        let report = service.get(&format!("/v1/queries/{query}/reconciliation")).await.body;
        assert_eq!(report["unexplained"], 0, "{report}");
        assert_eq!(report["totals"]["USD"]["recount"]["orders"], posted.len(), "{report}");
    }
    assert_eq!(service.terminate().await, Some(0));
}

/// What `pg_ctl stop -m immediate` does: SIGQUIT to the server.
fn stop_immediately(data: &str) {
    let file = std::fs::read_to_string(format!("{data}/pg/postmaster.pid")).unwrap();
    let id = file.lines().next().unwrap().parse().unwrap();
    let server = rustix::process::Pid::from_raw(id).unwrap();
    rustix::process::kill_process(server, rustix::process::Signal::QUIT).unwrap();
}

async fn post_until_answered(service: &TestService, sale: &serde_json::Value) {
    for _ in 0..400 {
        let answer = service.post("/v1/events", sale.clone()).await;
        match answer.status {
            200 => return,
            503 => assert!(!answer.header("retry-after").is_empty()),
            _ => panic!("{}", answer.body),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the service did not recover within 20 s");
}
