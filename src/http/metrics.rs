//! `/metrics`: what the service counts of itself, for Prometheus.
//!
//! Counts are those of this process, since its start. Gauges of queries are read from the database, so
//! that every replica says the same of them; what is too dear for that is told as of the last check
//! (`checks`). Names of HTTP metrics are OpenTelemetry's. Labels are routes, methods, statuses, outcomes,
//! currencies and the names of queries, never what a client sent.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use tracing::warn;

use super::App;
use super::ailments::Ailment;
use super::exposition::Kind::{Gauge, Histogram};
use super::exposition::{CONTENT_TYPE, Exposition, Unit};
use super::params::NoParams;
use super::problem::Problem;
use super::problem_docs::MetricsProblems;
use super::query_metrics::write_queries;

/// Of more queries than this, the first by name are told.
const QUERIES_MAX: u32 = 1_000;

/// What is it doing?
///
/// Counters, histograms and gauges in Prometheus' text format.
#[utoipa::path(get, path = "/metrics", tag = "Service",
    responses(
        (status = 200, description = "The metrics", body = String, content_type = "text/plain",
            example = "# HELP tillmark_events_total Posted events by what became of them.\n\
                       # TYPE tillmark_events_total counter\n\
                       tillmark_events_total{outcome=\"accepted\"} 1250\n"),
        MetricsProblems))]
pub(super) async fn metrics(State(app): State<App>, _: NoParams) -> Result<Response, Problem> {
    let mut text = Exposition::default();
    app.traffic.write(&mut text);
    write_process(&app, &mut text);
    write_commits(&app, &mut text);
    let (ailments, queries) = tokio::join!(app.ailments(), app.database.query_gauges(QUERIES_MAX));
    let help = "1 while this ails the service; `/readyz` says what to do.";
    let mut family = text.family("tillmark_degraded", Gauge, help);
    // What the process knows of itself is told without a database all the same: now somebody may be looking.
    match ailments {
        Ok(now) => Ailment::all().for_each(|ailment| {
            let labels = format!("reason=\"{}\"", ailment.facts().code);
            family.sample(&labels, u8::from(now.contains(&ailment)));
        }),
        Err(error) => warn!(error = %error.chain(), "The metrics lack the state of the database"),
    }
    match queries {
        Ok(queries) => write_queries(&app, &queries, &mut text),
        Err(error) => warn!(error = %error.chain(), "The metrics lack those of the queries"),
    }
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], text.into_text()).into_response())
}

/// Gauges of this process.
fn write_process(app: &App, text: &mut Exposition) {
    let version = format!("version=\"{}\"", env!("CARGO_PKG_VERSION"));
    text.family("tillmark_build_info", Gauge, "Always 1; the version is in the label.")
        .sample(&version, 1);
    let depth = app.intake.depth();
    let help = "Events waiting to be stored, or being stored.";
    text.family("tillmark_queue_events", Gauge, help).sample("", depth.events);
    let help = "Bytes of the bodies that the events waiting to be stored came in.";
    text.family("tillmark_queue_bytes", Gauge, help).sample("", depth.bytes);
    let help = "1 while this replica runs the queries.";
    text.family("tillmark_leads", Gauge, help).sample("", u8::from(app.pipeline.leads()));
    let help = "Connections of clients; max: the most that are taken at a time.";
    let mut family = text.family("tillmark_connections", Gauge, help);
    family.sample("state=\"open\"", app.connections.open());
    family.sample("state=\"max\"", app.settings.connections_max);
    let help = "Connections to the database by pool; max: the most that it opens.";
    let mut family = text.family("tillmark_database_connections", Gauge, help);
    for pool in app.database.pools() {
        for (state, connections) in [("used", pool.used), ("idle", pool.idle), ("max", pool.max)] {
            family.sample(&format!("pool=\"{}\",state=\"{state}\"", pool.name), connections);
        }
    }
    let Some(space) = app.data_disk.space() else { return };
    let help = "The disk of the private Postgres.";
    let mut family = text.family("tillmark_data_disk_bytes", Gauge, help);
    family.sample("state=\"free\"", space.free_bytes);
    family.sample("state=\"total\"", space.total_bytes);
}

/// What this process counts of the commits of appends, and of micro-batches whatever their query.
fn write_commits(app: &App, text: &mut Exposition) {
    let commits = app.intake.figures();
    let help = "Events of each commit to the log, duplicates included.";
    text.family("tillmark_ingest_commit_events", Histogram, help).histogram(
        "",
        &commits.events.counted(),
        Unit::Whole,
    );
    let help = "How long each commit to the log took.";
    text.family("tillmark_ingest_commit_duration_seconds", Histogram, help).histogram(
        "",
        &commits.durations_us.counted(),
        Unit::Seconds,
    );
    let help = "How long micro-batches that this replica ran took, by phase, whatever their query.";
    let mut family = text.family("tillmark_batch_duration_seconds", Histogram, help);
    for (phase, counted) in app.pipeline.figures().phases() {
        family.histogram(&format!("phase=\"{phase}\""), &counted, Unit::Seconds);
    }
}
