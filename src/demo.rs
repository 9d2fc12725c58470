//! `tillmark demo`: the worked example of the event-time rules, played against a scratch database
//! over the service's own API, each step with what it shows and why.

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::app::{CLOSE_MAX, Service, StartError, asked_to_end};
use crate::config::{DemoSettings, ServeSettings};
use crate::embedded::EmbeddedPostgres;
use crate::http::{DataDisk, LocalClient};

/// Posts of the worked example: what is said of them, and the events as (order, status, time of
/// 2026-10-01, amount).
type Post =
    (&'static str, &'static [(u32, &'static str, &'static str, &'static str)], &'static str);

const POSTS: [Post; 3] = [
    (
        "Five events: four orders are placed, one is paid.",
        &[
            (1001, "placed", "09:05", "20.00"),
            (1002, "placed", "09:20", "30.50"),
            (1003, "placed", "09:40", "18.00"),
            (1001, "paid", "09:06", "20.00"),
            (1004, "placed", "10:20", "40.00"),
        ],
        "The query counts placed orders only, so 4 events come in. The newest is of 10:20; one hour of \
         delay behind it, the watermark reaches 09:20. Batch 1 has no data: it only applies that \
         watermark. No hour ends by 09:20, so nothing is final yet.",
    ),
    (
        "One order at 11:30.",
        &[(1005, "placed", "11:30", "18.25")],
        "The watermark reaches 10:30 and passes 10:00, the end of the 09:00 hour: its row is written \
         once, and never changes again.",
    ),
    (
        "Order 1006 was placed at 09:50, in an hour that is final; 1007 and 1008 are on time.",
        &[
            (1006, "placed", "09:50", "22.00"),
            (1007, "placed", "10:45", "15.00"),
            (1008, "placed", "12:40", "12.00"),
        ],
        "1006 is late: the 09:00 hour was closed when the watermark reached 10:30. It does not change \
         the row; it is kept, listed, and explained below. The watermark reaches 11:40 and closes \
         the 10:00 hour.",
    ),
];

/// Plays the worked example and prints it, until it is over or asked to end. Leaves no files either way.
///
/// # Errors
/// [`StartError`] when the scratch database cannot be started.
pub fn play(settings: &DemoSettings) -> Result<(), StartError> {
    let runtime = tokio::runtime::Runtime::new()
        .map_err(|source| StartError::System { doing: "start the threads of the demo", source })?;
    let ask_to_end = {
        let _inside = runtime.enter();
        asked_to_end()?
    };
    let folder = ScratchFolder::make(&settings.scratch_parent())?;
    let scratch = EmbeddedPostgres::start(&settings.embedded(&folder.0))?;
    let played = runtime.block_on(async {
        tokio::select! {
            played = play_on(scratch.url()) => played,
            () = ask_to_end => Ok(()),
        }
    });
    runtime.shutdown_timeout(CLOSE_MAX);
    scratch.stop()?;
    played
}

async fn play_on(url: &str) -> Result<(), StartError> {
    let service = Service::start(url, &ServeSettings::defaults(), DataDisk::default()).await?;
    tell(&service.local_client()).await;
    service.end().await;
    Ok(())
}

/// The folder of the scratch database; removed on drop.
#[derive(Debug)]
struct ScratchFolder(PathBuf);

impl ScratchFolder {
    /// Makes a folder that nobody had before.
    fn make(parent: &Path) -> Result<Self, StartError> {
        let name = format!("tillmark-demo-{}", std::process::id());
        let mut number = 0_u32;
        loop {
            let path = parent.join(format!("{name}-{number}"));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                // An earlier process with the same number was killed.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
                Err(source) => {
                    let doing = "make a folder for the scratch database";
                    return Err(StartError::System { doing, source });
                }
            }
        }
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("tillmark: could not remove {}: {error}", self.0.display());
        }
    }
}

