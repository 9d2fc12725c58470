//! A body as items, in the order written.
//!
//! What makes the whole body unreadable is a [`BodyError`]; what is wrong inside one item is left
//! to [`validate`](super::validate), so that it costs nobody but that item. Items borrow the body,
//! and there are never more of them than the limit, however many the body has.

mod json;
mod ndjson;

pub use ndjson::UnreadableLine;

/// How deep lists and objects of a body may stand in one another, the outermost counted.
const DEPTH_MAX: usize = 128;

/// How much one body may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyLimits {
    /// The most events of one body.
    pub events_max: usize,
    /// The longest event, in bytes of its JSON text.
    pub event_bytes_max: usize,
}

impl Default for BodyLimits {
    /// 10,000 events of 64 KiB.
    fn default() -> Self {
        Self { events_max: 10_000, event_bytes_max: 64 * 1024 }
    }
}

/// How events are written in a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFormat {
    /// One event, an array of events, or `{"events": […]}`.
    Json,
    /// An event a line. Blank lines are no items, but count as lines.
    NdJson,
    /// One CloudEvent in structured mode.
    CloudEvent,
    /// An array of CloudEvents in structured mode.
    CloudEventBatch,
}

/// What an item ought to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ItemForm {
    #[default]
    Event,
    /// An event in the `data` of a CloudEvent.
    CloudEvent,
}

/// One item of a body: a JSON value, or a line that ought to be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Item<'body> {
    index: usize,
    text: Result<&'body str, UnreadableLine>,
    form: ItemForm,
}

impl<'body> Item<'body> {
    const fn of(index: usize, text: &'body str, form: ItemForm) -> Self {
        Self { index, text: Ok(text), form }
    }

    /// Its place in the body, from 0: among the values of a list, or in lines.
    pub(super) const fn index(&self) -> usize {
        self.index
    }

    /// Its JSON text as it was posted; that of a line is not checked yet.
    pub(super) const fn text(&self) -> Result<&'body str, UnreadableLine> {
        self.text
    }

    /// What it ought to be.
    pub(super) const fn form(&self) -> ItemForm {
        self.form
    }
}

/// Why a body could not be taken apart into items; nothing of it is stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// Not UTF-8.
    #[error("The body is not UTF-8: byte {position} belongs to no character")]
    NotUtf8 {
        /// The first byte that is wrong, counted from 0.
        position: usize,
    },
    /// A byte order mark comes first.
    #[error("The body begins with a byte order mark; JSON is sent without one (RFC 8259)")]
    ByteOrderMark,
    /// Not one JSON value.
    #[error("The body is not JSON: {detail}")]
    NotJson {
        /// What was found, with line and column.
        detail: String,
    },
    /// Lists and objects stand in one another too deep.
    #[error("The body is nested deeper than {max} levels; an event needs two")]
    TooDeep {
        /// How deep they may stand.
        max: usize,
    },
    /// More events than one body may hold.
    #[error("The body has {count} events; at most {max} are allowed, so send them in parts")]
    TooManyEvents {
        /// The events found.
        count: usize,
        /// The events allowed.
        max: usize,
    },
    /// A string, a number, a boolean or null.
    #[error("The body is {found}; send an event, an array of events or {{\"events\": […]}}")]
    NotAnEventList {
        /// What it is, with its article.
        found: String,
    },
    /// Something else than an object, sent as one CloudEvent.
    #[error(
        "The body is {found}; one CloudEvent is an object, and an array of them goes as \
         `application/cloudevents-batch+json`"
    )]
    NotACloudEvent {
        /// What it is, with its article.
        found: String,
    },
    /// Something else than an array, sent as a batch of CloudEvents.
    #[error(
        "The body is {found}; a batch is an array of CloudEvents, and one of them alone goes as \
         `application/cloudevents+json`"
    )]
    NotACloudEventBatch {
        /// What it is, with its article.
        found: String,
    },
    /// `events` is something else than an array.
    #[error("`events` must be an array of events")]
    EventsNotAnArray,
    /// `events` is written more than once.
    #[error("`events` is written more than once; write it once")]
    DuplicateEvents,
    /// Something else stands beside `events`.
    #[error("{name} stands beside `events`; only `events` may be there")]
    UnknownMember {
        /// The first other member, cut short where it is long, in backticks.
        name: String,
    },
}

impl From<serde_json::Error> for BodyError {
    fn from(error: serde_json::Error) -> Self {
        Self::NotJson { detail: error.to_string() }
    }
}

/// Takes a body apart into its items.
///
/// # Errors
/// [`BodyError`] says why the body as a whole cannot be read.
pub(super) fn items<'body>(
    body: &'body [u8],
    format: BodyFormat,
    limits: &BodyLimits,
) -> Result<Vec<Item<'body>>, BodyError> {
    if body.starts_with(b"\xEF\xBB\xBF") {
        return Err(BodyError::ByteOrderMark);
    }
    let text = || {
        std::str::from_utf8(body)
            .map_err(|error| BodyError::NotUtf8 { position: error.valid_up_to() })
    };
    match format {
        BodyFormat::Json => json::event_items(text()?, limits),
        BodyFormat::NdJson => ndjson::line_items(body, limits),
        BodyFormat::CloudEvent => json::cloud_event_item(text()?),
        BodyFormat::CloudEventBatch => json::cloud_event_items(text()?, limits),
    }
}
