//! Whether the service has kept what it answered, and counted it once. It asks the tables in SQL of its
//! own, and the service for what it says of itself.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use sqlx::postgres::PgArguments;
use sqlx::query::QueryScalar;
use sqlx::{AssertSqlSafe, Postgres};

use crate::answers::Answers;
use crate::support::{TestDatabase, TestService};

/// So many examples of each finding are told.
const EXAMPLES_MAX: usize = 5;
const IDLE_POLL: Duration = Duration::from_millis(25);
const IDLE_POLLS_MAX: u32 = 1_600;

/// The queries of the campaign, whose rules make every part of a commit do something, and of those that
/// count every event of a status once, the status. The first two are the service's own.
pub fn queries() -> [(&'static str, Option<Value>, Option<&'static str>); 5] {
    let rule = |filter: &str, window: Value, mode: &str| {
        json!({
            "filter": {"status": [filter]}, "window": window, "watermark_delay": "30 minutes",
            "output_mode": mode, "max_events_per_batch": 400,
        })
    };
    let hours = || json!({"kind": "tumbling", "size": "1 hour"});
    let mut sessions = rule("placed", json!({"kind": "session", "gap": "6 minutes"}), "append");
    sessions["group_by"] = json!(["store_id"]);
    let mut orders = rule("placed", hours(), "append");
    orders["deduplicate"] = json!({"keys": ["order_id"]});
    [
        ("hourly_sales", None, Some("placed")),
        ("hourly_sales_live", None, Some("placed")),
        ("sessions", Some(sessions), None),
        ("orders_once", Some(orders), None),
        ("refunds", Some(rule("refund", hours(), "update")), Some("refund")),
    ]
}

