//! The parts that many answers share: money, group keys, moments.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use crate::domain::{
    Amount, Currency, EventField, EventTime, GroupKey, Lag, Money, Revenue, Span, Totals, Window,
};

/// A count of orders and their money.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Figures {
    /// How many events were counted; in a difference it may be negative.
    #[schema(example = 3)]
    pub(super) orders: i64,
    /// The exact sum of their amounts, in the `currency` that stands beside or above it.
    #[schema(example = "68.50")]
    pub(super) revenue: String,
}

impl Figures {
    /// These totals in words of the API.
    pub(super) fn of(totals: Totals, currency: Currency) -> Self {
        let revenue = Money { revenue: totals.revenue, currency }.to_string();
        Self { orders: totals.orders, revenue }
    }
}

/// An amount of one event, as a decimal string.
pub(super) fn amount_text(amount: Amount, currency: Currency) -> String {
    Money { revenue: Revenue::ZERO.plus_amount(amount), currency }.to_string()
}

/// A moment of the database's clock: RFC 3339 in UTC with microseconds.
pub(super) fn moment_text(moment: DateTime<Utc>) -> String {
    moment.to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// A length of time in whole milliseconds, at most 3,660 days: `90 seconds`, `1 hour`, `2 days`, or ISO 8601,
/// `PT1H`.
#[derive(Debug, ToSchema)]
#[schema(
    as = DurationText,
    pattern = r"^([0-9]+ (week|day|hour|minute|second|millisecond)s?|P([0-9]+W)?([0-9]+D)?(T([0-9]+H)?([0-9]+M)?([0-9]+(\.[0-9]+)?S)?)?)$",
    example = "1 hour"
)]
#[expect(dead_code, reason = "read as `Span`; this documents it")]
pub(super) struct DurationText(String);

/// A length of time, for people and for programs.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Duration)]
pub(super) struct DurationBody {
    /// In the largest unit that divides it; after a `-` when it is less than nothing.
    #[schema(example = "5 minutes")]
    duration: String,
    /// In whole milliseconds.
    #[schema(example = 300_000)]
    ms: i64,
}

impl From<Lag> for DurationBody {
    fn from(lag: Lag) -> Self {
        Self { duration: lag.to_string(), ms: lag.as_millis() }
    }
}

impl From<Span> for DurationBody {
    fn from(span: Span) -> Self {
        Lag::from_millis(span.as_millis()).into()
    }
}

/// The bounds of a window, half-open.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Window)]
pub(super) struct WindowBody {
    /// The first moment inside.
    #[schema(format = DateTime, example = "2026-10-01T09:00:00Z")]
    start: String,
    /// The first moment after.
    #[schema(format = DateTime, example = "2026-10-01T10:00:00Z")]
    end: String,
}

impl WindowBody {
    /// The bounds as an ISO 8601 interval.
    pub(super) fn interval(&self) -> String {
        format!("{}/{}", self.start, self.end)
    }
}

impl From<Window> for WindowBody {
    fn from(Window { start, end }: Window) -> Self {
        Self { start: start.to_string(), end: end.to_string() }
    }
}

/// A half-open range; of windows that are folded, from the start of the first window in it to the end of
/// the last.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Range)]
pub(super) struct RangeBody {
    /// The first moment inside; null: from the beginning.
    #[schema(format = DateTime)]
    from: Option<String>,
    /// The first moment no longer inside; null: to the end.
    #[schema(format = DateTime)]
    to: Option<String>,
}

impl RangeBody {
    /// The range in UTC.
    pub(super) fn of(from: Option<EventTime>, to: Option<EventTime>) -> Self {
        let text = |time: EventTime| time.to_string();
        Self { from: from.map(text), to: to.map(text) }
    }
}

/// The values of a query's group-by fields, each a member under the field's name; null where the
/// events have none.
#[derive(Debug)]
pub(super) struct GroupMembers(Vec<(String, Option<String>)>);

/// The fields of the query's `group_by`, each under its name; an attribute is `attributes.<name>`.
#[derive(Debug, ToSchema)]
#[schema(as = GroupMembers)]
#[expect(dead_code, reason = "written by `GroupMembers`; these fields document it")]
pub(super) struct GroupMembersSchema {
    /// The shop.
    #[schema(example = "S1")]
    store_id: Option<String>,
    /// The till.
    till_id: Option<String>,
    /// Who bought.
    customer_id: Option<String>,
}

impl GroupMembers {
    /// The values of `key` under the names of `fields`.
    pub(super) fn of(fields: &[EventField], key: &GroupKey) -> Self {
        let names = fields.iter().map(EventField::to_string);
        Self(names.zip(key.0.iter().cloned()).collect())
    }

    /// The value of the field that is the `index`-th of the query's.
    pub(super) fn value(&self, index: usize) -> Option<&str> {
        self.0.get(index).and_then(|(_, value)| value.as_deref())
    }
}

impl GroupMembers {
    /// The same in a body that has a `status` of its own: that of the events is `event_status`.
    pub(super) fn beside_a_status(fields: &[EventField], key: &GroupKey) -> Self {
        let name = |field: &EventField| match field {
            EventField::Status => "event_status".to_owned(),
            field => field.to_string(),
        };
        Self(fields.iter().map(name).zip(key.0.iter().cloned()).collect())
    }
}

impl Serialize for GroupMembers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}
