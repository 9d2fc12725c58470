//! The words of the product: values that cannot be wrong once made.
//!
//! Every other module speaks in these types. Each has one way in, and that way checks; bare
//! strings and integers stay at the edges.
//!
//! Absent on purpose: a clock, a database, HTTP. Event times come from the events themselves.

mod access;
mod calendar;
#[cfg(feature = "defects")]
mod defect;
mod duplicate_key;
mod event;
mod fault;
mod ids;
mod lag;
mod money;
mod object;
mod origin;
mod percent;
mod query;
mod query_spec;
mod query_text;
mod span;
mod store_reach;
mod time;
mod window;

pub use access::{
    Expiry, Grant, InvalidExpiry, InvalidGrant, InvalidKeyId, KeyId, NewKey, Scope, UnknownScope,
    stores_of,
};
pub use calendar::{
    Calendar, DayStart, Granularity, InvalidDayStart, Period, UnknownGranularity, UnknownZone, Zone,
};
#[cfg(feature = "defects")]
pub use defect::Defect;
pub use duplicate_key::{DuplicateKey, KeyField, UnknownKeyField};
pub use event::{
    Attributes, ContentHash, Event, EventField, Heartbeat, IdentifiedEvent, LoggedEvent,
    UnknownField,
};
pub use fault::Fault;
pub use ids::{
    BatchId, CustomerId, EventId, InvalidText, KeyName, Note, OrderId, QueryName, Seq, Source,
    Status, StoreId, TillId,
};
pub use lag::Lag;
pub use money::{Amount, Currency, InvalidAmount, InvalidCurrency, Money, Revenue};
pub use object::Object;
pub use origin::{InvalidOrigin, Origin};
pub use percent::{InvalidPercent, Percent};
pub use query::{Filter, OutputMode, QuerySpec, Start, Trigger};
pub use query_text::{DeduplicateText, QuerySpecText, TriggerText, WindowText};
pub use span::{InvalidSpan, Span};
pub use store_reach::StoreReach;
pub use time::{EventTime, InvalidEventTime, InvalidRangeEnd, RangeEnd, Watermark};
pub use window::{ClosedBy, GroupKey, Totals, Window, WindowKey, WindowSpec};
