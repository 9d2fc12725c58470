//! Whether the oracle would notice: answers before the flush, and tables that somebody has changed.

use fastrand::Rng;
use serde_json::json;

use crate::bed::{Bed, wait_until};
use crate::oracle::{lost, queries};
use crate::tills::{BULK_EVENTS, Kind};

const STOPS_MAX: u32 = 20;
/// Before each stop. The first append of a writer after a failure goes the long way, which waits for the
/// disk in its own commit, and there are two writers.
const POSTS_A_STOP: usize = 3;

/// With the mistake to answer a large append before it is on disk, an immediate stop of Postgres loses
/// events that were answered. Says what the oracle found.
pub async fn a_missing_flush_is_noticed(rng: Rng) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut bed = Bed::make_in(folder.path(), &[Kind::Bulk], rng).await;
    // A query's commit would flush what was answered before.
    for (query, ..) in queries() {
        let paused = bed.service().post(&format!("/v1/queries/{query}/pause"), json!({})).await;
        assert_eq!(paused.status, 200, "{}", paused.body);
    }
    bed.kill().await;
    bed.start_with(&[("TILLMARK_FAULT", "ingest.flush_left_out:1")]).await;
    for _ in 0..STOPS_MAX {
        let answered = || bed.tills.answers().stored.len();
        let before = answered();
        let posted = before + POSTS_A_STOP * BULK_EVENTS;
        wait_until("events are answered", async || answered() >= posted).await;
        bed.stop_postgres().await;
        bed.wait_for_postgres().await;
        let _quiet = bed.tills.pause().await;
        let answers = std::mem::take(&mut *bed.tills.answers());
        let mut findings = lost(&answers, &bed.database).await;
        *bed.tills.answers() = answers;
        findings.retain(|finding| finding.starts_with("answered and not in the log"));
        if let Some(finding) = findings.pop() {
            return finding;
        }
    }
    panic!("answers before the flush were not noticed in {STOPS_MAX} stops of Postgres");
}

/// Each change to the tables of `bed`, which is good for nothing else afterwards, is found.
pub async fn changed_tables_are_noticed(bed: &mut Bed) {
    let seq = bed.tills.answers().stored.values().next().unwrap().0;
    for (change, finding) in [
        (
            "update window_rows set orders = orders + 1
             where query_id = (select query_id from queries where name = 'hourly_sales_live')"
                .to_owned(),
            "hourly_sales_live, counted",
        ),
        (
            "update window_rows set orders = orders + 1
             where query_id = (select query_id from queries where name = 'orders_once')"
                .to_owned(),
            "final rows that have changed",
        ),
        (
            "update window_rows set orders = orders + 1
             where query_id = (select query_id from queries where name = 'sessions')"
                .to_owned(),
            "sessions: ",
        ),
        (
            format!(
                "create temporary table twin as select * from raw_events where seq = {seq};
                 update twin set seq = nextval('raw_events_seq');
                 insert into raw_events select * from twin"
            ),
            "events that stand twice",
        ),
        (format!("delete from raw_events where seq = {seq}"), "answered and not in the log"),
    ] {
        // A commit under way might lock the same rows in another order.
        let quiet = bed.tills.pause().await;
        for (query, ..) in queries() {
            bed.service().wait_until_idle(query).await;
        }
        bed.database.execute(&change).await;
        drop(quiet);
        let findings = bed.findings().await;
        let is_noticed = findings.iter().any(|found| found.starts_with(finding));
        assert!(is_noticed, "{change} is not noticed: {findings:?}");
    }
}
