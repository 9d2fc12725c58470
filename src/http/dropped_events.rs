//! The ledger of dropped events: what a query read and did not (fully) count.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::dropped_table::{DroppedPages, dropped_columns};
use super::event_body::EventBody;
use super::figures::{WindowBody, moment_text};
use super::format::{Format, FormatParams, vary_by_accept};
use super::paging::{Page, PageParams};
use super::params::{NamedQuery, Params, Range};
use super::problem::Problem;
use super::problem_docs::FormatProblems;
use super::row_stream::{RowWriter, stream};
use super::stores::Stores;
use super::{App, examples, row_examples};
use crate::database::{DroppedEvent, DroppedSelection};
use crate::domain::Seq;

/// Documents how entries are picked.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "read by `list_dropped_events`; this documents it")]
pub(super) struct ReasonParams {
    /// Entries for this reason only: `late` or `duplicate`.
    #[param(pattern = "^(late|duplicate)$", example = "late")]
    reason: Option<String>,
}

/// List dropped events.
///
/// Every event that the query read and did not (fully) count, in the order of the raw log: why, which
/// windows it missed, the watermark that judged it, and how late it was. `from` and `to` mean event
/// times.
#[utoipa::path(get, path = "/v1/queries/{name}/dropped-events", tag = "Reading",
    params(NamedQuery, ReasonParams, Range, FormatParams, PageParams),
    responses(
        (status = 200, description = "A page of dropped events; as CSV or NDJSON all of them", content(
            (DroppedEventsAnswer = "application/json", example = json!(examples::dropped_events())),
            (String = "text/csv", example = json!(row_examples::dropped_events_csv())),
            (String = "application/x-ndjson", example = json!(row_examples::dropped_events_ndjson())))),
        FormatProblems))]
pub(super) async fn list_dropped_events(
    State(app): State<App>,
    stores: Stores,
    NamedQuery(name): NamedQuery,
    headers: HeaderMap,
    mut params: Params,
) -> Result<Response, Problem> {
    let reason = params.word("reason", &["late", "duplicate"]).map(str::to_owned);
    let format = Format::of(&mut params, &headers)?;
    let is_page = format == Format::Json || params.has("limit");
    let (Range { from, to }, page) = (params.range(), params.page::<SeqCursor>());
    let link = params.finish()?;
    let after = page.after.as_ref().map(|cursor| Seq::new(cursor.seq));
    // Of a query deleted in between, the list is merely empty.
    let query = app.database.query(&name).await?;
    let (query_id, reach) = (query.query_id, stores.of_query(&query)?);
    let selection = DroppedSelection { reason, from, to, reach, after, up_to: None };
    let writer = RowWriter::new(format, dropped_columns());
    if !is_page {
        let database = app.database.clone();
        let pages = DroppedPages { database, query_id, selection, is_done: false };
        return stream(&app, pages, writer).await;
    }
    let read = app.database.dropped_events(query_id, &selection, page.read_limit()).await?;
    let body = DroppedEventsAnswer::of(name.to_string(), read, &page);
    if format != Format::Json {
        return Ok(link.with(body.next_cursor.as_deref(), writer.answer(&body.dropped_events)));
    }
    Ok(vary_by_accept(link.answer(body.next_cursor.as_deref(), &body)))
}

/// Where a page of entries ended.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SeqCursor {
    seq: i64,
}

/// A page of dropped events.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DroppedEventsAnswer {
    /// Whose ledger.
    #[schema(example = "hourly_sales")]
    query: String,
    /// The entries, in the order of the raw log.
    dropped_events: Vec<DroppedEventBody>,
    /// What to ask the next page with; null at the end.
    next_cursor: Option<String>,
}

impl DroppedEventsAnswer {
    fn of(query: String, mut read: Vec<DroppedEvent>, page: &Page<SeqCursor>) -> Self {
        let next_cursor =
            page.cut(&mut read, |dropped| SeqCursor { seq: dropped.logged.seq.get() });
        let dropped_events = read.into_iter().map(DroppedEventBody::from).collect();
        Self { query, dropped_events, next_cursor }
    }
}

/// An event that missed one or more windows.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DroppedEvent)]
pub(super) struct DroppedEventBody {
    /// Its position in the raw log.
    pub(super) seq: i64,
    /// When it was received, by the database's clock.
    #[schema(format = DateTime)]
    pub(super) received_at: String,
    /// The event.
    pub(super) event: EventBody,
    /// Why it was dropped: `late` or `duplicate`.
    #[schema(example = "late")]
    pub(super) reason: String,
    /// The windows that it missed.
    pub(super) windows: Vec<WindowBody>,
    /// The watermark that judged it.
    #[schema(format = DateTime, example = "2026-10-01T10:30:00.000Z")]
    pub(super) watermark: String,
    /// How far it stood behind the newest event of the batches before.
    #[schema(example = "100 minutes")]
    pub(super) late_by: String,
    /// The batch that read it.
    pub(super) batch_id: i64,
}

impl From<DroppedEvent> for DroppedEventBody {
    fn from(dropped: DroppedEvent) -> Self {
        Self {
            seq: dropped.logged.seq.get(),
            received_at: moment_text(dropped.received_at),
            event: dropped.logged.event.into(),
            reason: dropped.reason,
            windows: dropped.windows.into_iter().map(WindowBody::from).collect(),
            watermark: dropped.watermark.to_string(),
            late_by: dropped.late_by.to_string(),
            batch_id: dropped.batch_id.get(),
        }
    }
}
