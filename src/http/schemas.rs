//! Shapes of request bodies, for the OpenAPI document; the checks are `intake`'s and `domain`'s.
#![expect(dead_code, reason = "these types only describe what is read elsewhere")]

use std::collections::BTreeMap;

use utoipa::ToSchema;

/// An order event as a till posts it.
#[derive(Debug, ToSchema)]
#[schema(as = Event)]
pub(super) struct EventSchema {
    /// Made by the till, the same on every retry. Left out: a hash of the content.
    #[schema(min_length = 1, max_length = 200, example = "1001-placed", nullable)]
    event_id: Option<String>,
    /// The order, a string or an integer; kept as text.
    #[schema(value_type = OrderIdSchema, example = "1001")]
    order_id: String,
    /// What happened: `placed`, `paid`, `shipped`, `cancelled`, `refunded`, … any word.
    #[schema(min_length = 1, max_length = 64, example = "placed")]
    status: String,
    /// A plain decimal with up to 4 decimals, as a string or a number; negative for a refund.
    #[schema(value_type = AmountSchema, example = "20.00")]
    amount: String,
    /// RFC 3339 with an offset, from 1900 to 2199.
    #[schema(format = DateTime, example = "2026-10-01T09:05:00Z")]
    event_time: String,
    /// ISO 4217; the service's unless given.
    #[schema(example = "USD", nullable)]
    currency: Option<String>,
    /// The shop.
    #[schema(min_length = 1, max_length = 200, nullable)]
    store_id: Option<String>,
    /// The till.
    #[schema(min_length = 1, max_length = 200, nullable)]
    till_id: Option<String>,
    /// The customer.
    #[schema(min_length = 1, max_length = 200, nullable)]
    customer_id: Option<String>,
    /// How many items.
    #[schema(minimum = 0, nullable)]
    item_count: Option<i64>,
    /// At most 32 texts, names of 1 to 64 characters, values of at most 256.
    #[schema(nullable)]
    attributes: Option<BTreeMap<String, String>>,
}

/// A string or an integer.
#[derive(Debug, ToSchema)]
#[schema(as = OrderId)]
#[serde(untagged)]
pub(super) enum OrderIdSchema {
    /// As it is.
    Text(String),
    /// Kept as its text.
    Number(i64),
}

/// A decimal string or a number, read from its text.
#[derive(Debug, ToSchema)]
#[schema(as = Amount)]
#[serde(untagged)]
pub(super) enum AmountSchema {
    /// The better choice: no library on the way can round it.
    Text(String),
    /// A plain decimal, without an exponent.
    Number(f64),
}

/// A list of events under a name.
#[derive(Debug, ToSchema)]
#[schema(as = EventsEnvelope)]
pub(super) struct EnvelopeSchema {
    /// At most 10,000 unless set otherwise.
    events: Vec<EventSchema>,
}

/// One event, an array of events, or `{"events": […]}`.
#[derive(Debug, ToSchema)]
#[schema(as = Events)]
#[serde(untagged)]
pub(super) enum EventsSchema {
    /// One.
    One(Box<EventSchema>),
    /// Several.
    Several(Vec<EventSchema>),
    /// Several under a name.
    Envelope(EnvelopeSchema),
}

/// The rule of a query.
#[derive(Debug, ToSchema)]
#[schema(as = QuerySpec)]
pub(super) struct QuerySpecSchema {
    /// Field → the values that pass: `store_id`, `till_id`, `customer_id`, `status`, `attributes.<name>`.
    filter: BTreeMap<String, Vec<String>>,
    /// The windows.
    window: WindowSchema,
    /// How far behind the newest event the watermark stays.
    #[schema(example = "1 hour")]
    watermark_delay: String,
    /// One row per value of these fields.
    group_by: Vec<String>,
    /// Not yet: leave it out.
    #[schema(nullable, value_type = Option<Object>)]
    deduplicate: Option<String>,
    /// `append`, `update` or `complete`.
    #[schema(example = "append")]
    output_mode: String,
    /// When it runs.
    trigger: TriggerSchema,
    /// The most records that one micro-batch reads, matching or not.
    #[schema(minimum = 1, maximum = 1_000_000, example = 100_000)]
    max_events_per_batch: u32,
    /// `earliest` or `latest`; counts only at creation.
    #[schema(example = "earliest")]
    start: String,
    /// Not yet: leave it out.
    #[schema(nullable)]
    idle_timeout: Option<String>,
}

/// Windows side by side; `sliding` and `session` are not taken yet.
#[derive(Debug, ToSchema)]
#[schema(as = WindowSpec)]
pub(super) struct WindowSchema {
    /// `tumbling`.
    #[schema(example = "tumbling")]
    kind: String,
    /// A duration.
    #[schema(example = "1 hour")]
    size: String,
    /// A duration below `size`.
    #[schema(example = "0 seconds")]
    offset: String,
}

/// When a query runs.
#[derive(Debug, ToSchema)]
#[schema(as = Trigger)]
pub(super) struct TriggerSchema {
    /// `continuous`, `interval` or `manual`.
    #[schema(example = "continuous")]
    kind: String,
    /// The interval, for `interval` only.
    #[schema(example = "5 seconds", nullable)]
    every: Option<String>,
}
