//! The fields of an event by name, and the JSON text that an item has for each.

use std::fmt;

use super::faults::{Faults, Quoted, pointer_to};
use super::raw_json::{Kind, each_member, text_of_string};
use super::values::Place;

/// A field that an event may have (api.md, "Ingest").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    EventId,
    OrderId,
    Status,
    Amount,
    /// Another name of `amount`.
    Total,
    EventTime,
    Currency,
    CustomerId,
    StoreId,
    TillId,
    ItemCount,
    Attributes,
}

impl Field {
    /// How many there are.
    const COUNT: usize = 12;
    /// All of them, in the order of declaration: `field as usize` is an index into this.
    pub(super) const ALL: [Self; Self::COUNT] = [
        Self::EventId,
        Self::OrderId,
        Self::Status,
        Self::Amount,
        Self::Total,
        Self::EventTime,
        Self::Currency,
        Self::CustomerId,
        Self::StoreId,
        Self::TillId,
        Self::ItemCount,
        Self::Attributes,
    ];

    /// The field's name in JSON.
    pub(super) fn name(self) -> &'static str {
        &self.pointer()[1..]
    }

    /// The field with this name; names are told apart by case.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.name() == name)
    }
}

impl Place for Field {
    fn pointer(self) -> &'static str {
        match self {
            Self::EventId => "/event_id",
            Self::OrderId => "/order_id",
            Self::Status => "/status",
            Self::Amount => "/amount",
            Self::Total => "/total",
            Self::EventTime => "/event_time",
            Self::Currency => "/currency",
            Self::CustomerId => "/customer_id",
            Self::StoreId => "/store_id",
            Self::TillId => "/till_id",
            Self::ItemCount => "/item_count",
            Self::Attributes => "/attributes",
        }
    }

    fn right_value(self) -> &'static str {
        match self {
            Self::OrderId => "a string of 1 to 200 characters, or an integer",
            Self::Status => "a string such as `placed`, 1 to 64 characters",
            Self::Amount | Self::Total => "a decimal such as 68.50, as a number or a string",
            Self::EventTime => {
                "an RFC 3339 time with an offset in a string, such as `2026-10-01T09:05:00Z`"
            }
            Self::Currency => "an ISO 4217 code in a string, such as `USD`",
            Self::ItemCount => "a whole number, 0 or more",
            Self::Attributes => "an object whose values are strings",
            Self::EventId | Self::CustomerId | Self::StoreId | Self::TillId => {
                "a string of 1 to 200 characters"
            }
        }
    }
}

impl fmt::Display for Field {
    /// The name in backticks, as sentences have it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.name())
    }
}

/// The JSON text that one item has for each field.
#[derive(Debug, Default)]
pub(super) struct Fields<'body>([Option<&'body str>; Field::COUNT]);

impl<'body> Fields<'body> {
    /// Takes an item apart. Repeated and unknown names become faults; so does an item that is no
    /// object, and then it has no fields.
    pub(super) fn read(item: &'body str, faults: &mut Faults) -> Option<Self> {
        let mut fields = Self::default();
        let outcome = each_member(item, |name, value| fields.take(name, value, faults));
        let Err(error) = outcome else { return Some(fields) };
        if serde_json::from_str::<serde::de::IgnoredAny>(item).is_ok() {
            let kind = Kind::of(item);
            let detail = format_args!("The item is {kind}; an event is an object of named fields");
            faults.push("", "wrong_type", detail);
        } else {
            // Only a line comes here unchecked: of a line the column is enough, and what seemed to
            // stand in it may not be what was meant.
            *faults = Faults::default();
            let (what, column) = (error.to_string(), error.column());
            let what = what.split(" at line ").next().unwrap_or_default();
            let detail = format_args!("The line is not JSON: {what} at column {column}");
            faults.push("", "not_json", detail);
        }
        None
    }

    /// Notes one member of the item.
    fn take(&mut self, name: &'body str, value: &'body str, faults: &mut Faults) {
        let name = match text_of_string(name) {
            Ok(name) => name,
            Err(fault) => {
                return faults.push("", "invalid", format_args!("The name of a field {fault}"));
            }
        };
        let Some(field) = Field::of_name(&name) else {
            return unknown_field(&name, faults);
        };
        if self.0[field as usize].replace(value).is_some() {
            let detail = format_args!("{field} is written more than once; write it once");
            faults.push(field.pointer(), "duplicate_key", detail);
        }
    }

    /// The JSON text of `field`, null included.
    pub(super) const fn written(&self, field: Field) -> Option<&'body str> {
        self.0[field as usize]
    }

    /// The JSON text of `field`; null counts as left out.
    pub(super) fn value(&self, field: Field) -> Option<&'body str> {
        self.written(field).filter(|json| Kind::of(json) != Kind::Null)
    }
}

fn unknown_field(name: &str, faults: &mut Faults) {
    let known = Field::ALL.map(Field::name).join(", ");
    let detail = format_args!("{} is no field of an event; the fields are {known}", Quoted(name));
    faults.push(&pointer_to("", name), "unknown_field", detail);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_found_by_its_name_at_its_own_place() {
        for (index, field) in Field::ALL.into_iter().enumerate() {
            assert_eq!(field as usize, index, "{field}");
            assert_eq!(Field::of_name(field.name()), Some(field));
        }
        assert_eq!(Field::of_name("Amount"), None);
    }

    #[test]
    fn an_item_that_is_not_json_is_told_so_apart_from_one_that_is_no_object() {
        for (item, code) in [
            ("", "not_json"),
            ("{\"status\":", "not_json"),
            ("{\"colour\":1,}", "not_json"),
            ("{} {}", "not_json"),
            ("17", "wrong_type"),
        ] {
            let mut faults = Faults::default();
            assert!(Fields::read(item, &mut faults).is_none(), "{item}");
            assert_eq!(faults.into_vec()[0].code, code, "{item}");
        }
    }
}
