//! Following a query by Server-Sent Events.

use std::time::Duration;

use serde_json::{Value, json};

use super::key_scopes::{Keys, service_with_two_stores};
use crate::support::{TestDatabase, TestService, a_sale};

/// How long something that must come may take.
const COMES_WITHIN: Duration = Duration::from_secs(20);

/// One event, as a browser reads it.
#[derive(Debug, Clone, PartialEq)]
struct Event {
    name: String,
    data: Value,
    /// The last id that the stream has named.
    id: String,
}

/// A client that follows a query.
struct Follower {
    answer: reqwest::Response,
    unread: String,
    id: String,
}

impl Follower {
    async fn start(service: &TestService, path: &str, key: &str, last_event_id: &str) -> Self {
        let client = reqwest::Client::new();
        let mut request = client.get(service.url(path)).header("accept", "text/event-stream");
        // A stream that waits in a compressor's buffer would be none.
        request = request.header("accept-encoding", "gzip, zstd");
        if !key.is_empty() {
            request = request.bearer_auth(key);
        }
        if !last_event_id.is_empty() {
            request = request.header("last-event-id", last_event_id);
        }
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        assert!(!answer.headers().contains_key("content-encoding"));
        let mut follower = Self { answer, unread: String::new(), id: String::new() };
        // The first block says where the stream begins.
        if last_event_id.is_empty() {
            let block = follower.block().await.expect("a beginning");
            assert!(block.contains("retry: ") && block.contains("id: "), "{block}");
        }
        follower
    }

    /// The next block; nothing at the end.
    async fn block(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.unread.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.unread = rest;
                if let Some(id) = block.lines().find_map(|line| line.strip_prefix("id: ")) {
                    self.id = id.to_owned();
                }
                return Some(block);
            }
            let chunk = tokio::time::timeout(COMES_WITHIN, self.answer.chunk()).await;
            let chunk = chunk.expect("something comes, a comment at least");
            let chunk = chunk.expect("the stream is not cut off")?;
            self.unread.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// The next event; nothing at the end.
    async fn event(&mut self) -> Option<Event> {
        loop {
            let block = self.block().await?;
            let line = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
            if let Some(data) = line("data: ") {
                let name = line("event: ").unwrap().to_owned();
                let data = serde_json::from_str(data).unwrap();
                return Some(Event { name, data, id: self.id.clone() });
            }
        }
    }

    /// Everything up to the progress of this micro-batch.
    async fn up_to_batch(&mut self, batch_id: i64) -> Vec<Event> {
        let mut events = Vec::new();
        loop {
            let event = self.event().await.expect("the stream goes on");
            let is_last = event.name == "progress" && event.data["batch_id"] == batch_id;
            events.push(event);
            if is_last {
                return events;
            }
        }
    }
}

/// The rows that were told of, as `start orders`, the latest of each.
fn rows_of(events: &[Event]) -> Vec<String> {
    let windows = events.iter().filter(|event| event.name == "windows");
    let rows = windows.flat_map(|event| event.data["rows"].as_array().unwrap());
    let mut latest = std::collections::BTreeMap::new();
    for row in rows {
        latest.insert(row["start"].as_str().unwrap().to_owned(), row["orders"].clone());
    }
    latest.into_iter().map(|(start, orders)| format!("{} {orders}", &start[11..16])).collect()
}

fn late_of(events: &[Event]) -> Vec<String> {
    let late = events.iter().filter(|event| event.name == "late");
    let entries = late.flat_map(|event| event.data["dropped_events"].as_array().unwrap());
    entries.map(|entry| entry["event"]["event_id"].as_str().unwrap().to_owned()).collect()
}

fn batches_of(events: &[Event]) -> Vec<i64> {
    let progress = events.iter().filter(|event| event.name == "progress");
    progress.map(|event| event.data["batch_id"].as_i64().unwrap()).collect()
}

async fn last_batch(service: &TestService, query: &str) -> i64 {
    service.wait_until_idle(query).await;
    service.get(&format!("/v1/queries/{query}")).await.body["batch_id"].as_i64().unwrap()
}