/// Answered events that are not there, or there more often than once; and answers that cannot be right.
pub async fn lost(answers: &Answers, database: &TestDatabase) -> Vec<String> {
    let ids: Vec<&str> = answers.stored.keys().map(String::as_str).collect();
    let seqs: Vec<i64> = answers.stored.values().map(|(seq, _)| *seq).collect();
    let amounts: Vec<&str> = answers.stored.values().map(|(_, amount)| amount.as_str()).collect();
    let mut findings = Vec::new();
    let missing =
        ask("select event_id || ' at ' || seq from unnest($1::text[], $2::bigint[], $3::text[])
             as answered (event_id, seq, amount)
         where not exists (
             select from raw_events log where log.seq = answered.seq
                 and log.event_id = answered.event_id and log.amount = answered.amount::numeric)");
    let missing = missing.bind(ids).bind(seqs).bind(amounts);
    find(&mut findings, "answered and not in the log", missing, database).await;
    let quarantined: Vec<&str> = answers.quarantined.iter().map(String::as_str).collect();
    let missing = ask("select event_id from unnest($1::text[]) as answered (event_id)
         where not exists (select from quarantine where quarantine.event_id = answered.event_id)");
    let missing = missing.bind(quarantined);
    find(&mut findings, "answered and not in quarantine", missing, database).await;
    let heartbeats: Vec<i64> = answers.heartbeats.iter().copied().collect();
    let missing =
        ask("select seq::text from unnest($1::bigint[]) as answered (seq) where not exists (
             select from raw_events log where log.seq = answered.seq and kind = 'heartbeat')");
    let missing = missing.bind(heartbeats);
    find(&mut findings, "heartbeats answered and not in the log", missing, database).await;
    for (what, select) in [
        (
            "events that stand twice",
            "select event_id from raw_events where kind = 'event' group by 1 having count(*) > 1",
        ),
        (
            "events whose id is not taken",
            "select event_id from raw_events left join event_keys using (event_id, seq)
             where kind = 'event' and content_hash is null",
        ),
        (
            "ids taken by no event",
            "select event_id from event_keys left join raw_events using (event_id, seq)
                 left join quarantine using (event_id)
             where raw_events.kind is null and not (event_keys.seq is null and reason is not null)",
        ),
    ] {
        find(&mut findings, what, ask(select), database).await;
    }
    findings.extend(answers.wrong.iter().take(EXAMPLES_MAX).cloned());
    findings
}

/// What was final when somebody looked last.
#[derive(Debug, Default)]
pub struct FinalRows(BTreeSet<String>);

impl FinalRows {
    /// What is counted wrongly, and what does not come to its end.
    pub async fn miscounted(
        &mut self,
        service: &TestService,
        database: &TestDatabase,
    ) -> Vec<String> {
        let mut findings = Vec::new();
        for (query, _, status) in queries() {
            findings.extend(stands(service, query).await);
            let report = service.get(&format!("/v1/queries/{query}/reconciliation")).await.body;
            let waiting = &report["totals"]["USD"]["waiting"]["orders"];
            if report["unexplained"] != 0 || *waiting != 0 && !waiting.is_null() {
                let windows = report["windows"].as_array().into_iter().flatten();
                let unexplained = windows.filter(|window| window["status"] == "unexplained");
                let examples: Vec<_> = unexplained.take(EXAMPLES_MAX).collect();
                findings.push(format!(
                    "{query}: {} unexplained, {waiting} waiting: {} {examples:?}",
                    report["unexplained"], report["findings"],
                ));
            }
            if let Some(status) = status {
                let sums = ask(SUMS).bind(query).bind(status);
                let what = format!("{query}, counted beside the log");
                find(&mut findings, &what, sums, database).await;
            }
        }
        let gaps = "select name from queries join progress using (query_id)
             group by 1 having count(*) <> max(batch_id) + 1";
        find(&mut findings, "batches that are missing", ask(gaps), database).await;
        let rows = ask("select window_rows::text from window_rows join queries using (query_id)
             where spec ->> 'output_mode' = 'append'");
        let rows: BTreeSet<String> =
            rows.fetch_all(&database.pool).await.unwrap().into_iter().collect();
        let changed: Vec<_> = self.0.difference(&rows).take(EXAMPLES_MAX).collect();
        if !changed.is_empty() {
            findings.push(format!("final rows that have changed: {changed:?}"));
        }
        self.0 = rows;
        findings
    }
}

/// What a query has counted, late events included, beside what the log holds.
const SUMS: &str = "with counting as (
        select query_id, spec ->> 'output_mode' = 'append' as is_append from queries where name = $1
    ), counted as (
        select orders, revenue from window_rows join counting using (query_id)
        union all
        select orders, revenue from window_state join counting using (query_id) where is_append
        union all
        select 1, amount from dropped_events join counting using (query_id)
    ), counts as (
        select coalesce(sum(orders), 0) as counted_events, coalesce(sum(revenue), 0) as counted_money
        from counted
    ), log as (
        select count(*) as events, coalesce(sum(amount), 0) as money from raw_events where status = $2
    )
    select format('counted %s events and %s in money of %s and %s', counted_events, counted_money,
        events, money)
    from counts, log where (counted_events, counted_money) <> (events, money)";

/// Waits until the query has read everything, and says so if it does not.
async fn stands(service: &TestService, query: &str) -> Option<String> {
    let mut stands = Value::Null;
    for _ in 0..IDLE_POLLS_MAX {
        stands = service.get(&format!("/v1/queries/{query}")).await.body;
        let is_well = stands["status"] == "running" && stands["poison_events"] == 0;
        if stands["idle"] == true && stands["lag_events"] == 0 && is_well {
            return None;
        }
        tokio::time::sleep(IDLE_POLL).await;
    }
    Some(format!("{query} does not come to its end: {stands}"))
}

type Ask<'bound> = QueryScalar<'bound, Postgres, String, PgArguments>;

fn ask<'bound>(select: &str) -> Ask<'bound> {
    sqlx::query_scalar(AssertSqlSafe(select.to_owned()))
}

/// Adds a finding if the statement answers a row.
async fn find(findings: &mut Vec<String>, what: &str, select: Ask<'_>, database: &TestDatabase) {
    let found = select.fetch_all(&database.pool).await.unwrap();
    if !found.is_empty() {
        let examples = &found[..found.len().min(EXAMPLES_MAX)];
        findings.push(format!("{what}: {} such as {examples:?}", found.len()));
    }
}
