//! Advice on the delay: held against real queries that have those delays, on the same log.

use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use crate::support::{TestDatabase, TestService, a_sale};

const DELAYS: [&str; 4] = ["0 seconds", "5 minutes", "30 minutes", "4 hours"];

fn name_of(delay: &str) -> String {
    format!("with-{}", delay.replace(' ', "-"))
}

/// Creates a query for each delay, run by hand, and one more whose log is asked about.
async fn create_queries(service: &TestService, rule: &Value) {
    let queries = DELAYS.map(|delay| (name_of(delay), delay));
    for (name, delay) in
        queries.iter().map(|(name, delay)| (name.as_str(), *delay)).chain([("asked", "10 minutes")])
    {
        let mut rule = rule.clone();
        rule["watermark_delay"] = delay.into();
        rule["trigger"] = json!({"kind": "manual"});
        rule["filter"] = json!({"status": ["placed"]});
        let answer = service.put(&format!("/v1/queries/{name}"), rule).await;
        assert_eq!(answer.status, 201, "{}", answer.body);
    }
}

async fn run_queries(service: &TestService) {
    for delay in DELAYS {
        service.run(&name_of(delay)).await;
    }
}

/// The `number`-th event of a day: mostly in order, now and then an hour behind or a repeat, sometimes
/// of a kind that the queries do not count.
fn event(random: &mut fastrand::Rng, number: usize) -> Value {
    let minute = 60 + number * 2;
    let behind = *random.choice(&[0, 0, 0, 1, 4, 20, 55]).unwrap();
    let clock = format!(
        "{:02}:{:02}:{:02}.250",
        (minute - behind) / 60,
        (minute - behind) % 60,
        number % 60
    );
    let mut sale = a_sale(&format!("sale-{number}"), &clock, &format!("{}.25", number % 9 + 1));
    sale["store_id"] = (*random.choice(&["S1", "S2"]).unwrap()).into();
    sale["currency"] = (*random.choice(&["USD", "EUR"]).unwrap()).into();
    if number % 5 == 4 {
        sale["order_id"] = format!("sale-{}", number - 3).into();
    }
    if number.is_multiple_of(11) {
        sale["status"] = "paid".into();
    }
    sale
}

async fn advice(service: &TestService, query: &str, more: &str) -> Value {
    let path = format!("/v1/queries/{query}/delay-advice?delays={}{more}", DELAYS.join(","));
    let answer = service.get(&path).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.body
}

/// Everything that the real query of this delay did, as the advice words it, told by SQL alone.
async fn what_happened(database: &TestDatabase, delay: &str, is_final: &str) -> Value {
    let name = name_of(delay);
    let select = format!(
        "with query as (select query_id from queries where name = '{name}'),
         late as (select currency, seq, max(amount) as amount, count(*) as windows
             from dropped_events join query using (query_id) where reason = 'late' group by currency, seq),
         heard as (select received_at, max(event_time) over (order by seq) as newest from raw_events
             where status = 'placed' or kind = 'heartbeat'),
         windows as (select distinct window_start, window_end from window_rows join query using (query_id)
             where {is_final}),
         closed as (select (select extract(epoch from min(received_at) - window_end) from heard
                 where newest >= window_end + interval '{delay}') as lag from windows)
         select jsonb_build_object(
             'batches', (select count(*) from progress join query using (query_id)),
             'events_in', (select sum(events_in) from progress join query using (query_id)),
             'late_events', (select sum(late_events) from progress join query using (query_id)),
             'rows_written', (select sum(rows_written) from progress join query using (query_id)),
             'duplicates', (select sum(duplicates) from progress join query using (query_id)),
             'state_windows_max', (select max(state_windows) from progress join query using (query_id)),
             'windows', (select count(*) from closed),
             'worst_ms', (select floor(max(lag) * 1000) from closed),
             'median_ms', (select floor(percentile_disc(0.5) within group (order by lag) * 1000) from closed),
             'late', coalesce((select jsonb_object_agg(currency, money) from (
                 select currency, jsonb_build_object('orders', count(*), 'revenue', sum(amount)::numeric(18, 2)::text,
                     'missing', jsonb_build_object('orders', sum(windows),
                         'revenue', sum(amount * windows)::numeric(18, 2)::text)) as money
                 from late group by currency) by_currency), '{{}}'))"
    );
    sqlx::query_scalar(AssertSqlSafe(select)).fetch_one(&database.pool).await.unwrap()
}

/// The advice in the same words.
fn what_was_told(trial: &Value) -> Value {
    let mut told = json!({
        "windows": trial["closed"]["windows"],
        "worst_ms": trial["closed"]["worst"]["ms"], "median_ms": trial["closed"]["median"]["ms"],
    });
    for member in [
        "batches",
        "events_in",
        "late_events",
        "duplicates",
        "rows_written",
        "state_windows_max",
        "late",
    ] {
        told[member] = trial[member].clone();
    }
    told
}

