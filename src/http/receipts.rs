//! Receipts: what became of one event, in words.

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::event_body::EventBody;
use super::figures::{WindowBody, moment_text};
use super::json::Json;
use super::params::{NamedEvent, NoParams};
use super::problem::Problem;
use super::problem_docs::EventProblems;
use super::problem_kind::ProblemKind;
use super::receipt_words::{outcome_word, reason};
use super::stores::Stores;
use super::{App, event_examples};
use crate::database::{Quarantined, QueryReceipt, Receipt};
use crate::domain::{BatchId, Event, Seq, Window};

/// Read an event's receipt.
///
/// The event, where it stands, and for each query that it matches: what became of it, in which windows,
/// by which batch, and why, in one plain sentence. Everything is read in one snapshot. To a key that is
/// bound to stores, an event of another store is not there.
#[utoipa::path(get, path = "/v1/events/{event_id}", tag = "Reading", params(NamedEvent),
    responses(
        (status = 200, description = "The receipt", body = ReceiptBody,
            example = json!(event_examples::receipt())),
        EventProblems))]
pub(super) async fn get_receipt(
    State(app): State<App>,
    stores: Stores,
    named: NamedEvent,
    _: NoParams,
) -> Result<Json<ReceiptBody>, Problem> {
    let event_id = named.or(ProblemKind::NoSuchEvent)?;
    let receipt = app.database.receipt(&event_id).await?;
    let receipt = receipt.and_then(|receipt| stores.see(receipt));
    let no_such_event = || {
        let detail = format!("No event `{event_id}` was ever stored.");
        Problem::new(ProblemKind::NoSuchEvent, detail)
    };
    receipt.map(|receipt| Json(receipt.into())).ok_or_else(no_such_event)
}

/// What became of an event.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Receipt)]
pub(super) struct ReceiptBody {
    /// The event as it stands in the log; while it does not, as it was posted.
    event: EventBody,
    /// When it was received, by the database's clock; of a released event, when it was released.
    #[schema(format = DateTime)]
    received_at: String,
    /// Its position in the raw log; null while it is in quarantine, and when it was rejected there.
    seq: Option<i64>,
    /// Its time in quarantine; null when it never was there.
    quarantine: Option<QuarantineFacts>,
    /// Each query that it matches and that had started before it, by name.
    queries: Vec<QueryReceiptBody>,
}

/// An event's time in quarantine.
#[derive(Debug, Serialize, ToSchema)]
struct QuarantineFacts {
    /// When the event was received first, by the database's clock.
    #[schema(format = DateTime)]
    received_at: String,
    /// Why it came into quarantine.
    reason: String,
    /// The time that the till gave it.
    #[schema(format = DateTime)]
    event_time: String,
    /// `release` or `reject`; null while it waits.
    action: Option<String>,
    /// When that was decided, by the database's clock.
    #[schema(format = DateTime)]
    resolved_at: Option<String>,
    /// Why, in the words of whoever decided.
    note: Option<String>,
}

/// What became of an event in one query.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = QueryReceipt)]
struct QueryReceiptBody {
    /// The query's name.
    #[schema(example = "hourly_sales")]
    query: String,
    /// `counted`, `late`, `duplicate`, `waiting` or `quarantined`.
    #[schema(example = "counted")]
    outcome: &'static str,
    /// The windows that the event counts in, or would count in; of sessions the one it is in now.
    windows: Vec<WindowBody>,
    /// The windows that it missed, being late or a duplicate.
    missed_windows: Vec<WindowBody>,
    /// The batch that read it; null when none has, or could.
    batch_id: Option<i64>,
    /// Why, in one sentence. Times of the event's own day (UTC) are clock times.
    #[schema(
        example = "counted: in the 09:00–10:00 window by batch 0; the window is final since batch 3"
    )]
    reason: String,
}

impl From<Receipt> for ReceiptBody {
    fn from(receipt: Receipt) -> Self {
        let Receipt { event, received_at, seq, quarantined, queries } = receipt;
        let queries = queries.into_iter().map(|query| QueryReceiptBody::of(query, &event));
        Self {
            queries: queries.collect(),
            event: event.into(),
            received_at: moment_text(received_at),
            seq: seq.map(Seq::get),
            quarantine: quarantined.map(QuarantineFacts::from),
        }
    }
}

impl From<Quarantined> for QuarantineFacts {
    fn from(entry: Quarantined) -> Self {
        let resolution = entry.resolution;
        Self {
            received_at: moment_text(entry.received_at),
            reason: entry.reason,
            event_time: entry.event.event_time.to_string(),
            resolved_at: resolution.as_ref().map(|one| moment_text(one.resolved_at)),
            action: resolution.as_ref().map(|one| one.action.clone()),
            note: resolution.map(|one| one.note),
        }
    }
}

impl QueryReceiptBody {
    fn of(query: QueryReceipt, event: &Event) -> Self {
        let bodies = |windows: Vec<Window>| windows.into_iter().map(WindowBody::from).collect();
        Self {
            reason: reason(&query, event),
            outcome: outcome_word(&query.outcome),
            query: query.name.to_string(),
            batch_id: query.batch_id.map(BatchId::get),
            windows: bodies(query.windows),
            missed_windows: bodies(query.missed_windows),
        }
    }
}