async fn tell(client: &LocalClient) {
    println!(
        "The worked example: status placed, tumbling windows of 1 hour, delay 1 hour, append mode.\n"
    );
    let query = json!({
        "filter": {"status": ["placed"]}, "window": {"kind": "tumbling", "size": "1 hour"},
        "watermark_delay": "1 hour", "output_mode": "append", "trigger": {"kind": "manual"},
    });
    client.ask("PUT", "/v1/queries/worked_example", Some(query)).await;
    for (number, (title, events, why)) in POSTS.iter().enumerate() {
        println!("POST {}: {title}", number + 1);
        client.ask("POST", "/v1/events", Some(post_body(events))).await;
        let run = client.ask("POST", "/v1/queries/worked_example/run", Some(json!({}))).await;
        print_progress(&run);
        print_rows(&client.ask("GET", "/v1/queries/worked_example/windows", None).await);
        println!("  Why: {why}\n");
    }
    print_ledger(&client.ask("GET", "/v1/queries/worked_example/dropped-events", None).await);
    print_reconciliation(
        &client.ask("GET", "/v1/queries/worked_example/reconciliation", None).await,
    );
}

fn post_body(events: &[(u32, &str, &str, &str)]) -> Value {
    let event = |&(order, status, clock, amount): &(u32, &str, &str, &str)| {
        json!({
            "event_id": format!("{order}-{status}"), "order_id": order, "status": status,
            "amount": amount, "event_time": format!("2026-10-01T{clock}:00Z"),
        })
    };
    events.iter().map(event).collect()
}

fn list<'answer>(answer: &'answer Value, name: &str) -> &'answer [Value] {
    answer[name].as_array().map_or(&[], Vec::as_slice)
}

/// A value for a column of text: strings without their quotes.
fn cell(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn print_progress(run: &Value) {
    println!(
        "  {:>5} {:>9} {:>4}  {:<24} {:>12}",
        "batch", "events_in", "late", "watermark", "rows_written"
    );
    for entry in list(run, "progress") {
        println!(
            "  {:>5} {:>9} {:>4}  {:<24} {:>12}",
            cell(&entry["batch_id"]),
            cell(&entry["events_in"]),
            cell(&entry["late_events"]),
            cell(&entry["watermark"]),
            cell(&entry["rows_written"]),
        );
    }
}

fn print_rows(windows: &Value) {
    let rows = list(windows, "rows");
    if rows.is_empty() {
        println!("  No hour is final yet.");
    }
    for row in rows {
        println!(
            "  Final hour {}: {} orders, {} {} (written by batch {}; came late since: {})",
            cell(&row["start"]),
            cell(&row["orders"]),
            cell(&row["revenue"]),
            cell(&row["currency"]),
            cell(&row["batch_id"]),
            cell(&row["late_since"]["orders"]),
        );
    }
}

fn print_ledger(ledger: &Value) {
    println!("The ledger of dropped events:");
    for entry in list(ledger, "dropped_events") {
        println!(
            "  {} of {}, {}: {} by {}; its window was closed by the watermark {}",
            cell(&entry["event"]["event_id"]),
            cell(&entry["event"]["event_time"]),
            cell(&entry["event"]["amount"]),
            cell(&entry["reason"]),
            cell(&entry["late_by"]),
            cell(&entry["watermark"]),
        );
    }
}

fn print_reconciliation(report: &Value) {
    println!("\nThe reconciliation, the stream against a recount of the raw log by plain SQL:");
    println!("  {:<21} {:>14} {:>14} {:>14}  status", "hour", "stream", "recount", "difference");
    let totals = |side: &Value| match side {
        Value::Null => "-".to_owned(),
        side => format!("{} / {}", cell(&side["orders"]), cell(&side["revenue"])),
    };
    for line in list(report, "windows") {
        println!(
            "  {:<21} {:>14} {:>14} {:>14}  {}",
            cell(&line["start"]),
            totals(&line["stream"]),
            totals(&line["recount"]),
            totals(&line["difference"]),
            cell(&line["status"]),
        );
    }
    let unexplained = cell(&report["unexplained"]);
    let verdict = if unexplained == "0" { "everything adds up" } else { "somebody should look" };
    println!("  Unexplained windows: {unexplained}; {verdict}.");
}
