//! Order events, and their fields as queries name them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::{
    Amount, Currency, CustomerId, EventId, EventTime, OrderId, Seq, Source, Status, StoreId, TillId,
};

/// Whatever else a till says of an event: at most 32 texts, names of 1 to 64 characters, values of
/// at most 256.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attributes(BTreeMap<String, String>);

impl Attributes {
    /// The most attributes that one event may have.
    pub const COUNT_MAX: usize = 32;
    /// The longest name, in characters.
    pub const NAME_CHARS_MAX: usize = 64;
    /// The longest value, in characters.
    pub const VALUE_CHARS_MAX: usize = 256;

    /// These attributes, unless they are too many, too long, or hold NUL.
    pub fn new(values: BTreeMap<String, String>) -> Option<Self> {
        let fits = values.len() <= Self::COUNT_MAX
            && values.iter().all(|(name, value)| {
                let value_fits = value.chars().count() <= Self::VALUE_CHARS_MAX;
                Self::is_name(name) && value_fits && !value.contains('\0')
            });
        fits.then_some(Self(values))
    }

    /// Whether an attribute can have this name.
    fn is_name(name: &str) -> bool {
        (1..=Self::NAME_CHARS_MAX).contains(&name.chars().count()) && !name.contains('\0')
    }

    /// The value of one attribute.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// All of them, by name.
    pub const fn as_map(&self) -> &BTreeMap<String, String> {
        &self.0
    }
}

/// What happened to one order at one moment, as a till posted it, defaults filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Made by the till, or a hash of the content.
    pub event_id: EventId,
    /// The order.
    pub order_id: OrderId,
    /// What happened to it.
    pub status: Status,
    /// The money.
    pub amount: Amount,
    /// Of what currency.
    pub currency: Currency,
    /// When it happened, by the till's clock.
    pub event_time: EventTime,
    /// Where.
    pub store_id: Option<StoreId>,
    /// At which till.
    pub till_id: Option<TillId>,
    /// For whom.
    pub customer_id: Option<CustomerId>,
    /// How many items, 0 or more.
    pub item_count: Option<i64>,
    /// Anything else.
    pub attributes: Attributes,
}

/// What an event says, as a SHA-256 of its content without its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContentHash(pub [u8; 32]);

impl fmt::Display for ContentHash {
    /// Lower-case hexadecimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A checked event with the hash that tells a retry from a conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentifiedEvent {
    /// The event; its id is what identifies it.
    pub event: Event,
    /// What it says besides its id.
    pub content_hash: ContentHash,
}

/// An event at its place in the raw log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedEvent {
    /// Where it stands.
    pub seq: Seq,
    /// What it says.
    pub event: Event,
}

/// A source's word that nothing older than `event_time` will come from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heartbeat {
    /// Who says so.
    pub source: Source,
    /// Up to when it has nothing more to say.
    pub event_time: EventTime,
}

/// A field of an event that a query can filter and group by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventField {
    /// `store_id`
    StoreId,
    /// `till_id`
    TillId,
    /// `customer_id`
    CustomerId,
    /// `status`
    Status,
    /// `attributes.<name>`
    Attribute(String),
}

impl EventField {
    /// The field's value in `event`, if it has one.
    pub fn value_in<'event>(&self, event: &'event Event) -> Option<&'event str> {
        match self {
            Self::StoreId => event.store_id.as_ref().map(StoreId::as_str),
            Self::TillId => event.till_id.as_ref().map(TillId::as_str),
            Self::CustomerId => event.customer_id.as_ref().map(CustomerId::as_str),
            Self::Status => Some(event.status.as_str()),
            Self::Attribute(name) => event.attributes.get(name),
        }
    }

    /// Its place among the fields of a query's `group_by`, if it is one of them.
    pub fn place_in(&self, group_by: &[Self]) -> Option<usize> {
        group_by.iter().position(|field| field == self)
    }
}

impl fmt::Display for EventField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StoreId => f.write_str("store_id"),
            Self::TillId => f.write_str("till_id"),
            Self::CustomerId => f.write_str("customer_id"),
            Self::Status => f.write_str("status"),
            Self::Attribute(name) => write!(f, "attributes.{name}"),
        }
    }
}

/// A name that is no field a query can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "is none of `store_id`, `till_id`, `customer_id`, `status` and `attributes.<name>` with a name of \
     1 to 64 characters, none of them NUL"
)]
pub struct UnknownField;

impl FromStr for EventField {
    type Err = UnknownField;

    fn from_str(text: &str) -> Result<Self, UnknownField> {
        match text {
            "store_id" => Ok(Self::StoreId),
            "till_id" => Ok(Self::TillId),
            "customer_id" => Ok(Self::CustomerId),
            "status" => Ok(Self::Status),
            _ => match text.strip_prefix("attributes.") {
                Some(name) if Attributes::is_name(name) => Ok(Self::Attribute(name.to_owned())),
                Some(_) | None => Err(UnknownField),
            },
        }
    }
}
