//! `tillmark import`: files into the log, once, whatever happens on the way.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{TestDatabase, TestService, a_sale, gzip, zstd};

fn import(database: &TestDatabase) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tillmark"));
    command.arg("import").env("DATABASE_URL", &database.url);
    command
}

/// Imports `files` and answers the exit code, the counts of the summary, and what was said.
fn run(command: &mut Command) -> (Option<i32>, Vec<u64>, String) {
    let output = command.output().unwrap();
    (output.status.code(), counts(&output), String::from_utf8(output.stderr).unwrap())
}

/// Read, accepted, duplicates, conflicts, quarantined, rejected.
fn counts(output: &Output) -> Vec<u64> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().filter_map(|line| line.split_whitespace().nth(1)?.parse().ok()).collect()
}

fn file(folder: &TempDir, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn lines(sales: impl IntoIterator<Item = Value>) -> String {
    sales.into_iter().map(|sale| format!("{sale}\n")).collect()
}

fn sales(name: &str, count: usize) -> String {
    lines((0..count).map(|number| {
        a_sale(&format!("{name}-{number}"), &format!("09:{:02}:00", number % 60), "1.25")
    }))
}

/// The lines of a file of rejected rows: file, line, row, code of the first fault.
fn rejected(path: &Path) -> Vec<(u64, Value, String)> {
    let text = fs::read_to_string(path).unwrap();
    let line = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let code = line["errors"][0]["code"].as_str().unwrap().to_owned();
        (line["line"].as_u64().unwrap(), line["row"].clone(), code)
    };
    text.lines().map(line).collect()
}

async fn events_in(database: &TestDatabase) -> i64 {
    database.number("select count(*) from raw_events").await
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_every_kind_are_imported_once_however_often_they_are_imported() {
    let database = TestDatabase::create().await;
    let folder = tempfile::tempdir().unwrap();
    let csv = "event_id,order_id,status,amount,event_time,item_count,attributes.colour\n\
               c1,1,placed,20.00,2026-10-01T09:05:00Z,2,red\n\
               c2,2,placed,\"30.50\",2026-10-01T09:06:00Z,,\n";
    let files = [
        file(&folder, "a.ndjson", sales("plain", 3)),
        file(&folder, "b.jsonl.gz", gzip(sales("gzip", 3).as_bytes())),
        file(&folder, "c.ndjson.zst", zstd(sales("zstd", 3).as_bytes())),
        file(&folder, "d.csv", csv),
        file(&folder, "e.csv.gz", gzip(csv.replace("c1", "e1").replace("c2", "e2").as_bytes())),
    ];
    let (code, counts, said) = run(import(&database).args(&files));
    assert_eq!((code, counts, said.as_str()), (Some(0), vec![13, 13, 0, 0, 0, 0], ""));
    let (code, counts, _) = run(import(&database).args(&files));
    assert_eq!((code, counts), (Some(0), vec![13, 0, 13, 0, 0, 0]));
    assert_eq!(events_in(&database).await, 13);
    let of_csv = "select count(*) from raw_events where event_id in ('c1', 'e1') and item_count = 2
                  and attributes = '{\"colour\": \"red\"}' and amount = 20 and order_id = '1'";
    assert_eq!(database.number(of_csv).await, 2);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), files.len(), "no file of rejections");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_are_not_taken_are_kept_with_their_line_and_the_reasons() {
    let database = TestDatabase::create().await;
    let folder = tempfile::tempdir().unwrap();
    let good = a_sale("1", "09:05:00", "20.00");
    let mut other = good.clone();
    other["amount"] = "21.00".into();
    let far_ahead = good.to_string().replace("2026-10-01", "2190-10-01").replace("1-placed", "2");
    let text = format!("{good}\n\nsales\n{other}\n{far_ahead}\n{}\n", "x".repeat(100_000));
    let path = file(&folder, "a.ndjson", text);
    let (code, counts, said) = run(import(&database).arg(&path));
    assert_eq!((code, counts), (Some(65), vec![5, 1, 0, 1, 1, 2]), "{said}");
    let kept = rejected(&folder.path().join("a.ndjson.rejected"));
    let kept: Vec<_> = kept.iter().map(|(line, row, code)| (*line, row, code.as_str())).collect();
    assert_eq!(kept[0], (3, &Value::from("sales"), "not_json"));
    assert_eq!((kept[1].0, kept[1].2), (6, "too_large"));
    assert_eq!(kept[2], (4, &other, "conflict"));

    let csv =
        "order_id,status,amount,event_time\n1,placed,1.00001,2026-10-01T09:05:00Z\n2,placed\n";
    let path = file(&folder, "b.csv", csv);
    let chosen = folder.path().join("chosen");
    let (code, counts, said) = run(import(&database).arg("--rejected").arg(&chosen).arg(&path));
    assert_eq!((code, counts), (Some(65), vec![2, 0, 0, 0, 0, 2]), "{said}");
    assert!(said.contains(chosen.to_str().unwrap()), "{said}");
    let kept = rejected(&chosen);
    assert_eq!((kept[0].0, &kept[0].1["amount"]), (2, &Value::from("1.00001")));
    assert_eq!((kept[1].0, kept[1].2.as_str()), (3, "wrong_cell_count"));
    // Mended, the same file is taken, and says nothing of its past.
    fs::write(&path, csv.replace("1.00001", "1.00").replace("2,placed\n", "")).unwrap();
    let (code, ..) = run(import(&database).arg("--rejected").arg(&chosen).arg(&path));
    assert_eq!((code, chosen.exists()), (Some(0), false));
}

