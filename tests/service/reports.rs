//! `tillmark recount` and `tillmark reconcile`: the reports of the API on the command line.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{TestDatabase, TestService, a_sale};

/// Exit code, standard output and standard error of a command beside a running service.
fn tillmark(database: &TestDatabase, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tillmark"))
        .args(arguments)
        .env("DATABASE_URL", &database.url)
        .env_remove("TILLMARK_LOG")
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

// `script` of util-linux, which every Debian has, is the terminal.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_is_shown_that_a_report_is_being_made_and_nothing_else_is() {
    let database = TestDatabase::create().await;
    let _service = TestService::start(&database).await;
    let command = concat!(env!("CARGO_BIN_EXE_tillmark"), " reconcile hourly_sales");
    let terminal = Command::new("script")
        .args(["-qec", command, "/dev/null"])
        .env("DATABASE_URL", &database.url)
        .env("TERM", "xterm")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&terminal.stdout).into_owned();
    assert!(terminal.status.success() && shown.contains("Recounting hourly_sales"), "{shown}");
    let (code, _, said) = tillmark(&database, &["reconcile", "hourly_sales"]);
    assert_eq!((code, said.as_str()), (0, ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_of_nothing_is_refused() {
    let database = TestDatabase::create().await;
    let range = ["--from", "2026-10-03T00:00:00Z", "--to", "2026-10-02T00:00:00Z"];
    let (code, _, said) =
        tillmark(&database, &[&["reconcile", "hourly_sales"], &range[..]].concat());
    assert_eq!(code, 64, "{said}");
    assert!(said.contains("--from is after --to"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_says_what_the_api_says_and_fails_when_something_does_not_add_up() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    for (id, clock) in
        [("1", "09:05:00"), ("2", "11:10:00"), ("late", "09:30:00"), ("3", "12:30:00")]
    {
        service.post_events(&[a_sale(id, clock, "20.00")]).await;
        service.wait_until_idle("hourly_sales").await;
    }
    let path = "/v1/reconciliation";
    let (code, json, said) =
        tillmark(&database, &["reconcile", "hourly_sales", "--format", "json"]);
    assert_eq!(code, 0, "{said}");
    let mut printed: Value = serde_json::from_str(&json).unwrap();
    let mut answered = service.get(path).await.body;
    printed["as_of"].take();
    answered["as_of"].take();
    assert_eq!(printed, answered);
    for format in ["csv", "ndjson"] {
        let answered = service.get(&format!("{path}?format={format}")).await.body;
        let (code, printed, _) =
            tillmark(&database, &["reconcile", "hourly_sales", "--format", format]);
        assert_eq!((code, Value::from(printed)), (0, answered));
    }
    let day = ["--from", "2026-10-01T09:00:00Z", "--to", "2026-10-01T10:00:00Z"];
    let (code, table, _) =
        tillmark(&database, &[&["reconcile", "hourly_sales"][..], &day].concat());
    let expected = "\
start                 end                   currency  stream_orders  stream_revenue  recount_orders  recount_revenue  difference_orders  difference_revenue  late_orders  late_revenue  final  status
2026-10-01T09:00:00Z  2026-10-01T10:00:00Z  USD                   1           20.00               2            40.00                  1               20.00            1         20.00  true   late
";
    assert!(code == 0 && table.starts_with(expected), "{table}");
    assert!(table.ends_with("\n1 windows, 0 unexplained\n"), "{table}");
    let (code, json, _) = tillmark(&database, &["recount", "hourly_sales", "--format", "ndjson"]);
    let first: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!((code, &first["recount"]["orders"], first.get("late")), (0, &Value::from(2), None));

    database.execute("update window_rows set revenue = revenue + 1 where closed_by is not null and window_start = '2026-10-01T09:00Z'").await;
    for command in ["recount", "reconcile"] {
        let (code, table, _) = tillmark(&database, &[command, "hourly_sales"]);
        assert!(code == 1 && table.contains("unexplained"), "{code} {table}");
        let named =
            "\n2026-10-01T09:00:00Z: the stream's row, the ledger and the raw log disagree: ";
        assert!(table.contains(named), "{table}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_said_in_every_form_also_when_it_belongs_to_no_window() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    service
        .post_events(&[a_sale("1", "09:05:00", "20.00"), a_sale("2", "11:10:00", "20.00")])
        .await;
    service.wait_until_idle("hourly_sales").await;
    database
        .execute(
            "insert into window_rows select query_id, window_start, window_end, 'ZZZ', group_keys, orders, revenue,
                 batch_id, written_at, closed_by from window_rows where closed_by is not null
                 and query_id = (select query_id from queries where name = 'hourly_sales');
             update window_rows set orders = 7 where closed_by is not null and currency = 'USD'",
        )
        .await;
    let path = "/v1/reconciliation";
    let report = service.get(path).await.body;
    let (nine, elsewhere) = (&report["windows"][0]["findings"], &report["findings"]);
    assert_eq!((nine.as_array().unwrap().len(), elsewhere.as_array().unwrap().len()), (1, 1));
    assert_eq!(report["unexplained"], 2);

    let csv = service.get(&format!("{path}?format=csv")).await.body;
    let mut reader = csv::Reader::from_reader(csv.as_str().unwrap().as_bytes());
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let told = |row: &csv::StringRecord| {
        let findings: Value = serde_json::from_str(&row[row.len() - 1]).unwrap();
        (row[0].to_owned(), row[row.len() - 2].to_owned(), findings)
    };
    assert_eq!(told(&rows[0]), ("2026-10-01T09:00:00Z".into(), "unexplained".into(), nine.clone()));
    let last = rows.last().unwrap();
    assert_eq!(told(last), (String::new(), "unexplained".into(), elsewhere.clone()));

    let lines = service.get(&format!("{path}?format=ndjson")).await.body;
    let last: Value =
        serde_json::from_str(lines.as_str().unwrap().lines().last().unwrap()).unwrap();
    assert_eq!(last, serde_json::json!({"status": "unexplained", "findings": elsewhere}));

    for command in ["recount", "reconcile"] {
        let (code, table, _) = tillmark(&database, &[command, "hourly_sales"]);
        let sentence = format!("\n{}\n", elsewhere[0].as_str().unwrap());
        assert!(code == 1 && table.contains(&sentence), "{table}");
        let (_, json, _) = tillmark(&database, &[command, "hourly_sales", "--format", "json"]);
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&json["findings"], &json["windows"][0]["findings"]), (elsewhere, nine));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_reads_as_of_a_moment_too() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    service.post_events(&[a_sale("1", "09:05:00", "20.00")]).await;
    service.wait_until_idle("hourly_sales").await;
    let then = service.get("/v1/reconciliation").await.body;
    service.post_events(&[a_sale("2", "12:10:00", "20.00")]).await;
    service.wait_until_idle("hourly_sales").await;
    let moment = then["as_of"].as_str().unwrap();
    let arguments = ["reconcile", "hourly_sales", "--format", "json", "--as-of", moment];
    let (code, json, said) = tillmark(&database, &arguments);
    assert_eq!(code, 0, "{said}");
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), then);
    let (code, _, said) =
        tillmark(&database, &["recount", "hourly_sales", "--as-of", "2199-01-01T00:00:00Z"]);
    assert!(code == 64 && said.contains("is in the future"), "{code} {said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_that_cannot_be_made_says_why() {
    let database = TestDatabase::create().await;
    let _service = TestService::start(&database).await;
    for (arguments, said) in [
        (&["reconcile", "nothing"][..], "tillmark: there is no query `nothing`"),
        (&["recount", "hourly_sales", "--format", "xml"], "`table`, `csv`, `json` or `ndjson`"),
        (&["recount", "hourly_sales", "--from", "2026-10-01"], "RFC 3339"),
        (&["recount"], "QUERY"),
    ] {
        let (code, out, text) = tillmark(&database, arguments);
        assert_eq!((code, out.as_str()), (64, ""), "{text}");
        assert!(text.contains(said), "{text}");
    }
}
