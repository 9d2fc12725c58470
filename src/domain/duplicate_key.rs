//! What makes two events the same to a query's duplicates rule.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::{Event, EventField};

/// A field of an event that a duplicates rule can name: any of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyField {
    /// `event_id`
    EventId,
    /// `order_id`
    OrderId,
    /// `amount`
    Amount,
    /// `currency`
    Currency,
    /// `event_time`
    EventTime,
    /// `item_count`
    ItemCount,
    /// One of those that can be filtered and grouped by as well.
    Field(EventField),
}

impl KeyField {
    /// The field's value in `event` as a text, equal for equal values; nothing where it has none.
    pub fn text_in(&self, event: &Event) -> Option<String> {
        match self {
            Self::EventId => Some(event.event_id.to_string()),
            Self::OrderId => Some(event.order_id.to_string()),
            Self::Amount => Some(event.amount.as_ten_thousandths().to_string()),
            Self::Currency => Some(event.currency.to_string()),
            Self::EventTime => Some(event.event_time.as_micros().to_string()),
            Self::ItemCount => event.item_count.map(|count| count.to_string()),
            Self::Field(field) => field.value_in(event).map(str::to_owned),
        }
    }
}

impl fmt::Display for KeyField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EventId => f.write_str("event_id"),
            Self::OrderId => f.write_str("order_id"),
            Self::Amount => f.write_str("amount"),
            Self::Currency => f.write_str("currency"),
            Self::EventTime => f.write_str("event_time"),
            Self::ItemCount => f.write_str("item_count"),
            Self::Field(field) => field.fmt(f),
        }
    }
}

/// A name that is no field of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "is no field of an event; the fields are `event_id`, `order_id`, `status`, `amount`, `currency`, \
     `event_time`, `customer_id`, `store_id`, `till_id`, `item_count` and `attributes.<name>` with a \
     name of 1 to 64 characters, none of them NUL"
)]
pub struct UnknownKeyField;

impl FromStr for KeyField {
    type Err = UnknownKeyField;

    fn from_str(text: &str) -> Result<Self, UnknownKeyField> {
        Ok(match text {
            "event_id" => Self::EventId,
            "order_id" => Self::OrderId,
            "amount" => Self::Amount,
            "currency" => Self::Currency,
            "event_time" => Self::EventTime,
            "item_count" => Self::ItemCount,
            _ => Self::Field(text.parse().map_err(|_| UnknownKeyField)?),
        })
    }
}

/// The values of a duplicates rule's fields in one event, as one text that is equal for equal
/// values. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DuplicateKey(Arc<str>);

impl DuplicateKey {
    /// The key with this text.
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// The key's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
