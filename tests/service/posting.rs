//! Truthful answers to posts, and to posts that are wrong.

use serde_json::{Value, json};

use crate::support::{TestDatabase, TestService, a_sale};

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_is_a_duplicate_and_other_content_is_a_conflict_also_after_a_restart() {
    let database = TestDatabase::create().await;
    let mut service = TestService::start(&database).await;
    let sale = a_sale("1001", "09:05:00", "20.00");
    service.post_events(std::slice::from_ref(&sale)).await;
    service.kill_and_restart().await;
    let retry = service.post("/v1/events", sale).await;
    assert_eq!((retry.status, &retry.body["duplicates"]), (200, &json!(1)), "{}", retry.body);
    let conflict = service.post("/v1/events", a_sale("1001", "09:05:00", "21.00")).await;
    assert_eq!(
        (conflict.status, &conflict.body["conflicts"]),
        (409, &json!(1)),
        "{}",
        conflict.body
    );
    assert_eq!(conflict.header("content-type"), "application/problem+json");
    assert_eq!(database.number("select count(*) from raw_events").await, 1);
    assert_eq!(database.number("select count(*) from event_conflicts").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_event_posted_twice_at_the_same_instant_is_stored_once() {
    let database = TestDatabase::create().await;
    let (one, other) = tokio::join!(TestService::start(&database), TestService::start(&database));
    for number in 0..20 {
        let sale = a_sale(&number.to_string(), "09:05:00", "20.00");
        let (first, second) = tokio::join!(
            one.post("/v1/events", sale.clone()),
            other.post("/v1/events", sale.clone())
        );
        let accepted = [&first, &second].map(|answer| answer.body["accepted"].as_i64().unwrap());
        assert_eq!(accepted.iter().sum::<i64>(), 1, "{} {}", first.body, second.body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mixture_stores_the_good_events_unless_it_is_atomic() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let body = || json!([a_sale("1", "09:05:00", "20.00"), {"event_id": "bad"}]);
    let atomic = service.post("/v1/events?atomic=true", body()).await;
    assert_eq!((atomic.status, database.number("select count(*) from raw_events").await), (422, 0));
    let mixed = service.post("/v1/events?results=all", body()).await;
    assert_eq!(mixed.status, 207);
    let statuses: Vec<&Value> =
        mixed.body["results"].as_array().unwrap().iter().map(|one| &one["status"]).collect();
    assert_eq!(statuses, ["accepted", "rejected"]);
    let empty = service.post("/v1/events", json!([])).await;
    assert_eq!((empty.status, &empty.body["accepted"]), (200, &json!(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_atomic_list_that_contradicts_itself_is_told_which_event_does() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    service.post_events(&[a_sale("0", "09:05:00", "1.00")]).await;
    let list = json!([
        a_sale("0", "09:05:00", "1.00"),
        a_sale("1", "09:05:00", "1.00"),
        a_sale("2", "09:05:00", "1.00"),
        a_sale("1", "09:05:00", "1.00"),
        a_sale("1", "09:05:00", "2.00"),
    ]);
    let refused = service.post("/v1/events?atomic=true", list).await;
    assert_eq!(refused.status, 422, "{}", refused.body);
    assert_eq!((&refused.body["conflicts"], &refused.body["rejected"]), (&json!(1), &json!(3)));
    let results = refused.body["results"].as_array().unwrap();
    let statuses: Vec<&Value> = results.iter().map(|one| &one["status"]).collect();
    assert_eq!(statuses, ["duplicate", "rejected", "rejected", "rejected", "conflict"]);
    let begins = |index: usize, with: &str| {
        let detail = results[index]["detail"].as_str().unwrap();
        assert!(detail.starts_with(with), "{index}: {detail}");
    };
    begins(1, "Good in itself, but not stored");
    begins(3, "Good in itself, but not stored");
    begins(4, "An event before it in this atomic request has its id and other content: the hash");
    assert_eq!(results[4]["seq"], Value::Null);
    assert_eq!(database.number("select count(*) from raw_events").await, 1);
    assert_eq!(database.number("select count(*) from event_conflicts").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_a_problem_too() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    for (path, status) in [
        ("/nothing", 404),
        ("/v1/queries/none", 404),
        ("/v1/hourly-sales?colour=red", 400),
        ("/v1/queries?limit=0", 400),
    ] {
        let answer = service.get(path).await;
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (status, "application/problem+json"),
            "{path}"
        );
    }
    let not_allowed = service.delete("/v1/events").await;
    assert_eq!((not_allowed.status, not_allowed.header("allow")), (405, "POST"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_is_remembered_for_as_long_as_the_setting_says() {
    let database = TestDatabase::create().await;
    let settings =
        [("DATABASE_URL", &*database.url), ("TILLMARK_EVENT_ID_RETENTION", "1500 milliseconds")];
    let service = TestService::start_with(&settings).await;
    let sale = a_sale("1", "09:05:00", "20.00");
    service.post_events(std::slice::from_ref(&sale)).await;
    let retry = service.post("/v1/events", sale.clone()).await;
    assert_eq!(retry.body["duplicates"], 1, "{}", retry.body);
    let all_forgotten = async || {
        while database.number("select count(*) from event_keys").await > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(25)).await;
        }
    };
    all_forgotten().await;
    // Nobody forgets the event itself; only a retry as late as this is taken for a new one.
    service.post_events(&[sale]).await;
    assert_eq!(database.number("select count(*) from raw_events").await, 2);
    // It is remembered as long again, and the next time begins where the one before ended.
    assert_eq!(database.number("select count(*) from event_keys").await, 1);
    all_forgotten().await;
    let next =
        "select forgotten_before - (select max(seq) from raw_events) from event_id_retention";
    let next = database.number(next).await;
    assert_eq!(next, 1);
}
