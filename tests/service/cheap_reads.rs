//! Reads that cost little: tags, 304, what may be kept for how long, and compressed answers.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};
use sqlx::Acquire as _;

use crate::support::{Answer, TestDatabase, TestService, a_sale, gunzip, unzstd};

const HOURS: &str = "/v1/hourly-sales";
const DAY: &str = "from=2026-10-01T00:00:00Z&to=2026-10-02T00:00:00Z";

/// The address, asked with further headers.
async fn ask(service: &TestService, path: &str, headers: &[(&str, &str)]) -> Answer {
    let request = service.client.get(service.url(path));
    let with = |request: reqwest::RequestBuilder, (name, value): &(&str, &str)| {
        request.header(*name, *value)
    };
    Answer::of(headers.iter().fold(request, with)).await
}

async fn conditional(service: &TestService, path: &str, tag: &str) -> Answer {
    ask(service, path, &[("if-none-match", tag)]).await
}

async fn tag_of(service: &TestService, path: &str) -> String {
    let answer = service.get(path).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    let tag = answer.header("etag").to_owned();
    assert!(tag.len() > 2 && tag.starts_with('"') && tag.ends_with('"'), "{path}: {tag}");
    tag
}

/// Whether a client with this tag is told that it still holds.
async fn still_holds(service: &TestService, path: &str, tag: &str) -> bool {
    let answer = ask(service, path, &[("if-none-match", tag)]).await;
    if answer.status == 304 {
        assert_eq!((answer.header("etag"), &answer.body), (tag, &json!("")), "{path}");
        return true;
    }
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    assert_ne!(answer.header("etag"), tag, "{path}");
    false
}

