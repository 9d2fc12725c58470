//! Two services on one Postgres.

use std::time::Duration;

use crate::support::{TestDatabase, TestService, a_sale};

#[tokio::test(flavor = "multi_thread")]
async fn an_append_held_open_between_its_seq_and_its_commit_is_not_skipped() {
    let database = TestDatabase::create().await;
    let (one, other) = tokio::join!(TestService::start(&database), TestService::start(&database));
    let mut held = database.pool.begin().await.unwrap();
    sqlx::raw_sql(
        "select pg_advisory_xact_lock(8388354993901630059);
         insert into raw_events (seq, received_at, event_id, order_id, status, amount, currency, event_time)
         select nextval('raw_events_seq'), now(), 'held', '1', 'placed', 5, 'USD', '2026-10-01T09:00Z'",
    )
    .execute(&mut *held)
    .await
    .unwrap();
    let posts = async |service: &TestService, name: &str| {
        for number in 0..20 {
            service.post_events(&[a_sale(&format!("{name}-{number}"), "09:30:00", "1.00")]).await;
        }
    };
    let release = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        held.commit().await.unwrap();
    };
    tokio::join!(posts(&one, "one"), posts(&other, "other"), release);
    one.wait_until_idle("hourly_sales_live").await;
    let rows = one.rows("hourly_sales_live").await;
    assert_eq!((rows.len(), rows[0]["orders"].as_i64()), (1, Some(41)));
    assert_eq!(one.get("/v1/reconciliation?query=hourly_sales_live").await.body["unexplained"], 0);
}