#[tokio::test(flavor = "multi_thread")]
async fn standard_input_is_read_once_the_format_is_said() {
    let database = TestDatabase::create().await;
    let mut process = import(&database)
        .args(["-", "--format", "ndjson"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = process.stdin.take().unwrap();
    input.write_all(&zstd(sales("piped", 12_000).as_bytes())).unwrap();
    drop(input);
    let output = process.wait_with_output().unwrap();
    assert_eq!((output.status.code(), counts(&output)[1]), (Some(0), 12_000));
    assert_eq!(events_in(&database).await, 12_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_that_was_killed_goes_on_when_it_is_run_again() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let folder = tempfile::tempdir().unwrap();
    let count = 40_000;
    let path = file(&folder, "a.ndjson.gz", gzip(sales("killed", count).as_bytes()));
    let mut process = import(&database).arg(&path).stdout(Stdio::piped()).spawn().unwrap();
    while events_in(&database).await == 0 {
        assert!(process.try_wait().unwrap().is_none(), "the import ended without storing anything");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    process.kill().unwrap();
    process.wait().unwrap();
    let stored = events_in(&database).await;
    assert!(stored < 40_000, "killed too late: {stored}");

    let (code, counts, said) = run(import(&database).arg(&path));
    assert_eq!((code, counts[0], counts[1] + counts[2]), (Some(0), 40_000, 40_000), "{said}");
    assert!(counts[2] > 0);
    assert_eq!(events_in(&database).await, 40_000);
    service.wait_until_idle("hourly_sales_live").await;
    let rows = service.rows("hourly_sales_live").await;
    assert_eq!((rows.len(), &rows[0]["orders"]), (1, &Value::from(count)));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_imported_is_said_before_anything_is_stored() {
    let database = TestDatabase::create().await;
    let folder = tempfile::tempdir().unwrap();
    let good = file(&folder, "good.ndjson", sales("good", 1));
    let unnamed = file(&folder, "sales.json", "");
    let header = file(&folder, "header.csv", "order_id;status\n");
    let missing = folder.path().join("missing.csv");
    for (bad, code, said) in [
        (&unnamed, 64, "does not say how its events are written; add `--format ndjson`"),
        (&header, 64, "column 1 is `order_id;status`, which is no field of an event"),
        (&missing, 66, "missing.csv from its beginning: No such file or directory"),
        (&folder.path().with_extension("csv"), 66, "could not read"),
    ] {
        let output = import(&database).arg(&good).arg(bad).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(text.starts_with("tillmark: ") && text.contains(said), "{text}");
        assert!(output.stdout.is_empty());
    }
    let (code, _, said) = run(import(&database).arg(&good).arg("--rejected").arg(&good));
    assert_eq!((code, good.exists()), (Some(64), true), "{said}");
    let (code, _, said) = run(import(&database).arg(&good).env("DATABASE_URL", "nonsense"));
    assert_eq!(code, Some(64), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_damaged_file_is_kept_what_could_be_read() {
    let database = TestDatabase::create().await;
    let folder = tempfile::tempdir().unwrap();
    let whole = gzip(sales("cut", 1_000).as_bytes());
    let path = file(&folder, "a.ndjson.gz", &whole[..whole.len() - 20]);
    let (code, counts, said) = run(import(&database).arg(&path));
    assert_eq!(code, Some(66), "{said}");
    assert!(said.contains("could not read") && said.contains("a.ndjson.gz from line "), "{said}");
    assert!((900..1_000).contains(&counts[1]), "{counts:?}");
    assert_eq!(events_in(&database).await, i64::try_from(counts[1]).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_private_postgres_is_imported_into_beside_its_service_and_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let settings = [("TILLMARK_DATA_DIR", data.to_str().unwrap()), ("DATABASE_URL", "")];
    let import = |name| {
        let path = file(&folder, &format!("{name}.ndjson"), sales(name, 10));
        let mut command = Command::new(env!("CARGO_BIN_EXE_tillmark"));
        run(command.arg("import").arg(path).envs(settings))
    };
    let (code, _, said) = import("first");
    assert_eq!((code, data.exists()), (Some(69), false), "{said}");
    assert!(said.contains("there is no Tillmark database in"), "{said}");
    TestService::start_with(&settings).await.terminate().await;
    assert_eq!(import("first").0, Some(0));
    let mut service = TestService::start_with(&settings).await;
    let (code, counts, said) = import("second");
    assert_eq!((code, counts[1]), (Some(0), 10), "{said}");
    service.wait_until_idle("hourly_sales_live").await;
    let mut orders = 0;
    for _ in 0..200 {
        let rows = service.rows("hourly_sales_live").await;
        orders = rows.iter().map(|row| row["orders"].as_u64().unwrap()).sum();
        if orders == 20 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    assert_eq!(orders, 20);
    assert_eq!(service.terminate().await, Some(0));
}
