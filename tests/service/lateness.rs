//! How late events come: told exactly, per source and in total.

use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use super::report_ranges::database_read_by_indexes;
use crate::support::{TestDatabase, TestService, a_sale};

fn at_till(store: &str, till: &str, mut sale: Value) -> Value {
    (sale["store_id"], sale["till_id"]) = (store.into(), till.into());
    sale
}

#[tokio::test(flavor = "multi_thread")]
async fn the_worst_till_comes_first_and_what_was_heard_last_of_each_is_told() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let mut paid = at_till("S1", "1", a_sale("paid", "23:00:00", "1.00"));
    paid["status"] = "paid".into();
    service
        .post_events(&[
            at_till("S1", "1", a_sale("a", "09:00:00", "1.00")),
            paid,
            at_till("S1", "2", a_sale("b", "09:10:00", "1.00")),
            at_till("S1", "1", a_sale("c", "09:09:00", "1.00")),
            at_till("S2", "1", a_sale("d", "09:05:00.5", "1.00")),
        ])
        .await;
    let heartbeat = json!({"source": "till-9", "event_time": "2026-10-01T09:30:00Z"});
    assert_eq!(service.post("/v1/heartbeats", heartbeat).await.status, 202);
    service.post_events(&[at_till("S1", "2", a_sale("e", "09:20:00", "1.00"))]).await;
    let report = service.get("/v1/queries/hourly_sales/lateness?by=till_id&limit=2").await.body;
    let tills: Vec<_> = report["sources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            (&one["store_id"], &one["till_id"], one["disorder"]["max"]["ms"].as_i64().unwrap())
        })
        .collect();
    assert_eq!(tills, [(&json!("S1"), &json!("2"), 600_000), (&json!("S2"), &json!("1"), 299_500)]);
    assert_eq!(
        (&report["sources_count"], &report["total"]["disorder"]["count"]),
        (&json!(3), &json!(5))
    );
    assert_eq!(report["total"]["disorder"]["p50"], json!({"duration": "1 minute", "ms": 60_000}));
    let counts: Vec<i64> = report["total"]["disorder"]["histogram"]
        .as_array()
        .unwrap()
        .iter()
        .map(|bucket| bucket["count"].as_i64().unwrap())
        .collect();
    assert_eq!(counts, [2, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0]);
    let of_heartbeats = service.get("/v1/queries/hourly_sales/lateness?by=none").await.body;
    assert_eq!(of_heartbeats["sources"], json!([]));
    let heard = |name: &str| {
        let newest = of_heartbeats["newest"].as_array().unwrap();
        newest.iter().find(|one| one["heartbeats_of"] == *name).unwrap()["event_time"].clone()
    };
    assert_eq!(heard("till-9"), "2026-10-01T09:30:00Z");
    // In a range only its events are measured, against everything that was heard before them.
    let range = "from=2026-10-01T09:05:00Z&to=2026-10-01T09:10:00Z";
    let part = service.get(&format!("/v1/queries/hourly_sales/lateness?{range}")).await.body;
    assert_eq!(
        (&part["total"]["disorder"]["count"], &part["total"]["disorder"]["max"]["ms"]),
        (&json!(2), &json!(299_500))
    );
    let nothing =
        service.get("/v1/queries/hourly_sales/lateness?to=2000-01-01T00:00:00Z").await.body;
    assert_eq!(
        (&nothing["total"]["receipt_delay"]["count"], &nothing["total"]["receipt_delay"]["p99"]),
        (&json!(0), &json!(null))
    );
    let wrong = service.get("/v1/queries/hourly_sales/lateness?by=city&limit=0").await;
    assert_eq!((wrong.status, wrong.body["errors"].as_array().unwrap().len()), (400, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn quantiles_are_those_of_percentile_disc() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    database
        .execute(
            "insert into raw_events (seq, received_at, event_id, order_id, status, amount, currency, event_time, store_id)
             select nextval('raw_events_seq'), time + (n * n % 7001) * interval '1.7 milliseconds' - interval '2 seconds',
                 'e' || n, 'o' || n, case when n % 9 = 0 then 'paid' else 'placed' end, 1, 'USD',
                 time - (n * 7919 % 6007) * interval '0.1003 seconds', 'S' || n % 3
             from (select n, timestamptz '2026-10-01T00:00Z' + n * interval '1 second' as time
                 from generate_series(1, 20000) n) n",
        )
        .await;
    let report = service.get("/v1/queries/hourly_sales/lateness").await.body;
    let all = |source: &str, which: &str, delay: &str| {
        format!(
            "select array(select floor(extract(epoch from quantile) * 1000)::bigint from unnest(quantiles) quantile)
             from (select percentile_disc(array[0.5, 0.9, 0.99, 0.999, 0.9999, 1]) within group (order by {delay}) as quantiles
                 from (select *, max(event_time) over (order by seq rows between unbounded preceding and 1 preceding) as newest
                     from raw_events where status = 'placed') heard where {which}) of_{source}"
        )
    };
    for (source, which, told) in [("total", "true", &report["total"])].into_iter().chain([(
        "S1",
        "store_id = 'S1'",
        report["sources"].as_array().unwrap().iter().find(|one| one["store_id"] == "S1").unwrap(),
    )]) {
        for (delay, sql) in [
            ("receipt_delay", "received_at - event_time"),
            ("disorder", "greatest(newest - event_time, interval '0')"),
        ] {
            let expected: Vec<i64> = sqlx::query_scalar(AssertSqlSafe(all(source, which, sql)))
                .fetch_one(&database.pool)
                .await
                .unwrap();
            let names = ["p50", "p90", "p99", "p99.9", "p99.99", "max"];
            let answered = names.map(|name| told[delay][name]["ms"].as_i64().unwrap());
            assert_eq!(answered.to_vec(), expected, "{source} {delay}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_is_measured_as_if_the_whole_log_had_been_read() {
    let database = database_read_by_indexes().await;
    let service = TestService::start(&database).await;
    // Four days in order but for some disorder, stragglers of up to two days, and heartbeats of which one
    // in a hundred runs ahead by half a day.
    database
        .execute(
            "insert into raw_events (seq, received_at, kind, event_id, order_id, status, amount, currency, event_time, store_id)
             select nextval('raw_events_seq'), time, case when n % 50 = 0 then 'heartbeat' else 'event' end,
                 case when n % 50 = 0 then 'till-9' else 'e' || n end,
                 'o' || n, case when n % 9 = 0 then 'paid' else 'placed' end, 1, 'USD', case
                     when n % 5000 = 0 then time + interval '12 hours'
                     when n % 701 = 0 then time - (n % 48) * interval '1 hour'
                     else time - (n * 7919 % 6007) * interval '0.1003 seconds' end, 'S' || n % 3
             from (select n, timestamptz '2026-10-01T00:00Z' + n * interval '15 seconds' as time
                 from generate_series(1, 23000) n) n",
        )
        .await;
    for (from, to) in [
        ("2026-10-01T00:00:00Z", "2026-10-02T00:00:00Z"),
        ("2026-10-02T00:00:00Z", "2026-10-02T12:00:00Z"),
        ("2026-10-02T20:50:00Z", "2026-10-02T21:00:00Z"),
        ("2026-10-04T00:00:00Z", "2200-01-01T00:00:00Z"),
    ] {
        let path = format!("/v1/queries/hourly_sales/lateness?from={from}&to={to}");
        let told = service.get(&path).await.body;
        let naive = format!(
            "select array[count(*), floor(percentile_disc(0.5) within group (order by disorder)),
                 floor(percentile_disc(0.99) within group (order by disorder)), floor(max(disorder))]::bigint[]
             from (select *, extract(epoch from greatest(interval '0', max(event_time) over (
                     order by seq rows between unbounded preceding and 1 preceding) - event_time)) * 1000 as disorder
                 from raw_events where status = 'placed' or kind = 'heartbeat') heard
             where kind = 'event' and event_time >= '{from}' and event_time < '{to}'"
        );
        let expected: Vec<i64> =
            sqlx::query_scalar(AssertSqlSafe(naive)).fetch_one(&database.pool).await.unwrap();
        let disorder = &told["total"]["disorder"];
        let answered = [
            &disorder["count"],
            &disorder["p50"]["ms"],
            &disorder["p99"]["ms"],
            &disorder["max"]["ms"],
        ];
        assert_eq!(answered.map(|one| one.as_i64().unwrap()).to_vec(), expected, "{path}");
        assert!(expected[3] > 0, "{path}");
        let newest = told["newest"].as_array().unwrap().iter();
        let of_store = newest.filter(|one| one["store_id"] == "S1").map(|one| &one["event_time"]);
        let in_range = of_store.filter(|time| (from..to).contains(&time.as_str().unwrap()));
        assert_eq!(in_range.count(), 1, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn thirty_thousand_tills_are_measured_one_by_one() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    database
        .execute(
            "insert into raw_events (seq, received_at, event_id, order_id, status, amount, currency, event_time, store_id, till_id)
             select nextval('raw_events_seq'), time, 'e' || n, 'o' || n, 'placed', 1, 'USD', time, 'S' || n % 10000, 't' || n % 3
             from (select n, timestamptz '2026-10-01T00:00Z' + n * interval '1 second' as time
                 from generate_series(1, 60000) n) n",
        )
        .await;
    let answer = service.get("/v1/queries/hourly_sales/lateness?by=till_id&limit=2").await;
    assert_eq!((answer.status, &answer.body["sources_count"]), (200, &json!(30_000)));
}
