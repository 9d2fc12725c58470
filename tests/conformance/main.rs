//! The recorded cases of Apache Spark, through the HTTP API of the real binary: every case,
//! restarts by kill -9 included.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(
    unreachable_pub,
    dead_code,
    unused_imports,
    reason = "the support module is shared by several test binaries"
)]

#[path = "../support/mod.rs"]
mod support;

use serde_json::{Value, json};
use support::{TestDatabase, TestService};

const CASES: [&str; 4] = [
    include_str!("seed.json"),
    include_str!("edge.json"),
    include_str!("random.json"),
    include_str!("complete.json"),
];
const CASES_RUN: usize = 119;

#[tokio::test(flavor = "multi_thread")]
async fn every_recorded_case_of_spark_comes_out_the_same() {
    let database = TestDatabase::create().await;
    // Spark knows no future guard.
    let settings = [("DATABASE_URL", database.url.as_str()), ("TILLMARK_MAX_FUTURE_SKEW", "off")];
    let mut service = TestService::start_with(&settings).await;
    let mut run = 0;
    for case in CASES.iter().flat_map(|file| serde_json::from_str::<Vec<Value>>(file).unwrap()) {
        run_case(&mut service, &case).await;
        run += 1;
    }
    assert_eq!(run, CASES_RUN);
}

fn rule(query: &Value, delay: &Value) -> Value {
    let mut rule = json!({
        "window": query["window"], "watermark_delay": delay, "output_mode": query["output_mode"],
        "group_by": query["group_by"], "trigger": {"kind": "manual"}, "start": "latest",
    });
    if query["filter_status"].is_array() {
        rule["filter"] = json!({"status": query["filter_status"]});
    }
    if query["dedup"].is_object() {
        rule["deduplicate"] = json!({"keys": query["dedup"]["keys"]});
    }
    rule
}

async fn run_case(service: &mut TestService, case: &Value) {
    let query = &case["query"];
    let case_name = case["name"].as_str().unwrap();
    let name = format!("case-{case_name}");
    let path = format!("/v1/queries/{name}");
    assert_eq!(
        service.put(&path, rule(query, &query["watermark_delay"])).await.status,
        201,
        "{name}"
    );
    for (number, step) in case["steps"].as_array().unwrap().iter().enumerate() {
        let place = format!("{name}, step {number}");
        if step["restart"] == true {
            service.kill_and_restart().await;
            if step["watermark_delay"].is_string() {
                service.put(&path, rule(query, &step["watermark_delay"])).await;
            }
        }
        let progress = run_step(service, case_name, &path, step).await;
        compare_progress(&place, &progress, step["progress"].as_array().unwrap());
        let rows = service.rows(&name).await;
        compare_rows(&place, query, &rows, step["table"].as_array().unwrap());
    }
    let report = service.get(&format!("{path}/reconciliation")).await.body;
    assert_eq!(report["unexplained"], 0, "{name}");
    assert_eq!(service.delete(&path).await.status, 204);
}

/// Posts a step's events; those queued batch by batch run one micro-batch each.
async fn run_step(service: &TestService, case_name: &str, path: &str, step: &Value) -> Vec<Value> {
    let queued = step["batches"].as_array();
    let batches = queued.cloned().unwrap_or_else(|| vec![step["events"].clone()]);
    let mut progress = Vec::new();
    let mut run = async |request: Value| {
        let answer = service.post(&format!("{path}/run"), request).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        progress.extend(answer.body["progress"].as_array().unwrap().clone());
    };
    for mut batch in batches {
        for event in batch.as_array_mut().unwrap() {
            event["event_id"] =
                format!("{case_name}:{}", event["event_id"].as_str().unwrap()).into();
        }
        service.post_events(batch.as_array().unwrap()).await;
        if queued.is_some() {
            run(json!({"max_batches": 1})).await;
        }
    }
    run(json!({})).await;
    progress
}

fn compare_progress(place: &str, got: &[Value], want: &[Value]) {
    let fields = [
        ("batch_id", "batch_id"),
        ("events_in", "num_input_rows"),
        ("late_events", "late_events"),
        ("watermark", "watermark"),
        ("duplicates", "duplicates"),
    ];
    assert_eq!(got.len(), want.len(), "{place}");
    for (got, want) in got.iter().zip(want) {
        for (ours, theirs) in fields {
            // Without a duplicates rule Spark has no such counter.
            let right = want.get(theirs).unwrap_or(&json!(0)).clone();
            assert_eq!(got[ours], right, "{place}, batch {}: {ours}", want["batch_id"]);
        }
        let emitted = want["emitted"].as_array().unwrap().len();
        assert_eq!(got["rows_written"], emitted, "{place}, batch {}: rows", want["batch_id"]);
    }
}

fn compare_rows(place: &str, query: &Value, got: &[Value], want: &[Value]) {
    let keys: Vec<&str> =
        query["group_by"].as_array().unwrap().iter().map(|key| key.as_str().unwrap()).collect();
    let simple = |row: &Value| {
        let groups: Vec<String> = keys.iter().map(|key| row[*key].to_string()).collect();
        let revenue = row["revenue"].as_str().unwrap();
        let decimals = revenue.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let time = |field: &str| {
            row[field].as_str().unwrap().parse::<tillmark::domain::EventTime>().unwrap()
        };
        (
            time("start"),
            time("end"),
            groups,
            row["orders"].to_string(),
            format!("{revenue}{}", &"0000"[decimals.min(4)..]),
        )
    };
    let sorted = |rows: &[Value]| {
        let mut rows: Vec<_> = rows.iter().map(simple).collect();
        rows.sort();
        rows
    };
    assert_eq!(sorted(got), sorted(want), "{place}");
}
