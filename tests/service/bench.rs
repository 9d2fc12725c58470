//! `tillmark bench ingest`: what it measures, and what it catches.

use std::process::Command;

use serde_json::{Value, json};

use crate::support::{TestDatabase, TestService};

fn bench(service: &TestService, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tillmark"));
    command.args(["bench", "ingest", "--url", &service.base, "--json"]);
    command.args(arguments.split_whitespace()).env_remove("DATABASE_URL");
    command
}

/// The exit code and the report.
async fn run(mut command: Command) -> (Option<i32>, Value) {
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let report = serde_json::from_slice(&output.stdout);
    (output.status.code(), report.unwrap_or_else(|_| panic!("{output:?}")))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_constant_rate_is_kept_and_every_answered_event_is_found_once() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let arguments =
        "--rate 400 --batch 4 --connections 8 --duration PT2S --duplicates 5% --late 5% --verify";
    let mut command = bench(&service, arguments);
    command.env("DATABASE_URL", &database.url);
    let (code, report) = run(command).await;
    assert_eq!(code, Some(0), "{report}");
    let count = |name: &str| report[name].as_u64().unwrap();
    let (requests, answered) =
        (report["statuses"]["200"].as_u64().unwrap(), count("events_answered"));
    // What a busy machine could not send in time is said, not forgotten.
    assert_eq!(requests + count("requests_not_sent"), 200, "{report}");
    assert_eq!(answered, 4 * requests);
    let stored = u64::try_from(database.number("select count(*) from raw_events").await).unwrap();
    assert_eq!((count("accepted"), count("duplicates")), (stored, answered - stored));
    assert!((1..100).contains(&count("duplicates")), "{report}");
    assert_eq!(report["verification"]["answered"], stored);
    let late = "select count(*) from raw_events where event_time < now() - interval '1 hour'";
    assert!((1..100).contains(&database.number(late).await));
    let latency = &report["latency_us"];
    let quantiles: Vec<_> =
        ["p50", "p90", "p99", "p99_9", "max"].map(|name| latency[name].as_u64().unwrap()).into();
    assert!(quantiles[0] > 0 && quantiles.is_sorted(), "{latency}");
    // A second run is another one.
    let (code, report) = run(bench(&service, "--events 40 --batch 7 --format ndjson")).await;
    assert_eq!((code, &report["accepted"]), (Some(0), &40.into()), "{report}");
    assert_eq!(report["verification"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answered_event_that_is_not_in_the_log_is_caught() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    database
        .execute(
            "create function lose() returns trigger language plpgsql as $$ begin
                 if new.event_id like '%-0-3' then return null; end if; return new; end $$;
             create trigger lose before insert on raw_events for each row execute function lose()",
        )
        .await;
    let mut command = bench(&service, "--connections 2 --events 100 --batch 5 --verify");
    command.env("DATABASE_URL", &database.url);
    let (code, report) = run(command).await;
    assert_eq!((code, &report["accepted"]), (Some(70), &100.into()), "{report}");
    let found = &report["verification"];
    assert_eq!((&found["missing"], &found["repeated"]), (&1.into(), &0.into()), "{found}");
    assert!(found["examples"][0].as_str().unwrap().ends_with("-0-3"), "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_is_waited_for_with_the_same_ids() {
    let database = TestDatabase::create().await;
    let settings = [
        ("DATABASE_URL", &*database.url),
        ("TILLMARK_QUEUE_EVENTS_MAX", "10"),
        ("TILLMARK_REQUEST_EVENTS_MAX", "10"),
    ];
    let service = TestService::start_with(&settings).await;
    let mut command = bench(&service, "--connections 16 --batch 10 --events 600 --verify");
    command.env("DATABASE_URL", &database.url);
    let (code, report) = run(command).await;
    assert_eq!((code, &report["accepted"]), (Some(0), &600.into()), "{report}");
    assert!(report["statuses"]["503"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(database.number("select count(*) from raw_events").await, 600);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_asks_for_a_key_is_shown_one() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let asked = json!({ "name": "load", "scopes": ["events:write", "admin"] });
    let made = service.post("/v1/keys", asked).await;
    let key = made.body["key"].as_str().unwrap_or_else(|| panic!("{}", made.body));
    let mut command = bench(&service, "--connections 1 --events 3");
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(64), "{said}");
    assert!(said.contains("set TILLMARK_KEY to one with the scope `events:write`"), "{said}");
    let mut command = bench(&service, "--connections 1 --events 3");
    command.env("TILLMARK_KEY", key);
    let (code, report) = run(command).await;
    assert_eq!((code, &report["accepted"]), (Some(0), &3.into()), "{report}");
}

#[test]
fn made_up_events_go_to_a_service_on_this_machine_or_nowhere() {
    for (arguments, code, said) in [
        (["--url", "http://192.0.2.1:8080"], 64, "is not on this machine"),
        (["--url", "http://127.0.0.1:9"], 69, "no service listens on 127.0.0.1:9"),
        (["--duration", "11 minutes"], 64, "is not between 1 millisecond and 10 minutes"),
        (["--duplicates", "5"], 64, "is not a share from `0%` to `100%`"),
        (["--events", "20000001"], 64, "20000001"),
        (["--key", "a b"], 64, "is not a key"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tillmark"));
        let output = command.args(["bench", "ingest"]).args(arguments).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(text.contains(said), "{text}");
    }
}
