//! The ledger of dropped events.

use std::collections::BTreeMap;

use axum::extract::{OriginalUri, Path, State};
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::bodies::{WindowBody, cut_page, moment, page};
use super::params::Params;
use super::problem::Problem;
use super::query_name;
use super::state::AppState;
use crate::database::{DroppedEvent, DroppedSelection};
use crate::domain::{Event, Money, Revenue, Seq};

/// An event as it stands in the raw log.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LoggedEvent)]
struct LoggedEventBody {
    seq: i64,
    received_at: String,
    #[schema(example = "1006-placed")]
    event_id: String,
    order_id: String,
    status: String,
    #[schema(example = "22.00")]
    amount: String,
    currency: String,
    #[schema(example = "2026-10-01T09:50:00Z")]
    event_time: String,
    store_id: Option<String>,
    till_id: Option<String>,
    customer_id: Option<String>,
    item_count: Option<i64>,
    attributes: BTreeMap<String, String>,
}

/// An event that the query read and did not (fully) count.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DroppedEvent)]
struct DroppedBody {
    event: LoggedEventBody,
    /// `late`.
    #[schema(example = "late")]
    reason: String,
    /// The windows that it missed.
    windows: Vec<WindowBody>,
    /// The watermark that judged it.
    watermark: String,
    /// How far it stood behind the newest event of the batches before.
    #[schema(example = "100 minutes")]
    late_by: String,
    /// The batch that read it.
    batch_id: i64,
}

/// Entries in the order of the raw log.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DroppedEventsPage)]
pub(super) struct DroppedPage {
    query: String,
    dropped_events: Vec<DroppedBody>,
    next_cursor: Option<String>,
}

impl From<&DroppedEvent> for DroppedBody {
    fn from(dropped: &DroppedEvent) -> Self {
        let Event { event_id, order_id, status, amount, currency, event_time, .. } =
            &dropped.logged.event;
        let event = &dropped.logged.event;
        let revenue = Revenue::ZERO.plus_amount(*amount);
        let logged = LoggedEventBody {
            seq: dropped.logged.seq.get(),
            received_at: moment(dropped.received_at),
            event_id: event_id.to_string(),
            order_id: order_id.to_string(),
            status: status.to_string(),
            amount: Money { revenue, currency: *currency }.to_string(),
            currency: currency.to_string(),
            event_time: event_time.to_string(),
            store_id: event.store_id.as_ref().map(ToString::to_string),
            till_id: event.till_id.as_ref().map(ToString::to_string),
            customer_id: event.customer_id.as_ref().map(ToString::to_string),
            item_count: event.item_count,
            attributes: event.attributes.as_map().clone(),
        };
        Self {
            event: logged,
            reason: dropped.reason.clone(),
            windows: dropped.windows.iter().map(WindowBody::from).collect(),
            watermark: dropped.watermark.to_string(),
            late_by: dropped.late_by.to_string(),
            batch_id: dropped.batch_id.get(),
        }
    }
}

/// Events that a query read and did not (fully) count, in the order of the raw log.
#[utoipa::path(get, path = "/v1/queries/{name}/dropped-events", tag = "reading",
    params(("name" = String, Path), ("reason" = Option<String>, Query, description = "`late` or `duplicate`"),
        ("from" = Option<String>, Query, description = "Events at or after this event time"),
        ("to" = Option<String>, Query, description = "Events before this event time"),
        ("limit" = Option<u32>, Query), ("cursor" = Option<String>, Query)),
    responses((status = 200, description = "A page of entries", body = DroppedPage,
            example = json!({"query": "hourly_sales", "dropped_events": [], "next_cursor": null})),
        (status = 400, description = "A parameter is wrong"), (status = 404, description = "No such query")))]
pub(super) async fn of_query(
    State(state): State<AppState>,
    Path(name): Path<String>,
    OriginalUri(uri): OriginalUri,
    mut params: Params,
) -> Result<Response, Problem> {
    let query = state.database().query(&query_name(&name)?).await?;
    let limit = params.limit();
    let (from, to) = params.range();
    let reason = params.word("reason", &["late", "duplicate"]);
    let after = params.cursor::<i64>().map(Seq::new);
    params.finish()?;
    let selection = DroppedSelection { reason, from, to, after };
    let mut entries =
        state.database().dropped_events(query.query_id, &selection, limit + 1).await?;
    let next_cursor = cut_page(&mut entries, limit, |last| last.logged.seq.get());
    let body = DroppedPage {
        query: query.name.to_string(),
        dropped_events: entries.iter().map(DroppedBody::from).collect(),
        next_cursor: next_cursor.clone(),
    };
    Ok(page(&uri, next_cursor.as_deref(), body))
}
