//! The metrics of queries. They come and go, so what is told of them is what there is now.

use std::collections::{BTreeMap, BTreeSet};

use super::App;
use super::checks::Check;
use super::exposition::Kind::{Counter, Gauge, Summary};
use super::exposition::{Exposition, Unit};
use crate::database::{QueryGaugeFigures, QueryGauges};
use crate::domain::{Money, QueryName};
use crate::pipeline::QueryBatches;

/// A gauge, its help, and how it is read. A query without a watermark has none.
type RowGauge = (&'static str, &'static str, fn(&QueryGaugeFigures) -> Option<f64>);

const ROW_GAUGES: [RowGauge; 7] = [
    (
        "tillmark_query_watermark_timestamp_seconds",
        "The watermark, in seconds since 1970; nothing before the first event.",
        |row| row.watermark_s,
    ),
    (
        "tillmark_query_watermark_lag_seconds",
        "How far the watermark is behind the database's clock.",
        |row| row.watermark_lag_s,
    ),
    (
        "tillmark_query_lag_events",
        "Records of the log that it has not read: counted up to 10000, by their positions beyond.",
        |row| Some(row.lag_events),
    ),
    ("tillmark_query_open_windows", "Windows that its last batch left open.", |row| {
        Some(row.open_windows)
    }),
    ("tillmark_query_poison_events", "Events that it goes on without.", |row| {
        Some(row.poison_events)
    }),
    ("tillmark_query_paused", "1 while it is paused.", |row| Some(f64::from(u8::from(row.paused)))),
    ("tillmark_query_failed", "1 while its last attempt failed.", |row| {
        Some(f64::from(u8::from(row.failed)))
    }),
];

/// A gauge of the last check, its help, and how it is read.
type CheckGauge = (&'static str, &'static str, fn(&Check) -> i64);

const CHECK_GAUGES: [CheckGauge; 3] = [
    (
        "tillmark_query_unexplained_windows",
        "Windows whose difference from a recount is not itemised, of the last day of events, as of the \
         last check; 0 is right. Asking for the metrics begins the next check.",
        |check| i64::try_from(check.unexplained).unwrap_or(i64::MAX),
    ),
    ("tillmark_query_state_bytes", "Bytes of its stored state, as of the last check.", |check| {
        check.state_bytes
    }),
    (
        "tillmark_query_checked_timestamp_seconds",
        "When the last check was, in seconds since 1970.",
        |check| check.checked_at.timestamp(),
    ),
];

/// Writes the metrics of `queries`, and begins the next check of them.
pub(super) fn write_queries(app: &App, queries: &[QueryGauges], text: &mut Exposition) {
    for (name, help, value) in ROW_GAUGES {
        let mut family = text.family(name, Gauge, help);
        for query in queries {
            if let Some(value) = value(&query.figures) {
                family.sample(&label(&query.name), value);
            }
        }
    }
    let checks = app.checks.last();
    for (name, help, value) in CHECK_GAUGES {
        let mut family = text.family(name, Gauge, help);
        for query in queries {
            if let Some(check) = checks.get(&query.name) {
                family.sample(&label(&query.name), value(check));
            }
        }
    }
    let names: BTreeSet<&QueryName> = queries.iter().map(|query| &query.name).collect();
    write_batches(&app.pipeline.figures().of(&names), text);
    app.checks.renew(app, names.into_iter().cloned().collect());
}

/// What this process has counted of the batches that it ran.
fn write_batches(counts: &BTreeMap<QueryName, QueryBatches>, text: &mut Exposition) {
    let help = "Events that passed its filter.";
    let mut family = text.family("tillmark_query_events_total", Counter, help);
    for (query, counts) in counts {
        family.sample(&label(query), counts.events);
    }
    let help = "Events that it read and did not fully count.";
    let mut family = text.family("tillmark_query_dropped_events_total", Counter, help);
    for (query, counts) in counts {
        for (reason, dropped) in [("late", counts.late_events), ("duplicate", counts.duplicates)] {
            family.sample(&format!("{},reason=\"{reason}\"", label(query)), dropped);
        }
    }
    let help = "Money of late events, each once; refunds, below zero, for themselves and above it.";
    let mut family = text.family("tillmark_query_late_revenue_total", Counter, help);
    for (query, counts) in counts {
        for (currency, money) in &counts.late_money {
            for (kind, revenue) in [("sale", money.sold), ("refund", money.refunded)] {
                let labels = format!("{},currency=\"{currency}\",kind=\"{kind}\"", label(query));
                family.sample(&labels, Money { revenue, currency: *currency });
            }
        }
    }
    let help = "How many micro-batches of it this replica ran and how long they took, by phase.";
    let mut family = text.family("tillmark_query_batch_duration_seconds", Summary, help);
    for (query, counts) in counts {
        for (phase, sum_us) in counts.phases() {
            let labels = format!("{},phase=\"{phase}\"", label(query));
            family.summary(&labels, counts.batches, sum_us, Unit::Seconds);
        }
    }
}

fn label(query: &QueryName) -> String {
    format!("query=\"{query}\"")
}
