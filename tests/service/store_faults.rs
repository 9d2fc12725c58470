//! Every call to the database fails once, in both ways, and nobody can tell afterwards: rows, state,
//! ledger, progress and position are those of the run in which nothing failed.

use serde_json::{Value, json};

use crate::support::faulted_log::{hours, rule, stages};
use crate::support::faulted_store::Proof;
use crate::support::{Fault, FaultedStore};

/// What a query that was proven must have met: statements that failed, and traces that it left.
struct Met<'text> {
    statements: &'text [&'text str],
    traces: &'text [&'text str],
}

const FINAL_HOURS: Met<'_> = Met {
    statements: &["insert into window_rows", "delete from window_state", "insert into dropped"],
    traces: &[r#""late_events": 1"#, r#""closed_by": "watermark""#],
};
const LIVE_HOURS: Met<'_> = Met {
    statements: &["update window_rows set closed_by"],
    traces: &[r#""late_events": 1"#, r#""closed_by": null"#],
};
const SESSIONS: Met<'_> = Met {
    statements: &["delete from window_state using"],
    // Two sessions of store B that became one by order 15, with 10, 12 and 14.
    traces: &[r#""orders": 5, "revenue": 58.2500"#],
};
const DEDUPLICATED: Met<'_> = Met {
    statements: &["insert into duplicate_state", "delete from duplicate_state"],
    traces: &[r#""reason": "duplicate""#, "duplicate_state {"],
};

async fn prove(rule: &Value, met: &Met<'_>) {
    let both = [Fault::NotApplied, Fault::AppliedButReportedFailed];
    let [not_applied, applied] = both.map(|fault| prove_one(rule, fault, met));
    tokio::join!(not_applied, applied);
}

async fn prove_one(rule: &Value, fault: Fault, met: &Met<'_>) {
    let store = FaultedStore::with_log(&stages()).await;
    let proof = store.prove(rule, fault).await.unwrap_or_else(|error| panic!("{error}"));
    let Proof { calls, failed, traces } = &proof;
    println!("{calls} calls failed, one in each run: {fault:?}");
    assert!(*calls >= 50, "{calls} calls");
    let everywhere = [
        "BEGIN",
        "COMMIT",
        "copy (select",
        "with leader as",
        "update progress",
        "select * from commit_batch(",
        "select epoch, holder",
        "update leadership",
    ];
    for statement in everywhere.iter().chain(met.statements) {
        assert!(failed.iter().any(|one| one.starts_with(statement)), "{statement} never failed");
    }
    for trace in met.traces {
        assert!(traces.iter().any(|line| line.contains(trace)), "no {trace} in {traces:#?}");
    }
}

fn sessions() -> Value {
    rule(&json!({"kind": "session", "gap": "20 minutes"}), "append")
}

fn deduplicated() -> Value {
    let mut rule = rule(&hours(), "append");
    rule["deduplicate"] = json!({"keys": ["order_id"]});
    rule
}

#[tokio::test(flavor = "multi_thread")]
async fn final_hours_come_out_the_same_whatever_call_fails() {
    prove(&rule(&hours(), "append"), &FINAL_HOURS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn live_hours_come_out_the_same_whatever_call_fails() {
    prove(&rule(&hours(), "update"), &LIVE_HOURS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_come_out_the_same_whatever_call_fails() {
    prove(&sessions(), &SESSIONS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_count_once_whatever_call_fails() {
    prove(&deduplicated(), &DEDUPLICATED).await;
}
