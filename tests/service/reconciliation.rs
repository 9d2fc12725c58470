//! What finance fetches: damage behind the service's back is found and named.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::support::{TestDatabase, TestService, a_sale};

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_a_deleted_and_an_extra_row_are_each_found() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let clocks = ["09:05:00", "10:05:00", "11:05:00", "14:00:00"];
    service.post_events(&clocks.map(|clock| a_sale(clock, clock, "20.00"))).await;
    service.wait_until_idle("hourly_sales").await;
    let all = "/v1/reconciliation?from=1900-01-01T00:00:00Z&to=2200-01-01T00:00:00Z";
    assert_eq!(service.get(all).await.body["windows"].as_array().unwrap().len(), 4);
    let unexplained = async || service.get("/v1/reconciliation").await.body["unexplained"].clone();
    assert_eq!(unexplained().await, 0);
    database.execute("update window_rows set revenue = revenue + 1 where closed_by is not null and window_start = '2026-10-01T09:00Z'").await;
    assert_eq!(unexplained().await, 1);
    database.execute("delete from window_rows using queries where queries.query_id = window_rows.query_id and name = 'hourly_sales' and window_start = '2026-10-01T10:00Z'").await;
    assert_eq!(unexplained().await, 2);
    database
        .execute("insert into window_rows select query_id, window_start - interval '1 day', window_end - interval '1 day', currency, group_keys, orders, revenue, batch_id, written_at, closed_by from window_rows where window_start = '2026-10-01T11:00Z' and closed_by is not null")
        .await;
    assert_eq!(unexplained().await, 3);
    let report = service
        .get("/v1/reconciliation?from=2026-10-01T10:00:00Z&to=2026-10-01T11:00:00Z")
        .await
        .body;
    assert_eq!(report["windows"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&report["windows"][0]["stream"], &report["windows"][0]["status"]),
        (&json!(null), &json!("unexplained"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_fetched_while_clients_post_add_up_every_time() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let posts = async |client: &str| {
        for number in 0..150 {
            // Hours close on the way, and every seventh event comes too late.
            let hour = if number % 7 == 6 { 6 } else { 6 + number / 10 };
            let clock = format!("{hour:02}:{:02}:00", number % 60);
            service.post_events(&[a_sale(&format!("{client}-{number}"), &clock, "1.25")]).await;
        }
    };
    let posted = AtomicBool::new(false);
    let all_posts = async {
        tokio::join!(posts("one"), posts("two"), posts("three"));
        posted.store(true, Ordering::Relaxed);
    };
    let reports = async |query: &str| {
        let mut under_way = 0;
        while !posted.load(Ordering::Relaxed) {
            let report = service.get(&format!("/v1/queries/{query}/reconciliation")).await.body;
            assert_eq!(report["unexplained"], 0, "{report}");
            under_way += 1;
        }
        under_way
    };
    let (append, update, ()) =
        tokio::join!(reports("hourly_sales"), reports("hourly_sales_live"), all_posts);
    assert!(append >= 10 && update >= 10, "{append} and {update} reports were fetched");
    service.wait_until_idle("hourly_sales").await;
    let report = service.get("/v1/reconciliation").await.body;
    assert_eq!(
        (&report["unexplained"], &report["totals"]["USD"]["recount"]["orders"]),
        (&json!(0), &json!(450))
    );
}

fn of_order(id: &str, order: &str, clock: &str) -> Value {
    let mut sale = a_sale(id, clock, "10.00");
    sale["order_id"] = order.into();
    sale
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_of_sessions_is_what_the_recount_counts_and_repeats_stand_beside_it() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let rule = json!({
        "window": {"kind": "session", "gap": "30 minutes"}, "watermark_delay": "0 seconds",
        "output_mode": "append", "deduplicate": {"keys": ["order_id"]}, "trigger": {"kind": "manual"},
    });
    service.put("/v1/queries/q", rule).await;
    let posts = [
        of_order("a", "1", "09:00:00"),
        of_order("b", "2", "09:50:00"),
        of_order("c", "1", "09:25:00"),
        of_order("d", "1", "08:40:00"),
    ];
    service.post_events(&posts).await;
    service.run("q").await;
    service.post_events(&[of_order("e", "3", "12:00:00")]).await;
    service.run("q").await;
    let lines = async |range: &str| -> Vec<(String, String, Value)> {
        let report = service.get(&format!("/v1/queries/q/reconciliation{range}")).await.body;
        assert_eq!(report["unexplained"], 0, "{report}");
        let line = |line: &Value| {
            let clock = |bound: &str| line[bound].as_str().unwrap()[11..16].to_owned();
            let orders = |part: &str| line[part]["orders"].clone();
            let part =
                json!([orders("stream"), orders("recount"), orders("duplicates"), line["status"]]);
            (clock("start"), clock("end"), part)
        };
        report["windows"].as_array().unwrap().iter().map(line).collect()
    };
    let line = |start: &str, end: &str, part: Value| (start.to_owned(), end.to_owned(), part);
    let all = [
        // Neither side counts it, and no session holds it.
        line("08:40", "09:10", json!([null, null, 1, "match"])),
        line("09:00", "09:30", json!([1, 1, 1, "match"])),
        line("09:50", "10:20", json!([1, 1, 0, "match"])),
        line("12:00", "12:30", json!([null, 1, 0, "open"])),
    ];
    assert_eq!(lines("").await, all);
    assert_eq!(lines("?from=2026-10-01T09:00:00Z&to=2026-10-01T12:00:00Z").await, all[1..3]);
    // An order that comes again when its key is forgotten counts twice in the stream, and is said to.
    service.post_events(&[of_order("f", "1", "12:10:00")]).await;
    service.run("q").await;
    let report = lines("?from=2026-10-01T12:00:00Z").await;
    assert_eq!(report.last().unwrap().2, json!([null, 1, 0, "open"]));
    service.post_events(&[of_order("g", "4", "15:00:00")]).await;
    service.run("q").await;
    let report = lines("?from=2026-10-01T12:00:00Z&to=2026-10-01T13:00:00Z").await;
    assert_eq!(report, [line("12:00", "12:40", json!([2, 1, 0, "repeats"]))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_by_status_keeps_its_own_status_apart() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let rule = json!({
        "window": {"kind": "tumbling", "size": "1 hour"}, "watermark_delay": "0 seconds",
        "output_mode": "update", "group_by": ["status"], "trigger": {"kind": "manual"},
    });
    service.put("/v1/queries/q", rule).await;
    service.post_events(&[a_sale("1", "09:00:00", "1.00")]).await;
    service.run("q").await;
    let line = service.get("/v1/queries/q/reconciliation").await.body["windows"][0].clone();
    assert_eq!((&line["event_status"], &line["status"]), (&json!("placed"), &json!("match")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_came_late_for_a_session_stands_beside_its_row() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let rule = json!({
        "window": {"kind": "session", "gap": "30 minutes"}, "watermark_delay": "0 seconds",
        "output_mode": "append", "trigger": {"kind": "manual"},
    });
    service.put("/v1/queries/q", rule).await;
    for clock in ["09:00:00", "12:00:00", "09:10:00", "09:12:00"] {
        service.post_events(&[a_sale(clock, clock, "10.00")]).await;
        service.run("q").await;
    }
    assert_eq!(service.rows("q").await[0]["late_since"], json!({"orders": 2, "revenue": "20.00"}));
}

/// A late event and two final hours in `hourly_sales`; nothing is unexplained.
async fn a_late_event() -> (TestDatabase, TestService) {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    for clock in ["09:05:00", "10:05:00", "14:00:00", "09:50:00"] {
        service.post_events(&[a_sale(clock, clock, "20.00")]).await;
        service.wait_until_idle("hourly_sales").await;
    }
    (database, service)
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_in_any_table_is_found_and_named() {
    const NINE: &str = "2026-10-01T09:00:00Z";
    const TEN: &str = "2026-10-01T10:00:00Z";
    const TWO: &str = "2026-10-01T14:00:00Z";
    const OF_QUERY: &str = "query_id = (select query_id from queries where name = 'hourly_sales')";
    for (damage, start, finding) in [
        ("update window_state set orders = orders + 1 where {q}", TWO, "disagree"),
        ("delete from window_state where {q}", TWO, "the stream has no row, or state"),
        (
            "insert into window_state select query_id, window_start - interval '4 hours', window_end - interval '4 hours', currency, group_keys, orders, revenue from window_state where {q}",
            TEN,
            "disagree",
        ),
        ("update raw_events set amount = 19 where event_id = '10:05:00-placed'", TEN, "disagree"),
        ("update raw_events set amount = 19 where event_id = '09:50:00-placed'", NINE, "disagree"),
        (
            "delete from raw_events where event_id = '10:05:00-placed'",
            TEN,
            "the raw log holds no event",
        ),
        (
            "insert into raw_events (seq, received_at, event_id, order_id, status, amount, currency, event_time) select 2, received_at, 'extra', order_id, status, amount, currency, event_time from (select * from raw_events where event_id = '10:05:00-placed') sold on conflict do nothing; update raw_events set event_time = '2026-10-01T10:06:00Z' where event_id = '09:05:00-placed'",
            TEN,
            "disagree",
        ),
        ("update dropped_events set amount = 19 where {q}", NINE, "disagree"),
        ("delete from dropped_events where {q}", NINE, "disagree"),
        (
            "insert into dropped_events select query_id, 999, window_start, window_end, currency, group_keys, amount, reason, batch_id, watermark, late_by_ms from dropped_events where {q}",
            NINE,
            "the ledger has entries for events that the raw log does not hold here: seq 999",
        ),
        (
            "update raw_events set currency = 'ZZZ' where event_id = '10:05:00-placed'",
            TEN,
            "the raw log holds no event",
        ),
        (
            "update dropped_events set reason = 'duplicate' where {q}",
            NINE,
            "without a duplicates rule",
        ),
        (
            "update window_rows set batch_id = 999 where {q} and window_start = '2026-10-01T10:00Z'",
            TEN,
            "names batch 999",
        ),
        // It takes the place of a lost one, to the cent.
        ("update dropped_events set seq = 999 where {q}", NINE, "does not hold here: seq 999"),
        (
            "update window_rows set closed_by = null where {q} and window_start = '2026-10-01T10:00Z'",
            TEN,
            "the stream's row is not marked final",
        ),
        (
            "update window_rows set window_end = 'infinity' where {q} and window_start = '2026-10-01T10:00Z'",
            TEN,
            "the stream has no row",
        ),
        (
            "update window_rows set revenue = 'NaN' where {q} and window_start = '2026-10-01T10:00Z'",
            TEN,
            "the stream has no row",
        ),
        (
            "update window_rows set currency = 'ZZZ' where {q} and window_start = '2026-10-01T10:00Z'",
            TEN,
            "the stream has no row",
        ),
    ] {
        let (database, service) = a_late_event().await;
        let before = service.get("/v1/reconciliation").await.body;
        assert_eq!(before["unexplained"], 0, "{before}");
        assert_eq!(before["windows"][0]["status"], "late");
        database.execute(&damage.replace("{q}", OF_QUERY)).await;
        let answer = service.get("/v1/reconciliation").await;
        assert_eq!(answer.status, 200, "{damage}: {}", answer.body);
        assert_ne!(answer.body["unexplained"], 0, "{damage}: {}", answer.body);
        let lines = answer.body["windows"].as_array().unwrap().iter();
        let line = lines.clone().find(|line| line["start"] == start).unwrap();
        assert_eq!(line["status"], "unexplained", "{damage}: {line}");
        let named = line["findings"][0].as_str().unwrap();
        assert!(named.contains(finding), "{damage}: {named}");
        if ["ZZZ", "NaN", "infinity"].iter().any(|odd| damage.contains(odd)) {
            let said = answer.body["findings"][0].as_str().unwrap();
            assert!(said.contains("cannot be"), "{damage}: {said}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_booked_is_held_against_the_ledger() {
    for damage in [
        "delete from dropped_events",
        "update dropped_events set amount = 19",
        "update dropped_events set group_keys = '[\"S2\"]'",
        "update dropped_events set currency = 'EUR'",
        "update dropped_events set reason = 'duplicate'",
        "delete from corrected_events",
    ] {
        let (database, service) = a_late_event().await;
        let booking =
            json!({"windows": "all", "note": "till 7 was offline", "booked_by": "finance"});
        service.post("/v1/queries/hourly_sales/corrections", booking).await;
        let before = service.get("/v1/reconciliation").await.body;
        assert_eq!(
            (&before["unexplained"], &before["findings"]),
            (&json!(0), &json!([])),
            "{before}"
        );
        database.execute(damage).await;
        let report = service.get("/v1/reconciliation").await.body;
        let window = &report["windows"][0];
        assert_eq!(
            (&report["unexplained"], &window["status"]),
            (&json!(1), &json!("unexplained")),
            "{report}"
        );
        let found = window["findings"].to_string();
        assert!(
            found.contains("correction 1 does not add up: it books 1 orders and 20.00"),
            "{damage}: {found}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn state_that_is_not_what_the_rows_say_is_found_before_the_next_batch_goes_on_from_it() {
    for mode in ["update", "complete"] {
        for damage in [
            "update window_state set orders = orders + 1",
            "delete from window_state",
            "insert into window_state select query_id, window_start - interval '1 hour', window_end - interval '1 hour',
                 currency, group_keys, orders, revenue from window_state",
        ] {
            let database = TestDatabase::create().await;
            let service = TestService::start(&database).await;
            let rule = json!({
                "window": {"kind": "tumbling", "size": "1 hour"}, "watermark_delay": "1 hour",
                "output_mode": mode, "trigger": {"kind": "manual"},
            });
            service.put("/v1/queries/q", rule).await;
            service.post_events(&[a_sale("1", "09:05:00", "20.00")]).await;
            service.run("q").await;
            let before = service.get("/v1/queries/q/reconciliation").await.body;
            assert_eq!(before["unexplained"], 0, "{before}");
            let of_query = "where query_id = (select query_id from queries where name = 'q')";
            database.execute(&format!("{damage} {of_query}")).await;
            let after = service.get("/v1/queries/q/reconciliation").await.body;
            let lines = after["windows"].as_array().unwrap().iter();
            let odd: Vec<&Value> = lines.filter(|line| line["status"] == "unexplained").collect();
            assert_eq!((odd.len(), &after["unexplained"]), (1, &json!(1)), "{mode} {damage}: {after}");
            assert_eq!(odd[0]["findings"], json!(["the state is not what the stream's row says"]));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_of_the_ledger_that_explain_nothing_are_found_with_a_duplicates_rule_too() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let rule = json!({
        "window": {"kind": "tumbling", "size": "1 hour"}, "watermark_delay": "1 hour",
        "output_mode": "append", "deduplicate": {"keys": ["order_id"]}, "group_by": ["store_id"],
    });
    service.put("/v1/queries/q", rule).await;
    let mut sale = a_sale("1", "09:05:00", "20.00");
    sale["store_id"] = "S1".into();
    service.post_events(&[sale, a_sale("2", "12:00:00", "20.00")]).await;
    service.wait_until_idle("q").await;
    let report = async |filter: &str| {
        service.get(&format!("/v1/queries/q/reconciliation?{filter}")).await.body
    };
    assert_eq!(report("").await["unexplained"], 0);
    assert_eq!(report("store_id=S1").await["windows"].as_array().unwrap().len(), 1);
    assert_eq!(report("store_id=").await["windows"][0]["start"], "2026-10-01T12:00:00Z");
    assert_eq!(report("currency=EUR").await["windows"], json!([]));
    let insert = |seq: &str, reason: &str| {
        format!(
            "insert into dropped_events select query_id, {seq}, '2026-10-01T09:00Z', '2026-10-01T10:00Z', 'USD', '[\"S1\"]', 20, '{reason}', 0, 'epoch', 0 from queries where name = 'q'"
        )
    };
    database.execute(&insert("999", "duplicate")).await;
    let line = report("store_id=S1").await["windows"][0].clone();
    assert_eq!(
        (&line["status"], &line["late"]["event_ids"]),
        (&json!("unexplained"), &json!(["seq 999"]))
    );
    database.execute("delete from dropped_events").await;
    database
        .execute(&insert("(select seq from raw_events where event_id = '1-placed')", "duplicate"))
        .await;
    let line = report("store_id=S1").await["windows"][0].clone();
    assert!(line["findings"][0].as_str().unwrap().contains("1-placed"), "{line}");
}
