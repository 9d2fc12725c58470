//! One item → a checked event with its identity, or all that is wrong with it.

use std::borrow::Cow;
use std::str::FromStr;

use super::attributes;
use super::faults::{Coded, Faults, Quoted};
use super::fields::{Field, Fields};
use super::identity::Content;
use super::raw_json::{Kind, text_of_string};
use super::wire::{BodyLimits, Item};
use crate::domain::{
    Amount, Attributes, Currency, EventTime, Fault, IdentifiedEvent, InvalidText, OrderId,
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

/// Checks one item and gives it its identity.
///
/// # Errors
/// [`InvalidItem`] lists every fault of the item, each with the place inside the item.
pub fn event(
    item: &Item<'_>,
    defaults: &EventDefaults,
    limits: &BodyLimits,
) -> Result<IdentifiedEvent, InvalidItem> {
    let mut faults = Faults::default();
    let (bytes, bytes_max) = (item.text().len(), limits.event_bytes_max);
    if bytes > bytes_max {
        let detail = format_args!("The item has {bytes} bytes; at most {bytes_max} are allowed");
        faults.push("", "too_large", detail);
        return Err(InvalidItem { event_id: None, faults: faults.into_vec() });
    }
    match Fields::read(item.text(), &mut faults) {
        Some(fields) => Check { fields, faults }.event(defaults),
        None => Err(InvalidItem { event_id: None, faults: faults.into_vec() }),
    }
}

/// Reads the fields of one item and gathers their faults. Its methods answer `None` for a value
/// that is left out and for one at fault.
struct Check<'body> {
    fields: Fields<'body>,
    faults: Faults,
}

impl<'body> Check<'body> {
    fn event(mut self, defaults: &EventDefaults) -> Result<IdentifiedEvent, InvalidItem> {
        let event_id = self.optional_id(Field::EventId);
        let order_id = self.order_id();
        let status = self.required(Field::Status).and_then(|json| self.id(Field::Status, json));
        let amount = self.amount();
        let event_time = self.event_time();
        let currency = self.currency(defaults);
        let store_id = self.optional_id(Field::StoreId);
        let till_id = self.optional_id(Field::TillId);
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
            _ => Err(InvalidItem {
                event_id: event_id.map(|id| id.as_str().to_owned()),
                faults: self.faults.into_vec(),
            }),
        }
    }

    /// The JSON text of a field that must be there.
    fn required(&mut self, field: Field) -> Option<&'body str> {
        let value = self.fields.value(field);
        if value.is_none() {
            let is_null = self.fields.written(field).is_some();
            let how = if is_null { "is null, but it is required" } else { "is required" };
            let detail = format_args!("{field} {how}: {}", field.right_value());
            self.faults.push(field.pointer(), "missing", detail);
        }
        value
    }

    /// Notes that a value is of another JSON type than the field has.
    fn wrong_type(&mut self, field: Field, json: &str) {
        let (kind, right) = (Kind::of(json), field.right_value());
        let so = match (field, kind) {
            (Field::EventTime, Kind::Number) => "epoch numbers are refused, write",
            _ => "it must be",
        };
        let detail = format_args!("{field} is {kind}; {so} {right}");
        self.faults.push(field.pointer(), "wrong_type", detail);
    }

    /// The text of a field that must be a string.
    fn text(&mut self, field: Field, json: &'body str) -> Option<Cow<'body, str>> {
        if Kind::of(json) != Kind::String {
            self.wrong_type(field, json);
            return None;
        }
        text_of_string(json)
            .map_err(|fault| {
                self.faults.push(field.pointer(), "invalid", format_args!("{field} {fault}"));
            })
            .ok()
    }

    /// An id or a word of the domain: a string of bounded length.
    fn id<T>(&mut self, field: Field, json: &'body str) -> Option<T>
    where
        T: TryFrom<String, Error = InvalidText>,
    {
        let text = self.text(field, json)?;
        self.bounded(field, text.into_owned())
    }

    fn optional_id<T>(&mut self, field: Field) -> Option<T>
    where
        T: TryFrom<String, Error = InvalidText>,
    {
        self.fields.value(field).and_then(|json| self.id(field, json))
    }

    fn bounded<T>(&mut self, field: Field, text: String) -> Option<T>
    where
        T: TryFrom<String, Error = InvalidText>,
    {
        T::try_from(text)
            .map_err(|fault| {
                self.faults.push(field.pointer(), fault.code(), format_args!("{field} {fault}"));
            })
            .ok()
    }

    /// A value whose domain type reads it from text.
    fn parsed<T>(&mut self, field: Field, text: &str) -> Option<T>
    where
        T: FromStr<Err: Coded>,
    {
        if text.is_empty() {
            let detail = format_args!("{field} is empty; it must be {}", field.right_value());
            self.faults.push(field.pointer(), "empty", detail);
            return None;
        }
        text.parse()
            .map_err(|fault: T::Err| {
                let detail = format_args!("{field} {} {fault}", Quoted(text));
                self.faults.push(field.pointer(), fault.code(), detail);
            })
            .ok()
    }

    /// A string, or the digits of an integer as they stand.
    fn order_id(&mut self) -> Option<OrderId> {
        let field = Field::OrderId;
        let json = self.required(field)?;
        if Kind::of(json) != Kind::Number {
            return self.id(field, json);
        }
        // `1.0`, `1e0` and `-0` are other spellings of a number; as text they would be other orders.
        if json.contains(['.', 'e', 'E']) || json == "-0" {
            let plain = "as a number it must be a plain integer; else write it as a string";
            let detail = format_args!("{field} is {}; {plain}", Quoted(json));
            self.faults.push(field.pointer(), "invalid", detail);
            return None;
        }
        self.bounded(field, json.to_owned())
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
            return self.parsed(field, json);
        }
        let text = self.text(field, json)?;
        self.parsed(field, &text)
    }

    fn event_time(&mut self) -> Option<EventTime> {
        let json = self.required(Field::EventTime)?;
        let text = self.text(Field::EventTime, json)?;
        self.parsed(Field::EventTime, &text)
    }

    /// The currency of the event; the default also stands in for one at fault, which is noted.
    fn currency(&mut self, defaults: &EventDefaults) -> Currency {
        let mut read = || {
            let json = self.fields.value(Field::Currency)?;
            let text = self.text(Field::Currency, json)?;
            // Almost every event is in the service's own currency; that needs no look-up.
            if text == defaults.currency.code() {
                return None;
            }
            self.parsed(Field::Currency, &text)
        };
        read().unwrap_or(defaults.currency)
    }

    fn item_count(&mut self) -> Option<i64> {
        let field = Field::ItemCount;
        let json = self.fields.value(field)?;
        if Kind::of(json) != Kind::Number {
            self.wrong_type(field, json);
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
