//! `/metrics`: what the service counts of itself, for Prometheus.
//!
//! Counts are those of this process, since its start; the figures of queries are read
//! from the database, so that every replica says the same of them. Names of HTTP metrics are
//! OpenTelemetry's. Labels are routes, methods, statuses, outcomes and the names of queries, never what a
//! client sent.

use std::fmt::Write as _;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use tracing::warn;

use super::App;
use super::params::NoParams;
use super::problem::Problem;
use super::problem_docs::MetricsProblems;
use crate::database::QueryGauges;

/// The text format of Prometheus, version 0.0.4.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Of more queries than this, the first by name are told.
const QUERIES_MAX: u32 = 1_000;

/// What is it doing?
///
/// Counters, histograms and gauges in Prometheus' text format.
#[utoipa::path(get, path = "/metrics", tag = "Service",
    responses(
        (status = 200, description = "The metrics", body = String, content_type = "text/plain",
            example = "tillmark_events_total{outcome=\"accepted\"} 1250\n"),
        MetricsProblems))]
pub(super) async fn metrics(State(app): State<App>, _: NoParams) -> Result<Response, Problem> {
    let mut text = app.traffic.text() + &of_process(&app);
    match app.database.query_gauges(QUERIES_MAX).await {
        Ok(queries) => text.push_str(&of_queries(&queries)),
        // What the process knows of itself is told all the same: now somebody may be looking.
        Err(error) => warn!(error = %error.chain(), "The metrics lack those of the queries"),
    }
    Ok(([(header::CONTENT_TYPE, TEXT_FORMAT)], text).into_response())
}

/// Gauges of this process.
fn of_process(app: &App) -> String {
    let depth = app.intake.depth();
    let mut text = format!(
        "# TYPE tillmark_build_info gauge\n\
         tillmark_build_info{{version=\"{}\"}} 1\n\
         # HELP tillmark_queue_events Events waiting to be stored, or being stored.\n\
         # TYPE tillmark_queue_events gauge\n\
         tillmark_queue_events {}\n\
         # HELP tillmark_queue_bytes Bytes of the bodies that they came in.\n\
         # TYPE tillmark_queue_bytes gauge\n\
         tillmark_queue_bytes {}\n\
         # HELP tillmark_leads 1 while this replica runs the queries.\n\
         # TYPE tillmark_leads gauge\n\
         tillmark_leads {}\n\
         # HELP tillmark_database_connections Open connections; max: the most that a pool opens.\n\
         # TYPE tillmark_database_connections gauge\n",
        env!("CARGO_PKG_VERSION"),
        depth.events,
        depth.bytes,
        u8::from(app.pipeline.leads()),
    );
    for pool in app.database.pools() {
        for (state, connections) in [("used", pool.used), ("idle", pool.idle), ("max", pool.max)] {
            // Writing to a text cannot fail.
            let _ = writeln!(
                text,
                "tillmark_database_connections{{pool=\"{}\",state=\"{state}\"}} {connections}",
                pool.name
            );
        }
    }
    text
}

/// A gauge of every query, and how it is read from the row. A query without a watermark has none.
type Gauge = (&'static str, &'static str, fn(&QueryGauges) -> Option<f64>);

const GAUGES: [Gauge; 7] = [
    ("watermark_timestamp_seconds", "The watermark, in seconds since 1970.", |query| {
        query.watermark_s
    }),
    ("watermark_lag_seconds", "How far the watermark is behind the database's clock.", |query| {
        query.watermark_lag_s
    }),
    ("lag_events", "Records of the log that it has not read, counted up to a million.", |query| {
        Some(query.lag_events)
    }),
    ("open_windows", "Windows in its state.", |query| Some(query.open_windows)),
    ("poison_events", "Events that it goes on without.", |query| Some(query.poison_events)),
    ("paused", "1 while it is paused.", |query| Some(f64::from(u8::from(query.paused)))),
    ("failed", "1 while its last attempt failed.", |query| Some(f64::from(u8::from(query.failed)))),
];

/// Queries come and go, so what is told of them is what there is now.
fn of_queries(queries: &[QueryGauges]) -> String {
    let mut text = String::new();
    for (name, help, value) in GAUGES {
        // Writing to a text cannot fail. The names of queries need no escaping.
        let _ = writeln!(text, "# HELP tillmark_query_{name} {help}");
        let _ = writeln!(text, "# TYPE tillmark_query_{name} gauge");
        for query in queries {
            if let Some(value) = value(query) {
                let _ = writeln!(text, "tillmark_query_{name}{{query=\"{}\"}} {value}", query.name);
            }
        }
    }
    text
}
