//! Events in JSON: as they are posted (described here, read by `intake`), and as they are answered.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::schema::{Object, ObjectBuilder, SchemaType, Type};

use super::figures::amount_text;
use crate::domain::{CustomerId, Event, StoreId, TillId};

/// One event, an array of events, or an object with `events`.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = PostEvents)]
#[expect(dead_code, reason = "read by intake; this describes what it reads")]
pub(super) enum EventsBody {
    /// One event.
    One(Box<PostedEvent>),
    /// Many events.
    Array(Vec<PostedEvent>),
    /// Many events, in an object.
    Object {
        /// The events.
        events: Vec<PostedEvent>,
    },
}

/// What a till posts of one event.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PostEvent)]
pub(super) struct PostedEvent {
    /// Made by the till, the same on every retry. Left out: a hash of the content.
    #[schema(min_length = 1, max_length = 200, example = "till-7-000123")]
    event_id: Option<String>,
    #[schema(schema_with = order_id)]
    order_id: String,
    /// `placed`, `paid`, `shipped`, `cancelled`, `refunded`, or any other word.
    #[schema(min_length = 1, max_length = 64, example = "placed")]
    status: String,
    #[schema(schema_with = amount)]
    amount: String,
    /// RFC 3339 with `Z` or an offset.
    #[schema(format = DateTime, example = "2026-10-01T09:05:00Z")]
    event_time: String,
    /// ISO 4217. Left out: the currency of the service.
    #[schema(pattern = "^[A-Z]{3}$", example = "USD")]
    currency: Option<String>,
    /// Who bought.
    #[schema(min_length = 1, max_length = 200, example = "C-52")]
    customer_id: Option<String>,
    /// The shop.
    #[schema(min_length = 1, max_length = 200, example = "S1")]
    store_id: Option<String>,
    /// The till.
    #[schema(min_length = 1, max_length = 200, example = "till-7")]
    till_id: Option<String>,
    /// How many items were sold.
    #[schema(minimum = 0, example = 2)]
    item_count: Option<i64>,
    /// Anything else, as texts: at most 32.
    attributes: Option<BTreeMap<String, String>>,
}

fn order_id() -> Object {
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::String, Type::Integer]))
        .description(Some("A string, or an integer that is kept as text."))
        .min_length(Some(1))
        .max_length(Some(200))
        .examples(["1001"])
        .build()
}

fn amount() -> Object {
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::String, Type::Number]))
        .description(Some(
            "A decimal string, or a number, which is read from its text: up to 4 decimals, magnitude below \
             10^14, negative for a refund. `total` is an alias.",
        ))
        .pattern(Some(r"^-?[0-9]+(\.[0-9]+)?$"))
        .examples(["20.00"])
        .build()
}

/// A CloudEvent 1.0 in structured mode. Extension attributes may stand beside these.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PostCloudEvent)]
pub(super) struct CloudEventBody {
    /// `1.0`.
    #[schema(pattern = r"^1\.0$", example = "1.0")]
    specversion: String,
    /// The id of the event, the same on every retry.
    #[schema(min_length = 1, max_length = 200, example = "1001-placed")]
    id: String,
    /// The till, where `data` names none; then at most 200 characters.
    #[schema(min_length = 1, example = "till-7")]
    source: String,
    /// Any word; the `status` in `data` counts.
    #[serde(rename = "type")]
    #[schema(min_length = 1, example = "com.example.order.placed")]
    event_type: String,
    /// The event time, where `data` names none.
    #[schema(format = DateTime, example = "2026-10-01T09:05:00Z")]
    time: Option<String>,
    /// Not kept.
    #[schema(min_length = 1)]
    subject: Option<String>,
    /// Not kept.
    #[schema(min_length = 1)]
    dataschema: Option<String>,
    /// A JSON type.
    #[schema(example = "application/json")]
    datacontenttype: Option<String>,
    /// The event. Its `event_time` may be left out when there is a `time`.
    data: PostedEvent,
}

/// An event as it stands in the raw log, defaults filled in.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Event)]
pub(super) struct EventBody {
    /// Made by the till, or a hash of the content.
    pub(super) event_id: String,
    /// The order.
    pub(super) order_id: String,
    /// What happened to it.
    pub(super) status: String,
    /// The money, a decimal string.
    #[schema(example = "22.00")]
    pub(super) amount: String,
    /// ISO 4217.
    #[schema(example = "USD")]
    pub(super) currency: &'static str,
    /// When it happened, by the till's clock.
    #[schema(format = DateTime, example = "2026-10-01T09:50:00Z")]
    pub(super) event_time: String,
    /// Who bought.
    pub(super) customer_id: Option<String>,
    /// The shop.
    pub(super) store_id: Option<String>,
    /// The till.
    pub(super) till_id: Option<String>,
    /// How many items were sold.
    pub(super) item_count: Option<i64>,
    /// Anything else.
    pub(super) attributes: BTreeMap<String, String>,
}

impl From<Event> for EventBody {
    fn from(event: Event) -> Self {
        Self {
            event_id: event.event_id.to_string(),
            order_id: event.order_id.to_string(),
            status: event.status.to_string(),
            amount: amount_text(event.amount, event.currency),
            currency: event.currency.code(),
            event_time: event.event_time.to_string(),
            customer_id: event.customer_id.as_ref().map(CustomerId::to_string),
            store_id: event.store_id.as_ref().map(StoreId::to_string),
            till_id: event.till_id.as_ref().map(TillId::to_string),
            item_count: event.item_count,
            attributes: event.attributes.as_map().clone(),
        }
    }
}