/// Posts a day in posts of `sizes`, runs every query after each, and holds the advice of `asked`
/// against all of them.
async fn assert_told_as_it_happens(rule: Value, is_final: &str, seed: u64, size_max: usize) {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    create_queries(&service, &rule).await;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut number = 0;
    while number < 240 {
        let size = random.usize(1..=size_max);
        let events: Vec<Value> =
            (number..number + size).map(|number| event(&mut random, number)).collect();
        service.post_events(&events).await;
        if size_max == 1 {
            run_queries(&service).await;
        }
        if random.usize(0..6) == 0 {
            let minute = 60 + (number + size) * 2;
            let clock = format!("2026-10-01T{:02}:{:02}:00Z", minute / 60, minute % 60);
            let heartbeat = json!({"source": "till-1", "event_time": clock});
            assert_eq!(service.post("/v1/heartbeats", heartbeat).await.status, 202);
        }
        number += size;
        run_queries(&service).await;
        if size_max > 1 {
            service.run("asked").await;
        }
    }
    // Read in one go, its cuts are others.
    service.run("asked").await;
    let more = if size_max > 1 { "" } else { "&cuts=events" };
    let answer = advice(&service, "asked", more).await;
    let (mut late, mut windows) = (0, 0);
    for (delay, trial) in DELAYS.iter().zip(answer["delays"].as_array().unwrap()) {
        assert_eq!(trial["delay"]["duration"], *delay);
        let happened = what_happened(&database, delay, is_final).await;
        assert_eq!(what_was_told(trial), happened, "{rule} with {delay}");
        late += trial["late_events"].as_u64().unwrap();
        windows += trial["closed"]["windows"].as_u64().unwrap();
    }
    assert!(late > 0 && windows > 0, "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tumbling_windows_of_two_groups_are_told_as_they_happen() {
    let rule = json!({
        "window": {"kind": "tumbling", "size": "20 minutes"}, "group_by": ["store_id"],
        "output_mode": "append", "max_events_per_batch": 7,
    });
    assert_told_as_it_happens(rule, "true", 1, 20).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sliding_windows_are_told_as_they_happen() {
    let rule = json!({
        "window": {"kind": "sliding", "size": "30 minutes", "slide": "10 minutes"}, "output_mode": "update",
    });
    assert_told_as_it_happens(rule, "closed_by is not null", 2, 12).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_told_as_they_happen() {
    let rule = json!({
        "window": {"kind": "session", "gap": "3 minutes"}, "group_by": ["store_id"], "output_mode": "append",
    });
    assert_told_as_it_happens(rule, "true", 3, 9).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn duplicates_are_told_as_they_happen() {
    let rule = json!({
        "window": {"kind": "tumbling", "size": "20 minutes"}, "deduplicate": {"keys": ["order_id"]},
        "output_mode": "append",
    });
    assert_told_as_it_happens(rule, "true", 4, 12).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_event_at_a_time_is_told_as_it_would_have_happened() {
    let rule =
        json!({ "window": {"kind": "tumbling", "size": "20 minutes"}, "output_mode": "append" });
    assert_told_as_it_happens(rule, "true", 5, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_smallest_delay_that_reaches_the_target_is_advised() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    create_queries(
        &service,
        &json!({
            "window": {"kind": "tumbling", "size": "1 hour"}, "output_mode": "append",
        }),
    )
    .await;
    let nothing = advice(&service, "asked", "").await;
    assert_eq!(
        (&nothing["advised_delay"], &nothing["delays"][0]["share_counted"]),
        (&json!(null), &json!(null))
    );
    for (id, clock) in [
        ("1", "09:30:00"),
        ("2", "10:02:00"),
        ("3", "11:00:00"),
        ("4", "09:59:00"),
        ("5", "11:01:00"),
    ] {
        service.post_events(&[a_sale(id, clock, "20.00")]).await;
        service.run("asked").await;
    }
    for (target, advised) in
        [("80", json!("0 seconds")), ("80.0001%25", json!("4 hours")), ("100%25", json!("4 hours"))]
    {
        let answer = advice(&service, "asked", &format!("&target={target}")).await;
        assert_eq!(answer["advised_delay"], advised, "{answer}");
    }
    assert_eq!(advice(&service, "asked", "").await["delays"][1]["share_counted"], "80%");
    for (query, pointer) in [
        ("delays=soon", "/delays"),
        ("delays=1 hour,PT1H", "/delays"),
        ("delays=", "/delays"),
        ("delays=1 s,2 s,3 s,4 s,5 s,6 s,7 s,8 s,9 s,10 s,11 s,12 s,13 s", "/delays"),
        ("target=0", "/target"),
        ("target=101%25", "/target"),
        ("cuts=days", "/cuts"),
        ("from=x", "/from"),
    ] {
        let answer = service.get(&format!("/v1/queries/asked/delay-advice?{query}")).await;
        assert_eq!(
            (answer.status, &answer.body["errors"][0]["pointer"]),
            (400, &json!(pointer)),
            "{query}"
        );
    }
    assert_eq!(service.get("/v1/queries/none/delay-advice").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn advice_that_takes_too_long_is_given_up() {
    let database = TestDatabase::create().await;
    let settings =
        [("DATABASE_URL", database.url.as_str()), ("TILLMARK_REQUEST_TIMEOUT", "1 second")];
    let service = TestService::start_with(&settings).await;
    service.post_events(&[a_sale("1", "09:30:00", "20.00")]).await;
    service.wait_until_idle("hourly_sales").await;
    let mut lock = database.pool.begin().await.unwrap();
    sqlx::raw_sql("lock table progress").execute(&mut *lock).await.unwrap();
    let answer = service.get("/v1/queries/hourly_sales/delay-advice").await;
    assert_eq!((answer.status, &answer.body["type"]), (503, &json!("/problems/deadline-exceeded")));
    assert!(!answer.header("retry-after").is_empty());
    lock.rollback().await.unwrap();
    let at_work = "select count(*) from pg_stat_activity
        where datname = current_database() and state like 'idle in transaction%'";
    for _ in 0..200 {
        if database.number(at_work).await == 0 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("the replay is still at work");
}
