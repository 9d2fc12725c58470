//! Queries: created, changed, paused, reset, deleted, and one that fails beside one that does not.

use serde_json::{Value, json};

use crate::support::{TestDatabase, TestService, a_sale};

fn manual(delay: &str) -> Value {
    json!({
        "window": {"kind": "tumbling", "size": "1 hour"}, "watermark_delay": delay,
        "group_by": ["store_id"], "output_mode": "update", "trigger": {"kind": "manual"},
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_is_created_changed_paused_reset_and_deleted() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let path = "/v1/queries/by_store";
    let created = service.put(path, manual("1 hour")).await;
    assert_eq!((created.status, created.header("location")), (201, path), "{}", created.body);
    let changed = service.put(path, manual("2 hours")).await;
    assert_eq!((changed.status, &changed.body["watermark_delay"]), (200, &json!("2 hours")));
    let mut another = manual("1 hour");
    another["group_by"] = json!(["till_id"]);
    let refused = service.put(path, another).await;
    assert_eq!((refused.status, &refused.body["errors"][0]["pointer"]), (409, &json!("/group_by")));
    let mut sessions = manual("1 hour");
    sessions["window"] = json!({"kind": "session", "gap": "5 minutes"});
    let refused = service.put("/v1/queries/sessions", sessions).await;
    assert_eq!((refused.status, &refused.body["errors"][0]["code"]), (422, &json!("combination")));

    service
        .post_events(&[a_sale("1", "09:05:00", "20.00"), a_sale("2", "12:05:00", "20.00")])
        .await;
    let first = service.run("by_store").await;
    assert_eq!(service.post(&format!("{path}/pause"), json!({})).await.body["status"], "paused");
    assert_eq!(service.post(&format!("{path}/run"), json!({})).await.status, 409);
    assert_eq!(service.post(&format!("{path}/resume"), json!({})).await.body["status"], "running");
    assert_eq!(
        service.post(&format!("{path}/reset"), json!({})).await.body["batch_id"],
        Value::Null
    );
    assert_eq!(service.rows("by_store").await, Vec::<Value>::new());
    let again = service.run("by_store").await;
    let watermarks =
        |run: &[Value]| run.iter().map(|entry| entry["watermark"].clone()).collect::<Vec<_>>();
    assert_eq!(watermarks(&again), watermarks(&first));
    assert_eq!(service.delete(path).await.status, 204);
    assert_eq!(service.get(path).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changes_nothing_of_a_query_throws_no_batch_away() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let path = "/v1/queries/q";
    service.put(path, manual("1 hour")).await;
    for (case, action, delay, epoch) in [
        ("same rule", None, "PT1H", 0),
        ("running already", Some("resume"), "", 0),
        ("paused", Some("pause"), "", 1),
        ("paused already", Some("pause"), "", 1),
        ("resumed", Some("resume"), "", 2),
        ("other rule", None, "2 hours", 3),
    ] {
        let answer = match action {
            Some(action) => service.post(&format!("{path}/{action}"), json!({})).await,
            None => service.put(path, manual(delay)).await,
        };
        assert_eq!(answer.status, 200, "{case}: {}", answer.body);
        let stored = database.number("select epoch from queries where name = 'q'").await;
        assert_eq!(stored, epoch, "{case}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_array_in_the_place_of_an_object_is_refused_with_a_sentence() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let window = json!({"kind": "tumbling", "size": "1 hour"});
    let rule =
        json!([{}, window, "1 hour", [], null, "append", {"kind": "manual"}, 1, "earliest", null]);
    let mut trigger = manual("1 hour");
    trigger["trigger"] = json!(["manual"]);
    for (case, answer) in [
        ("rule", service.put("/v1/queries/q", rule).await),
        ("trigger", service.put("/v1/queries/q", trigger).await),
        ("run", service.post("/v1/queries/hourly_sales/run", json!([])).await),
    ] {
        let detail = answer.body["detail"].as_str().unwrap();
        assert_eq!(answer.status, 422, "{case}: {}", answer.body);
        assert!(detail.contains("expected an object"), "{case}: {detail}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_fails_says_why_and_does_not_stop_the_others() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    // A final row that is there already: the append of the same hour must fail, not overwrite it.
    let occupy = "insert into window_rows (query_id, window_start, window_end, currency, group_keys, orders, revenue, batch_id, closed_by)
        select query_id, '2026-10-01T09:00Z', '2026-10-01T10:00Z', 'USD', '[]', 1, 1, 0, 'watermark'
        from queries where name = 'hourly_sales'";
    database.execute(occupy).await;
    service
        .post_events(&[a_sale("1", "09:05:00", "20.00"), a_sale("2", "12:05:00", "20.00")])
        .await;
    service.wait_until_idle("hourly_sales_live").await;
    let mut failed = Value::Null;
    for _ in 0..200 {
        failed = service.get("/v1/queries/hourly_sales").await.body;
        if failed["status"] == "failed" {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    assert!(
        failed["error"].as_str().is_some_and(|error| error.contains("window_rows")),
        "{failed}"
    );
    assert_eq!(service.get("/v1/queries/hourly_sales_live").await.body["status"], "running");
    database.execute("delete from window_rows where revenue = 1").await;
    service.wait_until_idle("hourly_sales").await;
    assert_eq!(service.get("/v1/queries/hourly_sales").await.body["error"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_takes_its_turn_while_an_interval_query_works_off_a_backlog() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let sales: Vec<Value> =
        (0..2_000).map(|number| a_sale(&number.to_string(), "09:05:00", "1.00")).collect();
    service.post_events(&sales).await;
    let mut rule = manual("1 hour");
    rule["trigger"] = json!({"kind": "interval", "every": "100 milliseconds"});
    rule["max_events_per_batch"] = 1.into();
    service.put("/v1/queries/q", rule).await;
    let ran = service.post("/v1/queries/q/run", json!({"max_batches": 1})).await;
    assert_eq!((ran.status, ran.body["progress"].as_array().unwrap().len()), (200, 1));
    let lag = service.get("/v1/queries/q").await.body["lag_events"].as_i64().unwrap();
    assert!(lag > 1_000, "only {lag} are left: the run waited for the backlog");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_run_ends_when_the_service_is_asked_to_end() {
    let database = TestDatabase::create().await;
    let mut service = TestService::start(&database).await;
    let sales: Vec<Value> =
        (0..5_000).map(|number| a_sale(&number.to_string(), "09:05:00", "1.00")).collect();
    service.post_events(&sales).await;
    let mut rule = manual("1 hour");
    rule["max_events_per_batch"] = 1.into();
    service.put("/v1/queries/q", rule).await;
    let run = service.client.post(service.url("/v1/queries/q/run")).send();
    let run = tokio::spawn(run);
    while service.get("/v1/queries/q").await.body["batch_id"].is_null() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(service.terminate().await, Some(0));
    assert_eq!(run.await.unwrap().unwrap().status(), 503);
    let committed = database.number("select position from queries where name = 'q'").await;
    assert!(committed < 5_000, "the run went on to its end");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_of_a_batch_that_was_committed_all_the_same_goes_away_without_new_events() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    service.post_events(&[a_sale("1", "09:05:00", "1.00")]).await;
    service.wait_until_idle("hourly_sales").await;
    database.execute("update queries set error = 'commit unknown', epoch = epoch + 1").await;
    while database.number("select count(*) from queries where error is not null").await > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    assert_eq!(service.get("/v1/queries/hourly_sales").await.body["status"], "running");
}
