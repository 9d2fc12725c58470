//! Posts of so many events that they are copied into the log: the same rows and answers as of few.

use serde_json::{Value, json};

use crate::support::{TestDatabase, TestService, a_sale};

const LARGE: usize = 250;
/// Few enough for the usual statement.
const FEW: usize = 50;

/// Every column with and without a value, and values that are hard to write.
fn an_event(prefix: &str, number: usize) -> Value {
    let amounts =
        ["0", "-4.50", "0.0001", "99999999999999.9999", "-99999999999999.9999", "10000", "12.30"];
    let mut event = a_sale(&number.to_string(), "09:05:00", amounts[number % amounts.len()]);
    event["event_id"] = format!("{prefix}-{number}").into();
    if number.is_multiple_of(2) {
        event["store_id"] = json!("Ü 1");
        event["till_id"] = json!("till\t\"7\"\\");
        event["event_time"] = json!("1900-01-01T00:00:00.000001Z");
    }
    if number.is_multiple_of(3) {
        event["customer_id"] = json!("客");
        event["item_count"] = json!(number);
        event["attributes"] = json!({ "a": "", "b\"": "\u{1F6D2}\n" });
    }
    event
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rows_are_the_same_however_many_come_together() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let events = |prefix| (0..LARGE).map(|number| an_event(prefix, number)).collect::<Vec<_>>();
    // The first post of all looks for room in the log, which is another way.
    service.post_events(&[a_sale("first", "09:00:00", "1.00")]).await;
    service.post_events(&events("many")).await;
    for some in events("few").chunks(FEW) {
        service.post_events(some).await;
    }
    let columns = "order_id, status, amount, currency, event_time, store_id, till_id, customer_id, \
                   item_count, attributes, kind, quiet_ms";
    let of = |prefix: &str| {
        format!(
            "select split_part(event_id, '-', 2), {columns} from raw_events where starts_with(event_id, '{prefix}-')"
        )
    };
    let (many, few) = (of("many"), of("few"));
    assert_eq!(database.number(&format!("select count(*) from ({many}) one")).await, 250);
    let differing =
        format!("select count(*) from (({many} except {few}) union all ({few} except {many})) one");
    assert_eq!(database.number(&differing).await, 0);
    let keys = "select count(*) from event_keys join raw_events using (event_id, seq)
                where octet_length(content_hash) = 32";
    assert_eq!(database.number(keys).await, 501);
    let in_order =
        "select count(*) from (select seq, lag(seq) over (order by received_at, seq) as before
                    from raw_events) one where before > seq";
    assert_eq!(database.number(in_order).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_new_is_told_apart() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let sale = |number: usize, amount: &str| a_sale(&number.to_string(), "09:05:00", amount);
    service.post_events(&[sale(0, "1.00"), sale(1, "1.00")]).await;
    let mut from_the_future = sale(2, "1.00");
    from_the_future["event_time"] = json!("2150-01-01T00:00:00Z");
    let mut events = vec![sale(0, "1.00"), sale(1, "2.00"), from_the_future, json!({})];
    events.extend((3..LARGE).map(|number| sale(number, "1.00")));
    events.push(sale(3, "1.00"));
    let answer = service.post("/v1/events", json!(events)).await;
    assert_eq!(answer.status, 207, "{}", answer.body);
    let counts = ["accepted", "duplicates", "conflicts", "quarantined", "rejected"];
    let counts = counts.map(|name| answer.body[name].as_u64().unwrap());
    assert_eq!(counts, [247, 2, 1, 1, 1], "{}", answer.body);
    // Again, now that all of it is taken, and more than once: the copy is not tried each time.
    for _ in 0..2 {
        let again = service.post("/v1/events", json!(events[4..])).await;
        assert_eq!((again.status, &again.body["duplicates"]), (200, &json!(248)), "{}", again.body);
    }
    assert_eq!(database.number("select count(*) from raw_events").await, 249);
    assert_eq!(database.number("select count(*) from event_keys").await, 250);
    assert_eq!(database.number("select count(*) from event_conflicts").await, 1);
    assert_eq!(database.number("select count(*) from quarantine").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_events_at_the_same_instant_are_stored_once() {
    let database = TestDatabase::create().await;
    let (one, other) = tokio::join!(TestService::start(&database), TestService::start(&database));
    for round in 0..10 {
        let sale = |number: usize| a_sale(&format!("{round}-{number}"), "09:05:00", "1.00");
        let events: Vec<Value> = (0..LARGE).map(sale).collect();
        let backwards: Vec<Value> = events.iter().rev().cloned().collect();
        let answers = tokio::join!(
            one.post("/v1/events", json!(events)),
            one.post("/v1/events", json!(backwards)),
            other.post("/v1/events", json!(backwards)),
            other.post("/v1/events", json!(events)),
        );
        let answers = [answers.0, answers.1, answers.2, answers.3];
        let sum = |name: &str| -> u64 {
            answers.iter().map(|answer| answer.body[name].as_u64().expect(name)).sum()
        };
        assert_eq!((sum("accepted"), sum("duplicates")), (250, 750));
    }
    assert_eq!(database.number("select count(*) from raw_events").await, 2_500);
}
