//! Each item → a checked event with its identity, or all that is wrong with it.

use super::attributes;
use super::cloud_event::{self, Given};
use super::faults::{FaultRoom, Faults, Quoted};
use super::fields::{Field, Fields};
use super::identity::Content;
use super::raw_json::Kind;
use super::values::Place as _;
use super::wire::{self, BodyError, BodyFormat, BodyLimits, Item, ItemForm};
use crate::domain::{
    Amount, Attributes, Currency, EventId, EventTime, Fault, IdentifiedEvent, InvalidText, OrderId,
};

/// What an event means by what it leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventDefaults {
    /// The currency of events that name none.
    pub currency: Currency,
}

/// An item that is no event, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the item is not an acceptable event; its faults: {}", faults.len())]
pub struct InvalidItem {
    /// The till's id for it, when that much could be read and is a valid id.
    pub event_id: Option<String>,
    /// All that is wrong with it; never empty.
    pub faults: Vec<Fault>,
}

impl InvalidItem {
    fn of(event_id: Option<EventId>, faults: Faults) -> Self {
        let event_id = event_id.map(|id| id.as_str().to_owned());
        Self { event_id, faults: faults.into_vec() }
    }
}

/// An item after its check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedItem {
    /// Its place in the body, from 0: of a list, or in lines.
    pub index: usize,
    /// The event, or all that is wrong.
    pub outcome: Result<IdentifiedEvent, InvalidItem>,
}

/// Takes a body apart and checks every item, in the order written. Of a body with very many
/// faults, the later items are told their first fault alone.
///
/// # Errors
/// [`BodyError`] says why the body as a whole cannot be read.
pub fn events(
    body: &[u8],
    format: BodyFormat,
    defaults: &EventDefaults,
    limits: &BodyLimits,
) -> Result<Vec<CheckedItem>, BodyError> {
    let mut room = FaultRoom::default();
    let check = |item: Item<'_>| {
        let mut outcome = event(&item, defaults, limits);
        if let Err(refused) = &mut outcome {
            room.bound(&mut refused.faults);
        }
        CheckedItem { index: item.index(), outcome }
    };
    Ok(wire::items(body, format, limits)?.into_iter().map(check).collect())
}

/// Checks one item and gives it its identity.
///
/// # Errors
/// [`InvalidItem`] lists every fault of the item, each with the place inside the item.
fn event(
    item: &Item<'_>,
    defaults: &EventDefaults,
    limits: &BodyLimits,
) -> Result<IdentifiedEvent, InvalidItem> {
    let mut faults = Faults::default();
    let Some(text) = text_of(item, limits, &mut faults) else {
        return Err(InvalidItem { event_id: None, faults: faults.into_vec() });
    };
    let (fields, given) = match item.form() {
        ItemForm::Event => (Fields::read(text, &mut faults), Given::default()),
        ItemForm::CloudEvent => cloud_event::read(text, &mut faults),
    };
    match fields {
        Some(fields) => Check { fields, given, faults }.event(defaults),
        None => Err(InvalidItem::of(given.event_id, faults)),
    }
}

/// The JSON text of an item, when there is one and it is not too long.
fn text_of<'body>(
    item: &Item<'body>,
    limits: &BodyLimits,
    faults: &mut Faults,
) -> Option<&'body str> {
    let text = match item.text() {
        Ok(text) => text,
        Err(fault) => {
            faults.push("", fault.code(), format_args!("{fault}"));
            return None;
        }
    };
    let (bytes, bytes_max) = (text.len(), limits.event_bytes_max);
    if bytes > bytes_max {
        let detail = format_args!("The item has {bytes} bytes; at most {bytes_max} are allowed");
        faults.push("", "too_large", detail);
        return None;
    }
    Some(text)
}

/// Reads the fields of one item and gathers their faults. Its methods answer `None` for a value
/// that is left out and for one at fault.
struct Check<'body> {
    fields: Fields<'body>,
    /// What stands outside the fields.
    given: Given,
    faults: Faults,
}

impl<'body> Check<'body> {
    fn event(mut self, defaults: &EventDefaults) -> Result<IdentifiedEvent, InvalidItem> {
        let event_id = self.event_id();
        let order_id = self.order_id();
        let status =
            self.required(Field::Status).and_then(|json| self.faults.id(Field::Status, json));
        let amount = self.amount();
        let event_time = self.event_time();
        let currency = self.currency(defaults);
        let store_id = self.optional_id(Field::StoreId);
        let till_id = self.optional_id(Field::TillId).or(self.given.till_id.take());
        let customer_id = self.optional_id(Field::CustomerId);
        let item_count = self.item_count();
        let attributes = self.attributes();
        match (order_id, status, amount, event_time) {
            (Some(order_id), Some(status), Some(amount), Some(event_time))
                if self.faults.is_empty() =>
            {
                let content = Content {
                    order_id,
                    status,
                    amount,
                    currency,
                    event_time,
                    store_id,
                    till_id,
                    customer_id,
                    item_count,
                    attributes,
                };
                Ok(content.identified_by(event_id))
            }
            _ => Err(InvalidItem::of(event_id, self.faults)),
        }
    }