/// Two hours that are final and one that is open, with 09:50 come late.
async fn worked_example(service: &TestService) {
    for sales in [
        vec![a_sale("1001", "09:05:00", "20.00"), a_sale("1004", "10:20:00", "40.00")],
        vec![a_sale("1005", "11:30:00", "18.25")],
        vec![a_sale("1006", "09:50:00", "22.00"), a_sale("1008", "12:40:00", "12.00")],
    ] {
        service.post_events(&sales).await;
        service.run("hourly_sales").await;
    }
    service.wait_until_idle("hourly_sales").await;
    service.wait_until_idle("hourly_sales_live").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_has_an_answer_is_told_so_without_a_row_being_read() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    worked_example(&service).await;
    let paths = [
        HOURS.to_owned(),
        format!("{HOURS}?{DAY}"),
        format!("{HOURS}?view=corrected"),
        format!("{HOURS}?format=csv"),
        format!("{HOURS}?limit=1"),
        format!("{HOURS}?granularity=P1D&time_zone=Europe/Lisbon"),
        "/v1/queries/hourly_sales_live/windows?format=ndjson&limit=2".to_owned(),
    ];
    let mut tags = Vec::new();
    for path in &paths {
        tags.push(tag_of(&service, path).await);
    }
    let mut conn = database.pool.acquire().await.unwrap();
    let mut lock = conn.begin().await.unwrap();
    // Whoever read a row would wait for this.
    sqlx::raw_sql("lock table window_rows, dropped_events, corrections")
        .execute(&mut *lock)
        .await
        .unwrap();
    for (path, tag) in paths.iter().zip(&tags) {
        assert!(still_holds(&service, path, tag).await, "{path}");
        assert!(still_holds(&service, path, tag).await, "{path}, again");
    }
    lock.rollback().await.unwrap();
    let distinct: std::collections::BTreeSet<&String> = tags.iter().collect();
    assert_eq!(distinct.len(), paths.len(), "each address has tags of its own: {tags:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tag_holds_until_something_changes_that_the_answer_shows_on_every_replica() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let other = TestService::start(&database).await;
    worked_example(&service).await;
    let rows = "/v1/queries/hourly_sales/windows";
    let corrected = "/v1/queries/hourly_sales/windows?view=corrected";
    let mut paid = a_sale("1008", "12:41:00", "12.00");
    (paid["status"], paid["event_id"]) = (json!("paid"), json!("1008-paid"));
    let tags = async || (tag_of(&service, rows).await, tag_of(&service, corrected).await);
    let spec = json!({
        "filter": {"status": ["placed"]}, "window": {"kind": "tumbling", "size": "1 hour"},
        "watermark_delay": "1 hour", "output_mode": "append",
    });
    let correction = json!({ "windows": "all", "note": "till 7", "booked_by": "finance" });

    for (case, method, path, body, holds) in [
        ("nothing", "GET", "/readyz", Value::Null, (true, true)),
        ("an event that does not pass", "POST", "/v1/events", json!([paid]), (true, true)),
        ("a booking", "POST", "/v1/queries/hourly_sales/corrections", correction, (true, false)),
        (
            "an event",
            "POST",
            "/v1/events",
            json!([a_sale("1009", "12:42:00", "1.00")]),
            (false, false),
        ),
        ("a reset", "POST", "/v1/queries/hourly_sales/reset", json!({}), (false, false)),
        ("a deletion", "DELETE", "/v1/queries/hourly_sales", Value::Null, (false, false)),
    ] {
        let (of_rows, of_corrected) = tags().await;
        assert_eq!(tag_of(&other, rows).await, of_rows, "{case}: both replicas say the same");
        let answer = service.ask_as("", method, path, body).await;
        assert!(answer.status < 300, "{case}: {}", answer.body);
        if case == "a deletion" {
            assert_eq!(other.get(rows).await.status, 404);
            assert_eq!(service.put("/v1/queries/hourly_sales", spec.clone()).await.status, 201);
        }
        service.run("hourly_sales").await;
        service.wait_until_idle("hourly_sales").await;
        // What was committed before the request is seen, whoever is asked.
        for replica in [&other, &service] {
            let found = (
                still_holds(replica, rows, &of_rows).await,
                still_holds(replica, corrected, &of_corrected).await,
            );
            assert_eq!(found, holds, "{case}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_may_be_kept_once_its_whole_range_is_final() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let rule = |window: Value, mode: &str| {
        json!({
            "filter": {"status": ["placed"]}, "window": window, "watermark_delay": "1 hour",
            "output_mode": mode,
        })
    };
    let (hour, quarter) = (json!({"kind": "tumbling", "size": "1 hour"}), "15 minutes");
    for (name, rule) in [
        ("complete", rule(hour, "complete")),
        ("sessions", rule(json!({"kind": "session", "gap": quarter}), "append")),
        ("sliding", rule(json!({"kind": "sliding", "size": "1 hour", "slide": quarter}), "append")),
    ] {
        assert_eq!(service.put(&format!("/v1/queries/{name}"), rule).await.status, 201, "{name}");
    }
    worked_example(&service).await;
    for name in ["complete", "sessions", "sliding"] {
        service.wait_until_idle(name).await;
    }
    let now = service.get("/v1/reconciliation").await.body["as_of"].as_str().unwrap().to_owned();
    let (ask, keep, for_ever) =
        ("no-cache", "max-age=60, immutable", "max-age=31536000, immutable");
    // The watermark is 11:40.
    for (case, path, header) in [
        ("no end", HOURS.to_owned(), ask),
        ("up to the last boundary", format!("{HOURS}?to=2026-10-01T11:00:00Z"), keep),
        ("one moment more", format!("{HOURS}?to=2026-10-01T11:00:00.000001Z"), ask),
        ("within an hour that is final", format!("{HOURS}?to=2026-10-01T10:30:00Z"), keep),
        ("one page of it", format!("{HOURS}?to=2026-10-01T11:00:00Z&limit=1"), keep),
        ("as a table", format!("{HOURS}?to=2026-10-01T11:00:00Z&format=csv"), keep),
        ("folded", format!("{HOURS}?to=2026-10-01T11:00:00Z&granularity=P1D"), keep),
        ("corrected", format!("{HOURS}?to=2026-10-01T11:00:00Z&view=corrected"), ask),
        (
            "the same in update mode",
            format!("{HOURS}?query=hourly_sales_live&to=2026-10-01T11:00:00Z"),
            keep,
        ),
        (
            "complete mode, where nothing is ever final",
            format!("{HOURS}?query=complete&to=2026-10-01T11:00:00Z"),
            ask,
        ),
        (
            "sessions, which may have begun before",
            format!("{HOURS}?query=sessions&to=2026-10-01T08:00:00Z"),
            ask,
        ),
        (
            "windows that end after the range",
            format!("{HOURS}?query=sliding&to=2026-10-01T11:00:00Z"),
            ask,
        ),
        (
            "sliding ones that have all ended",
            format!("{HOURS}?query=sliding&to=2026-10-01T10:45:00Z"),
            keep,
        ),
        ("a moment in the past", format!("{HOURS}?as_of={now}"), for_ever),
        ("that moment, corrected", format!("{HOURS}?as_of={now}&view=corrected"), for_ever),
    ] {
        let answer = service.get(&path).await;
        assert_eq!(answer.status, 200, "{case}: {}", answer.body);
        assert_eq!(answer.header("cache-control"), header, "{case}");
        let tag = answer.header("etag").to_owned();
        let again = conditional(&service, &path, &tag).await;
        assert_eq!((again.status, again.header("cache-control")), (304, header), "{case}");
    }
    // A tag of the past outlives the present.
    let path = format!("{HOURS}?as_of={now}");
    let tag = tag_of(&service, &path).await;
    service.post_events(&[a_sale("1010", "12:50:00", "1.00")]).await;
    service.run("hourly_sales").await;
    assert!(still_holds(&service, &path, &tag).await);
    assert_eq!(service.post("/v1/queries/hourly_sales/reset", json!({})).await.status, 200);
    assert_eq!(service.get(&path).await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_compressed_as_the_client_accepts_with_a_tag_of_its_own() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    worked_example(&service).await;
    let path = format!("{HOURS}?{DAY}");
    let plain = service.client.get(service.url(&path)).send().await.unwrap();
    let plain_tag = plain.headers()["etag"].to_str().unwrap().to_owned();
    let plain_text = plain.bytes().await.unwrap();
    let mut tags = vec![plain_tag.clone()];
    for (accept, coding) in [("gzip", "gzip"), ("gzip, deflate, br, zstd", "zstd")] {
        let headers = [("accept-encoding", accept)];
        let request = |method: reqwest::Method| {
            let request = service.client.request(method, service.url(&path));
            request.header("accept-encoding", accept).send()
        };
        let answer = request(reqwest::Method::GET).await.unwrap();
        let head = request(reqwest::Method::HEAD).await.unwrap();
        for name in ["content-encoding", "content-type", "etag", "vary", "cache-control"] {
            assert_eq!(answer.headers()[name], head.headers()[name], "{accept}: {name}");
        }
        assert_eq!(answer.headers()["content-encoding"], coding);
        let vary = answer.headers()["vary"].to_str().unwrap();
        assert_eq!(vary, "accept, accept-encoding, authorization");
        let tag = answer.headers()["etag"].to_str().unwrap().to_owned();
        let bytes = answer.bytes().await.unwrap();
        assert!(bytes.len() < plain_text.len(), "{coding}: {} bytes", bytes.len());
        let text = if coding == "gzip" { gunzip(&bytes) } else { unzstd(&bytes) };
        assert_eq!(text, plain_text, "{coding}");
        for (tag, status) in [(tag.as_str(), 304), (plain_tag.as_str(), 200)] {
            let again = ask(&service, &path, &[headers[0], ("if-none-match", tag)]).await;
            assert_eq!(again.status, status, "{coding} with {tag}");
            assert_eq!(again.headers.contains_key("content-encoding"), status == 200, "{coding}");
        }
        tags.push(tag);
    }
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), 3, "{tags:?}");

    // Whoever accepts nothing of ours gets it as it is, and what was to be done is done once.
    let sale = json!([a_sale("1011", "12:51:00", "1.00")]).to_string();
    let request = service.client.post(service.url("/v1/events")).body(sale);
    let request = request.header("content-type", "application/json");
    let answer = Answer::of(request.header("accept-encoding", "br, *;q=0")).await;
    assert_eq!((answer.status, &answer.body["accepted"]), (200, &json!(1)));
    // Problems are written by the outermost part of the way, and compressed like everything else.
    let request = service.client.get(service.url("/v1/nowhere"));
    let problem = request.header("accept-encoding", "gzip").send().await.unwrap();
    assert_eq!(problem.headers()["content-type"], "application/problem+json");
    let body: Value = serde_json::from_slice(&gunzip(&problem.bytes().await.unwrap())).unwrap();
    assert_eq!(body["status"], 404);
}

/// Every tag stands for one content, and no client is told that an old one holds.
#[tokio::test(flavor = "multi_thread")]
async fn a_tag_stands_for_one_content_also_while_events_come_in() {
    let database = TestDatabase::create().await;
    let service = Arc::new(TestService::start(&database).await);
    let other = Arc::new(TestService::start(&database).await);
    let path = format!("{HOURS}?query=hourly_sales_live&{DAY}");
    let posting = {
        let service = Arc::clone(&service);
        tokio::spawn(async move {
            for number in 0..150 {
                service.post_events(&[a_sale(&number.to_string(), "09:05:00", "1.00")]).await;
            }
        })
    };
    let mut readers = tokio::task::JoinSet::new();
    for replica in [&service, &other, &service, &other] {
        let (replica, path) = (Arc::clone(replica), path.clone());
        readers.spawn(async move {
            let (mut seen, mut newest, mut tag) = (HashMap::new(), 0, String::new());
            while newest < 150 {
                let before = newest;
                let answer = ask(&replica, &path, &[("if-none-match", &tag)]).await;
                if answer.status == 304 {
                    continue;
                }
                let text = answer.body.to_string();
                tag = answer.header("etag").to_owned();
                newest = answer.body["rows"][0]["orders"].as_i64().unwrap_or(0);
                assert!(newest >= before, "{before} orders, and then {newest}");
                let known = seen.entry(tag.clone()).or_insert_with(|| text.clone());
                assert_eq!(*known, text, "two contents of one tag");
            }
            seen
        });
    }
    posting.await.unwrap();
    let mut all: HashMap<String, String> = HashMap::new();
    for (tag, text) in readers.join_all().await.into_iter().flatten() {
        assert_eq!(*all.entry(tag).or_insert_with(|| text.clone()), text, "across replicas");
    }
    assert!(all.len() > 1, "something changed while it was read");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_longer_than_a_page_is_sent_as_it_is_read_and_says_nothing_of_what_all_of_it_shows()
{
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let rule = json!({
        "filter": {"status": ["placed"]}, "window": {"kind": "tumbling", "size": "1 second"},
        "watermark_delay": "0 seconds", "output_mode": "append",
    });
    assert_eq!(service.put("/v1/queries/seconds", rule).await.status, 201);
    let sales = |range: std::ops::Range<u32>| -> Vec<Value> {
        let clock = |n: u32| format!("09:{:02}:{:02}", n / 60, n % 60);
        range.map(|n| a_sale(&n.to_string(), &clock(n), "1.00")).collect()
    };
    let path = "/v1/queries/seconds/windows?format=csv";
    // The newest second stays open.
    for (range, rows, has_tag) in [(0..1_001, 1_000, true), (1_001..1_201, 1_200, false)] {
        service.post_events(&sales(range)).await;
        service.run("seconds").await;
        let answer = service.get(path).await;
        assert_eq!(answer.body.as_str().unwrap().lines().count(), rows + 1);
        assert_eq!(answer.headers.contains_key("etag"), has_tag, "{rows} rows");
        assert_eq!(answer.header("cache-control"), "no-cache");
        assert_eq!(answer.header("vary"), "accept, accept-encoding, authorization");
    }
}
