//! Posts of so many events that they are copied into the log: the same rows and answers as of few.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::support::{TestDatabase, TestService, a_sale};

const LARGE: usize = 450;
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
    assert_eq!(database.number(&format!("select count(*) from ({many}) one")).await, 450);
    let differing =
        format!("select count(*) from (({many} except {few}) union all ({few} except {many})) one");
    assert_eq!(database.number(&differing).await, 0);
    let keys = "select count(*) from event_keys join raw_events using (event_id, seq)
                where octet_length(content_hash) = 32";
    assert_eq!(database.number(keys).await, 901);
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
    assert_eq!(counts, [447, 2, 1, 1, 1], "{}", answer.body);
    // Again, now that all of it is taken, and more than once: the copy is not tried each time.
    for _ in 0..2 {
        let again = service.post("/v1/events", json!(events[4..])).await;
        assert_eq!((again.status, &again.body["duplicates"]), (200, &json!(448)), "{}", again.body);
    }
    assert_eq!(database.number("select count(*) from raw_events").await, 449);
    assert_eq!(database.number("select count(*) from event_keys").await, 450);
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
        assert_eq!((sum("accepted"), sum("duplicates")), (450, 1_350));
    }
    assert_eq!(database.number("select count(*) from raw_events").await, 4_500);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_read_to_a_position_has_missed_nothing_before_it() {
    const ROUNDS: usize = 15;
    let database = TestDatabase::create().await;
    let (one, other) = tokio::join!(TestService::start(&database), TestService::start(&database));
    let large = async |service: &TestService, name: &str, step: usize| {
        for round in 0..ROUNDS {
            // Some of them in both streams, so copies are given up too.
            let sale = |number: usize| {
                let name = if number.is_multiple_of(step) { "both" } else { name };
                a_sale(&format!("{name}-{round}-{number}"), "09:05:00", "1.00")
            };
            let events = (1..=LARGE).map(sale).collect::<Vec<_>>();
            let answer = service.post("/v1/events", json!(events)).await;
            assert_eq!(answer.status, 200, "{}", answer.body);
        }
    };
    let small = async |service: &TestService, name: &str| {
        for round in 0..ROUNDS {
            service.post_events(&[a_sale(&format!("{name}-{round}"), "09:05:00", "1.00")]).await;
            let all = json!([a_sale(&format!("{name}-all-{round}"), "09:05:00", "1.00")]);
            assert_eq!(service.post("/v1/events?atomic=true", all).await.status, 200);
        }
    };
    let posting = async {
        tokio::join!(
            large(&one, "a", 1_000),
            large(&one, "b", 1_000),
            large(&other, "c", 50),
            large(&other, "d", 1_000),
            large(&one, "e", 50),
            small(&one, "f"),
            small(&other, "g"),
        );
    };
    // What stands up to the newest position, each time somebody looks.
    let is_over = AtomicBool::new(false);
    let looking = async {
        let mut looks: Vec<(i64, i64)> = Vec::new();
        while !is_over.load(Ordering::Relaxed) {
            let look = "select coalesce(max(seq), 0), count(*) from raw_events";
            looks.push(sqlx::query_as(look).fetch_one(&database.pool).await.unwrap());
        }
        looks
    };
    let posting = async {
        posting.await;
        is_over.store(true, Ordering::Relaxed);
    };
    let ((), looks) = tokio::join!(posting, looking);
    assert!(looks.len() > ROUNDS, "{} looks", looks.len());
    for (newest, seen) in looks {
        let there = format!("select count(*) from raw_events where seq <= {newest}");
        assert_eq!(database.number(&there).await, seen, "up to {newest}");
    }
    let posted = 5 * ROUNDS * LARGE - ROUNDS * LARGE / 50 + 4 * ROUNDS;
    let stored =
        "select count(distinct event_id) from raw_events join event_keys using (event_id, seq)";
    assert_eq!(database.number(stored).await, i64::try_from(posted).unwrap());
    assert_eq!(
        database.number("select count(*) from raw_events").await,
        i64::try_from(posted).unwrap()
    );
    assert_eq!(locks_held(&database).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_fails_holds_nobody_up() {
    let database = TestDatabase::create().await;
    let (one, other) = tokio::join!(TestService::start(&database), TestService::start(&database));
    let sales = |name: &str| -> Vec<Value> {
        let sale = |number: usize| a_sale(&format!("{name}-{number}"), "09:05:00", "1.00");
        (0..LARGE).map(sale).collect()
    };
    one.post_events(&sales("before")[..1]).await;
    // Under the append lock, and after it was given back.
    for table in ["event_keys", "raw_events"] {
        let refuse = format!(
            "create function refuse_{table}() returns trigger language plpgsql as
                 $$ begin raise 'broken on purpose'; end $$;
             create trigger refuse before insert on {table} for each row
                 when (new.event_id like 'refused-%') execute function refuse_{table}()"
        );
        sqlx::raw_sql(sqlx::AssertSqlSafe(refuse)).execute(&database.pool).await.unwrap();
        let refused = one.post("/v1/events", json!(sales("refused"))).await;
        assert!(refused.status >= 500, "{}", refused.body);
        other.post_events(&sales(&format!("other-{table}"))).await;
        one.post_events(&sales(&format!("one-{table}"))).await;
        database.execute(&format!("drop trigger refuse on {table}")).await;
    }
    one.post_events(&sales("refused")).await;
    assert_eq!(locks_held(&database).await, 0);
}

/// Advisory locks that somebody holds or waits for.
async fn locks_held(database: &TestDatabase) -> i64 {
    let locks = "select count(*) from pg_locks join pg_database on pg_database.oid = database
                 where locktype = 'advisory' and datname = current_database()";
    database.number(locks).await
}