    /// The JSON text of a field that must be there.
    fn required(&mut self, field: Field) -> Option<&'body str> {
        self.faults.required(field, self.fields.written(field))
    }

    fn optional_id<T>(&mut self, field: Field) -> Option<T>
    where
        T: TryFrom<String, Error = InvalidText>,
    {
        self.fields.value(field).and_then(|json| self.faults.id(field, json))
    }

    /// The id given from outside, or that of the field; two that differ are a fault.
    fn event_id(&mut self) -> Option<EventId> {
        let written = self.optional_id::<EventId>(Field::EventId);
        let Some(id) = self.given.event_id.take() else { return written };
        if let Some(other) = written.filter(|other| *other != id) {
            let (other, id) = (Quoted(other.as_str()), Quoted(id.as_str()));
            let detail = format_args!(
                "`event_id` is {other}, the `id` around it {id}; leave it out, or make them equal"
            );
            self.faults.push(Field::EventId.pointer(), "conflicting_fields", detail);
        }
        Some(id)
    }

    /// A string, or the digits of an integer as they stand.
    fn order_id(&mut self) -> Option<OrderId> {
        let field = Field::OrderId;
        let json = self.required(field)?;
        if Kind::of(json) != Kind::Number {
            return self.faults.id(field, json);
        }
        // `1.0`, `1e0` and `-0` are other spellings of a number; as text they would be other orders.
        if json.contains(['.', 'e', 'E']) || json == "-0" {
            let plain = "as a number it must be a plain integer; else write it as a string";
            let detail = format_args!("{field} is {}; {plain}", Quoted(json));
            self.faults.push(field.pointer(), "invalid", detail);
            return None;
        }
        self.faults.bounded(field, json.to_owned())
    }

    /// `amount`, or else `total`: from a string or a number, either way from its text.
    fn amount(&mut self) -> Option<Amount> {
        let (field, json) = match self.fields.value(Field::Total) {
            None => (Field::Amount, self.required(Field::Amount)?),
            Some(_) if self.fields.value(Field::Amount).is_some() => {
                let detail = format_args!("`total` is another name of `amount`; write one of them");
                self.faults.push(Field::Total.pointer(), "conflicting_fields", detail);
                return None;
            }
            Some(json) => (Field::Total, json),
        };
        if Kind::of(json) == Kind::Number {
            return self.faults.parsed(field, json);
        }
        let text = self.faults.text(field, json)?;
        self.faults.parsed(field, &text)
    }

    fn event_time(&mut self) -> Option<EventTime> {
        if let Some(given) = self.given.event_time {
            return given.read;
        }
        let json = self.required(Field::EventTime)?;
        self.faults.time(Field::EventTime, json)
    }

    /// The currency of the event; the default also stands in for one at fault, which is noted.
    fn currency(&mut self, defaults: &EventDefaults) -> Currency {
        let mut read = || {
            let json = self.fields.value(Field::Currency)?;
            let text = self.faults.text(Field::Currency, json)?;
            // Almost every event is in the service's own currency; that needs no look-up.
            if text == defaults.currency.code() {
                return None;
            }
            self.faults.parsed(Field::Currency, &text)
        };
        read().unwrap_or(defaults.currency)
    }

    fn item_count(&mut self) -> Option<i64> {
        let field = Field::ItemCount;
        let json = self.fields.value(field)?;
        if Kind::of(json) != Kind::Number {
            self.faults.wrong_type(field, json);
            return None;
        }
        let code = match json.parse::<i64>() {
            Ok(count) if count >= 0 => return Some(count),
            Err(_) if json.contains(['.', 'e', 'E']) => "invalid",
            Ok(_) | Err(_) => "out_of_range",
        };
        let right = "it must be a plain whole number, 0 or more, below 2^63";
        self.faults.push(
            field.pointer(),
            code,
            format_args!("{field} is {}; {right}", Quoted(json)),
        );
        None
    }

    fn attributes(&mut self) -> Attributes {
        let json = self.fields.value(Field::Attributes);
        json.and_then(|json| attributes::read(json, &mut self.faults)).unwrap_or_default()
    }
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
