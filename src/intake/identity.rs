//! What makes an event the same event: the till's id for it, or else a hash of what it says.

use sha2::{Digest, Sha256};

use crate::domain::{
    Amount, Attributes, ContentHash, Currency, CustomerId, Event, EventId, EventTime,
    IdentifiedEvent, OrderId, Status, StoreId, TillId,
};

/// Stands before the fields, so that another encoding could never hash the same.
const ENCODING: &[u8] = b"tillmark event 1";

/// All that an event says, its id apart, defaults filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) order_id: OrderId,
    pub(super) status: Status,
    pub(super) amount: Amount,
    pub(super) currency: Currency,
    pub(super) event_time: EventTime,
    pub(super) store_id: Option<StoreId>,
    pub(super) till_id: Option<TillId>,
    pub(super) customer_id: Option<CustomerId>,
    pub(super) item_count: Option<i64>,
    pub(super) attributes: Attributes,
}

impl Content {
    /// The event under the till's id for it, or else under `sha256:<hash of the content>`.
    pub(super) fn identified_by(self, event_id: Option<EventId>) -> IdentifiedEvent {
        let content_hash = self.hash();
        let event = Event {
            event_id: event_id.unwrap_or_else(|| id_of(content_hash)),
            order_id: self.order_id,
            status: self.status,
            amount: self.amount,
            currency: self.currency,
            event_time: self.event_time,
            store_id: self.store_id,
            till_id: self.till_id,
            customer_id: self.customer_id,
            item_count: self.item_count,
            attributes: self.attributes,
        };
        IdentifiedEvent { event, content_hash }
    }

    /// What tells a retry from a conflict: SHA-256 of the fields in a fixed order. Every text has its length before it and every
    /// optional field a byte that says whether it is there, so no two contents encode the same.
    fn hash(&self) -> ContentHash {
        let mut content = Encoding::begin();
        content.text(self.order_id.as_str());
        content.text(self.status.as_str());
        content.number(self.amount.as_ten_thousandths());
        content.text(self.currency.code());
        content.number(self.event_time.as_micros());
        content.optional(self.store_id.as_ref().map(StoreId::as_str), Encoding::text);
        content.optional(self.till_id.as_ref().map(TillId::as_str), Encoding::text);
        content.optional(self.customer_id.as_ref().map(CustomerId::as_str), Encoding::text);
        content.optional(self.item_count, Encoding::number);
        content.length(self.attributes.as_map().len());
        for (name, value) in self.attributes.as_map() {
            content.text(name);
            content.text(value);
        }
        ContentHash(Sha256::digest(content.0).into())
    }
}

/// The id of an event that came without one (api.md, "Ingest").
fn id_of(content_hash: ContentHash) -> EventId {
    EventId::try_from(format!("sha256:{content_hash}"))
        .expect("71 plain characters are within the 200 of an id")
}

/// Fields one after the other, each written so that its end is known from its beginning.
///
/// Gathered before they are hashed: one long piece hashes faster than many short ones.
struct Encoding(Vec<u8>);

impl Encoding {
    /// Nothing but what tells this encoding from others.
    fn begin() -> Self {
        let mut bytes = Vec::with_capacity(512);
        bytes.extend_from_slice(ENCODING);
        Self(bytes)
    }

    fn text(&mut self, text: &str) {
        self.length(text.len());
        self.0.extend_from_slice(text.as_bytes());
    }

    fn length(&mut self, length: usize) {
        self.0.extend_from_slice(&(length as u64).to_be_bytes());
    }

    fn number(&mut self, number: i64) {
        self.0.extend_from_slice(&number.to_be_bytes());
    }

    fn optional<T>(&mut self, value: Option<T>, present: fn(&mut Self, T)) {
        self.0.push(u8::from(value.is_some()));
        if let Some(value) = value {
            present(self, value);
        }
    }
}

#[cfg(test)]
#[path = "identity_tests.rs"]
mod tests;
