//! Progress: what every micro-batch did.

use axum::extract::{OriginalUri, Path, State};
use axum::response::Response;
use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use super::bodies::{cut_page, moment, page};
use super::params::Params;
use super::problem::Problem;
use super::query_name;
use super::state::AppState;
use crate::database::{CommittedProgress, ProgressCursor};
use crate::domain::{BatchId, QueryName};

/// What one micro-batch did.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Progress)]
pub(super) struct ProgressBody {
    /// Whose batch it was.
    #[schema(example = "hourly_sales")]
    query: String,
    /// 0, 1, 2 …
    batch_id: i64,
    /// When it was committed.
    #[schema(example = "2026-10-01T12:40:03.123456Z")]
    timestamp: String,
    /// Events that passed the filter.
    events_in: i64,
    /// Events that missed at least one window.
    late_events: i64,
    /// Events dropped as duplicates.
    duplicates: i64,
    /// The watermark of the batch before, which judged lateness.
    late_watermark: String,
    /// The watermark that closed windows.
    watermark: String,
    /// The events' times; null in a batch without data.
    event_time: Option<EventTimeBody>,
    /// Output rows written.
    rows_written: i64,
    /// The state afterwards.
    state: StateBody,
    /// The batch read `from < seq <= to`.
    position: PositionBody,
    /// How long it took.
    duration_ms: DurationBody,
    /// `events_in` by the whole duration.
    events_per_second: f64,
    /// What closed the windows that it closed; null when it closed none.
    closed_by: Option<&'static str>,
}

/// Oldest, newest and mean event time.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EventTimeRange)]
struct EventTimeBody {
    min: String,
    max: String,
    avg: String,
}

/// Windows in state after a batch.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = State)]
struct StateBody {
    /// Open.
    windows: i64,
    /// Changed by the batch.
    updated: i64,
    /// Closed by the batch.
    removed: i64,
}

/// A run of the raw log.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Position)]
struct PositionBody {
    from: i64,
    to: i64,
}

/// Parts of a batch in milliseconds. `commit` is the writing of everything, up to the commit itself.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DurationMs)]
struct DurationBody {
    read: f64,
    compute: f64,
    commit: f64,
    total: f64,
}

/// Entries, newest first.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ProgressPage)]
pub(super) struct ProgressPage {
    progress: Vec<ProgressBody>,
    next_cursor: Option<String>,
}

impl From<&CommittedProgress> for ProgressBody {
    fn from(committed: &CommittedProgress) -> Self {
        let entry = &committed.entry;
        let durations = entry.durations;
        Self {
            query: committed.query.to_string(),
            batch_id: entry.batch_id.get(),
            timestamp: moment(committed.timestamp),
            events_in: entry.events_in,
            late_events: entry.late_events,
            duplicates: entry.duplicates,
            late_watermark: entry.late_watermark.to_string(),
            watermark: entry.watermark.to_string(),
            event_time: entry.event_time.map(|range| EventTimeBody {
                min: range.min.to_string(),
                max: range.max.to_string(),
                avg: range.avg.to_string(),
            }),
            rows_written: entry.rows_written,
            state: StateBody {
                windows: entry.state_windows,
                updated: entry.state_updated,
                removed: entry.state_removed,
            },
            position: PositionBody { from: entry.position_from.get(), to: entry.position_to.get() },
            duration_ms: DurationBody {
                read: millis(durations.read_us),
                compute: millis(durations.compute_us),
                commit: millis(durations.commit_us),
                total: millis(durations.total_us),
            },
            events_per_second: rate(entry.events_in, durations.total_us),
            closed_by: entry.closed_by(),
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a duration to read; microseconds of years fit exactly"
)]
fn millis(micros: i64) -> f64 {
    micros as f64 / 1_000.0
}

#[expect(clippy::cast_precision_loss, reason = "a rate to read")]
fn rate(events: i64, micros: i64) -> f64 {
    (events as f64 * 1_000_000.0 / micros.max(1) as f64).round()
}

/// Micro-batches of one query, newest first, kept for good.
#[utoipa::path(get, path = "/v1/queries/{name}/progress", tag = "reading",
    params(("name" = String, Path), ("limit" = Option<u32>, Query), ("cursor" = Option<String>, Query)),
    responses((status = 200, description = "A page of entries", body = ProgressPage, example = json!({"progress": [], "next_cursor": null})),
        (status = 400, description = "A parameter is wrong"), (status = 404, description = "No such query")))]
pub(super) async fn of_one(
    State(state): State<AppState>,
    Path(name): Path<String>,
    OriginalUri(uri): OriginalUri,
    params: Params,
) -> Result<Response, Problem> {
    let query = state.database().query(&query_name(&name)?).await?;
    entries(&state, &uri, params, Some(&query.name)).await
}

/// Micro-batches of all queries, or of one, newest first.
#[utoipa::path(get, path = "/v1/progress", tag = "reading",
    params(("query" = Option<String>, Query), ("limit" = Option<u32>, Query), ("cursor" = Option<String>, Query)),
    responses((status = 200, description = "A page of entries", body = ProgressPage, example = json!({"progress": [], "next_cursor": null})),
        (status = 400, description = "A parameter is wrong"), (status = 404, description = "No such query")))]
pub(super) async fn of_all(
    State(state): State<AppState>,
    OriginalUri(uri): OriginalUri,
    mut params: Params,
) -> Result<Response, Problem> {
    let query = match params.take("query") {
        Some(name) => Some(state.database().query(&query_name(&name)?).await?.name),
        None => None,
    };
    entries(&state, &uri, params, query.as_ref()).await
}

async fn entries(
    state: &AppState,
    uri: &axum::http::Uri,
    mut params: Params,
    query: Option<&QueryName>,
) -> Result<Response, Problem> {
    let limit = params.limit();
    let cursor = params.cursor::<(i64, String, i64)>().and_then(|(micros, query, batch_id)| {
        let timestamp = DateTime::<Utc>::from_timestamp_micros(micros)?;
        Some(ProgressCursor {
            timestamp,
            query: query.parse().ok()?,
            batch_id: BatchId::new(batch_id),
        })
    });
    params.finish()?;
    let mut entries = state.database().progress(query, cursor.as_ref(), limit + 1).await?;
    let next_cursor = cut_page(&mut entries, limit, |last| {
        (last.timestamp.timestamp_micros(), last.query.to_string(), last.entry.batch_id.get())
    });
    let progress = entries.iter().map(ProgressBody::from).collect();
    Ok(page(uri, next_cursor.clone().as_deref(), ProgressPage { progress, next_cursor }))
}