const STAGES: [&[(&str, &str)]; 3] = [
    &[("1001", "09:05:00"), ("1002", "09:20:00"), ("1004", "10:20:00")],
    &[("1005", "11:30:00")],
    &[("1006", "09:50:00"), ("1007", "10:45:00"), ("1008", "12:40:00")],
];

async fn post(service: &TestService, stage: &[(&str, &str)]) {
    let sales: Vec<Value> = stage.iter().map(|(id, clock)| a_sale(id, clock, "10.00")).collect();
    service.post_events(&sales).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_follows_is_told_rows_late_events_and_progress_on_any_replica() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let other = TestService::start(&database).await;
    let mut final_hours = Follower::start(&service, "/v1/stream", "", "").await;
    let mut from_other = Follower::start(&other, "/v1/stream?query=hourly_sales", "", "").await;
    let mut live = Follower::start(&other, "/v1/stream?query=hourly_sales_live", "", "").await;
    for stage in STAGES {
        post(&service, stage).await;
        service.wait_until_idle("hourly_sales").await;
        service.wait_until_idle("hourly_sales_live").await;
    }
    let last = last_batch(&service, "hourly_sales").await;
    let events = final_hours.up_to_batch(last).await;
    assert_eq!(rows_of(&events), ["09:00 2", "10:00 2"]);
    assert_eq!(late_of(&events), ["1006-placed"]);
    assert_eq!(batches_of(&events), (0..=last).collect::<Vec<_>>());
    let windows = events.iter().rfind(|event| event.name == "windows").unwrap();
    assert_eq!(windows.data["complete_through"], "2026-10-01T11:00:00Z");
    let progress = service.get("/v1/queries/hourly_sales/progress?limit=1").await;
    assert_eq!(events.last().unwrap().data, progress.body["progress"][0]);

    let elsewhere = from_other.up_to_batch(last).await;
    assert_eq!(
        (rows_of(&elsewhere), late_of(&elsewhere), batches_of(&elsewhere)),
        (rows_of(&events), late_of(&events), batches_of(&events))
    );
    let open = live.up_to_batch(last_batch(&service, "hourly_sales_live").await).await;
    assert_eq!(rows_of(&open), ["09:00 2", "10:00 2", "11:00 1", "12:00 1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_comes_back_misses_nothing_wherever_the_stream_broke() {
    let database = TestDatabase::create().await;
    let mut service = TestService::start(&database).await;
    let mut follower = Follower::start(&service, "/v1/stream", "", "").await;
    let beginning = follower.id.clone();
    for stage in STAGES {
        post(&service, stage).await;
        service.wait_until_idle("hourly_sales").await;
    }
    let last = last_batch(&service, "hourly_sales").await;
    let events = follower.up_to_batch(last).await;
    service.kill_and_restart().await;
    let mut ids: Vec<&str> = vec![&beginning];
    ids.extend(events.iter().map(|event| event.id.as_str()));
    for (taken, id) in ids.into_iter().enumerate() {
        let mut all = events[..taken].to_vec();
        if taken < events.len() {
            all.extend(
                Follower::start(&service, "/v1/stream", "", id).await.up_to_batch(last).await,
            );
        }
        assert_eq!(rows_of(&all), ["09:00 2", "10:00 2"], "after {id}");
        assert!(late_of(&all).contains(&"1006-placed".to_owned()), "after {id}");
        let mut batches = batches_of(&all);
        batches.sort_unstable();
        batches.dedup();
        assert_eq!(batches, (0..=last).collect::<Vec<_>>(), "after {id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_cannot_be_told_everything_is_told_to_read_anew() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    post(&service, STAGES[0]).await;
    let last = last_batch(&service, "hourly_sales").await;
    let mut follower = Follower::start(&service, "/v1/stream", "", "").await;
    let here = follower.id.clone();
    let (before, _) = here.rsplit_once('.').unwrap();
    for (case, id) in [
        ("no id of ours", "42".to_owned()),
        ("of another query", format!("9{here}")),
        ("ahead, as after a restored backup", format!("{before}.{}", last + 1)),
    ] {
        let event = Follower::start(&service, "/v1/stream", "", &id).await.event().await.unwrap();
        assert_eq!((event.name.as_str(), &event.id), ("resync", &here), "{case}");
        assert_eq!(event.data["batch_id"], last, "{case}");
        assert_eq!(event.data["watermark"], "2026-10-01T09:20:00.000Z", "{case}");
    }
    // A reset starts the query over while it is followed.
    assert_eq!(service.post("/v1/queries/hourly_sales/reset", json!({})).await.status, 200);
    let event = follower.event().await.unwrap();
    assert_eq!(event.name, "resync");
    last_batch(&service, "hourly_sales").await;
    post(&service, STAGES[1]).await;
    let last = last_batch(&service, "hourly_sales").await;
    assert_eq!(rows_of(&follower.up_to_batch(last).await), ["09:00 2"]);

    // A micro-batch with more rows than a stream carries.
    let mut by_till = rule(&json!({"kind": "tumbling", "size": "1 hour"}), "update");
    (by_till["group_by"], by_till["start"]) = (json!(["till_id"]), json!("latest"));
    assert_eq!(service.put("/v1/queries/by_till", by_till).await.status, 201);
    let mut follower = Follower::start(&service, "/v1/stream?query=by_till", "", "").await;
    let sale = |till: u32| {
        let mut sale = a_sale(&format!("of-{till}"), "11:31:00", "1.00");
        sale["till_id"] = json!(format!("till-{till}"));
        sale
    };
    service.post_events(&(0..2_001).map(sale).collect::<Vec<_>>()).await;
    let event = follower.event().await.unwrap();
    assert_eq!(event.name, "resync");
    let told = event.data["batch_id"].as_i64().unwrap();
    service.post_events(&[sale(2_001)]).await;
    let last = last_batch(&service, "by_till").await;
    let events = follower.up_to_batch(last).await;
    assert_eq!(batches_of(&events), (told + 1..=last).collect::<Vec<_>>());
    assert_eq!(rows_of(&events), ["11:00 1"]);
}

fn rule(window: &Value, mode: &str) -> Value {
    json!({
        "filter": {"status": ["placed"]}, "window": window, "watermark_delay": "30 minutes",
        "output_mode": mode,
    })
}

/// Rows by their bounds, with what they count.
fn counted(rows: &[Value]) -> std::collections::BTreeMap<String, Value> {
    let bounds = |row: &Value| format!("{} {}", row["start"], row["end"]);
    rows.iter().map(|row| (bounds(row), row["orders"].clone())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rows_told_come_to_those_of_the_query_in_every_mode_and_kind_of_window() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let (hour, quarter) = (json!({"kind": "tumbling", "size": "1 hour"}), "15 minutes");
    let sliding = json!({"kind": "sliding", "size": "1 hour", "slide": quarter});
    let sessions = json!({"kind": "session", "gap": quarter});
    let rules = [
        ("hours", rule(&hour, "append")),
        ("open_hours", rule(&hour, "update")),
        ("all_hours", rule(&hour, "complete")),
        ("quarters", rule(&sliding, "append")),
        ("open_quarters", rule(&sliding, "update")),
        ("sessions", rule(&sessions, "append")),
    ];
    let mut followers = Vec::new();
    for (name, rule) in rules {
        assert_eq!(service.put(&format!("/v1/queries/{name}"), rule).await.status, 201, "{name}");
        let path = format!("/v1/stream?query={name}");
        followers.push((name, Follower::start(&service, &path, "", "").await));
    }
    for (number, clock) in [
        "09:05", "09:12", "10:40", "10:20", "11:30", "11:02", "10:55", "09:40", "13:00", "12:59",
        "15:00",
    ]
    .into_iter()
    .enumerate()
    {
        service.post_events(&[a_sale(&number.to_string(), &format!("{clock}:00"), "1.00")]).await;
    }
    for (name, mut follower) in followers {
        let last = last_batch(&service, name).await;
        let events = follower.up_to_batch(last).await;
        let windows = events.iter().filter(|event| event.name == "windows");
        let told: Vec<Value> =
            windows.flat_map(|event| event.data["rows"].as_array().unwrap().clone()).collect();
        assert_eq!(counted(&told), counted(&service.rows(name).await), "{name}");
        assert!(!told.is_empty(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bound_key_follows_its_own_stores_and_a_revoked_one_no_longer() {
    let database = TestDatabase::create().await;
    let service = service_with_two_stores(&database).await;
    let keys = Keys::make(&service).await;
    let (all, own) = (keys.of("sales:read", false), keys.of("sales:read", true));
    let path = "/v1/stream?query=by_store";
    let mut of_all = Follower::start(&service, path, all, "").await;
    let mut of_own = Follower::start(&service, path, own, "").await;
    let admin = keys.of("admin", false);
    let mut sales =
        vec![a_sale("own-zz", "15:05:00", "20.01"), a_sale("other-zz", "15:05:00", "31.07")];
    sales.extend([a_sale("own-yy", "09:10:00", "20.02"), a_sale("other-yy", "09:10:00", "31.08")]);
    for sale in &mut sales {
        let is_own = sale["order_id"].as_str().unwrap().starts_with("own");
        sale["store_id"] = json!(if is_own { "S1" } else { "S2" });
    }
    let posted = service.ask_as(admin, "post", "/v1/events", json!(sales)).await;
    assert_eq!(posted.body["accepted"], 4, "{}", posted.body);
    service.ask_as(admin, "post", "/v1/queries/by_store/run", json!({})).await;
    let last = service.get_as(all, "/v1/queries/by_store").await.body["batch_id"].as_i64().unwrap();
    let told = of_all.up_to_batch(last).await;
    assert!(format!("{told:?}").contains("other-yy"), "{told:?}");

    // The same, without the others and without progress, up to the same micro-batch.
    let mut told = Vec::new();
    while of_own.id != of_all.id {
        let block = of_own.block().await.expect("the stream goes on");
        told.push(block);
    }
    let told = told.join("\n");
    for (text, is_there) in [
        ("event: windows", true),
        ("own-yy", true),
        ("event: progress", false),
        ("S2", false),
        ("other", false),
        ("31.0", false),
    ] {
        assert_eq!(told.contains(text), is_there, "{text} in {told}");
    }
    let of_finance = service.get_as(keys.of("finance", false), path).await;
    assert_eq!(of_finance.status, 403);
    let together = service.get_as(own, "/v1/stream").await;
    assert_eq!((together.status, &together.body["type"]), (403, &json!("/problems/other-stores")));

    let id = own.split('_').nth(1).unwrap();
    let revoked = service.ask_as(admin, "delete", &format!("/v1/keys/{id}"), Value::Null).await;
    assert!(revoked.status < 300, "{}", revoked.body);
    while of_own.block().await.is_some() {}
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_with_its_query_and_with_the_service() {
    let database = TestDatabase::create().await;
    let mut service = TestService::start(&database).await;
    let mut live = Follower::start(&service, "/v1/stream?query=hourly_sales_live", "", "").await;
    let mut follower = Follower::start(&service, "/v1/stream", "", "").await;
    assert_eq!(service.delete("/v1/queries/hourly_sales_live").await.status, 204);
    while live.block().await.is_some() {}
    assert_eq!(service.get("/v1/stream?query=hourly_sales_live").await.status, 404);
    assert_eq!(service.get("/v1/stream?query=hourly_sales&limit=1").await.status, 400);
    let ended = tokio::spawn(async move { while follower.block().await.is_some() {} });
    assert_eq!(service.terminate().await, Some(0));
    ended.await.expect("the stream ended, and was not cut off");
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_are_bounded_in_number_and_one_that_ends_makes_room() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let most = service.get("/v1/limits").await.body["streams_max"].as_u64().unwrap();
    let mut followers = Vec::new();
    for _ in 0..most {
        followers.push(Follower::start(&service, "/v1/stream", "", "").await);
    }
    let refused = service.get("/v1/stream").await;
    assert_eq!((refused.status, &refused.body["type"]), (503, &json!("/problems/busy")));
    assert_eq!(service.get("/v1/hourly-sales").await.status, 200);
    post(&service, STAGES[0]).await;
    let last = last_batch(&service, "hourly_sales").await;
    for follower in &mut followers {
        follower.up_to_batch(last).await;
    }
    followers.truncate(1);
    for _ in 0..200 {
        if service.get("/v1/stream").await.status == 200 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("there was no room again");
}

/// A client that stops reading is cut off in the end and can come back; meanwhile nothing grows.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_takes_nothing_is_cut_off_and_makes_nothing_grow() {
    let database = TestDatabase::create().await;
    let settings =
        [("DATABASE_URL", database.url.as_str()), ("TILLMARK_REQUEST_TIMEOUT", "2 seconds")];
    let service = TestService::start_with(&settings).await;
    // Every event is a row of its own, and a late one is told again in full.
    let mut rule = rule(&json!({"kind": "tumbling", "size": "1 second"}), "update");
    rule["group_by"] = json!(["till_id", "customer_id"]);
    assert_eq!(service.put("/v1/queries/wide", rule).await.status, 201);
    let mut slow = Vec::new();
    for _ in 0..20 {
        slow.push(Follower::start(&service, "/v1/stream?query=wide", "", "").await);
    }
    let sale = |number: u32| {
        let mut sale = a_sale(&number.to_string(), "09:05:00", "1.00");
        sale["till_id"] = json!(format!("{number:0>190}"));
        sale["customer_id"] = json!(format!("{number:0>190}"));
        sale
    };
    let mut next = 0;
    let mut post_some = async || {
        let sales: Vec<Value> = (next..next + 1_000).map(sale).collect();
        next += 1_000;
        service.post_events(&sales).await;
        service.wait_until_idle("wide").await;
    };
    // More than what sockets hold has to be waiting.
    for _ in 0..10 {
        post_some().await;
    }
    let before = resident_kib(&service);
    for _ in 0..20 {
        post_some().await;
    }
    let grown = resident_kib(&service) - before;
    // What was told of meanwhile, 20 times, would be some 400 MB.
    assert!(grown < 60_000, "{grown} KiB more");
    for mut follower in slow {
        let to_the_end = async { while let Ok(Some(_)) = follower.answer.chunk().await {} };
        let ended = tokio::time::timeout(COMES_WITHIN, to_the_end).await;
        ended.expect("a stream that goes on was not cut off");
    }
}

fn resident_kib(service: &TestService) -> i64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", service.process_id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_cannot_be_told_what_has_changed_is_told_to_read_anew() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let query = "hourly_sales_live";
    service.post_events(&[a_sale("1", "09:05:00", "1.00")]).await;
    service.wait_until_idle(query).await;
    let mut follower =
        Follower::start(&service, &format!("/v1/stream?query={query}"), "", "").await;
    // From now on each row that is written is damaged.
    sqlx::raw_sql(
        "create function damage() returns trigger language plpgsql as
             $$ begin new.currency := 'ZZZ'; return new; end $$;
         create trigger damage before insert or update on window_rows for each row
             execute function damage()",
    )
    .execute(&database.pool)
    .await
    .unwrap();
    service.post_events(&[a_sale("2", "10:05:00", "1.00")]).await;
    let told = follower.event().await.expect("the stream goes on");
    assert_eq!(told.name, "resync", "{told:?}");
    let (_, batch) = told.id.rsplit_once('.').unwrap();
    assert_eq!(told.data["batch_id"].to_string(), batch);
    sqlx::raw_sql(
        "drop trigger damage on window_rows; delete from window_rows where currency = 'ZZZ'",
    )
    .execute(&database.pool)
    .await
    .unwrap();
    service.post_events(&[a_sale("3", "11:05:00", "1.00")]).await;
    assert_eq!(follower.event().await.expect("and on").name, "windows");
}
