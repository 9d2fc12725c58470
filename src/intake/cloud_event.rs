//! A CloudEvent in structured mode: an envelope, the event in its `data` (CloudEvents 1.0.2 and its
//! JSON format).
//!
//! `id` is the event's id. `source` and `time` stand in for a till and an event time that `data`
//! leaves out. `type`, `subject`, `dataschema` and extension attributes are checked for their form
//! and not kept: brokers on the way add theirs. An extension attribute that is named like a field
//! of an event was meant to be in `data`, and is refused.

use std::fmt;

use super::faults::{Faults, Quoted, pointer_to};
use super::fields::{Field, Fields};
use super::raw_json::{Kind, each_member, text_of_string};
use super::values::Place;
use crate::domain::{EventId, EventTime, TillId};

/// What of an event stands outside its fields.
#[derive(Debug, Default)]
pub(super) struct Given {
    /// Its id.
    pub(super) event_id: Option<EventId>,
    /// Its till, where the fields name none.
    pub(super) till_id: Option<TillId>,
    /// Its time, where the fields name none.
    pub(super) event_time: Option<GivenTime>,
}

/// A time that stands in for that of the fields.
#[derive(Debug, Clone, Copy)]
pub(super) struct GivenTime {
    /// `None` when it is at fault, which is noted.
    pub(super) read: Option<EventTime>,
}

/// An attribute that the specification names, or one of the two forms of `data`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attribute {
    SpecVersion,
    Id,
    Source,
    Type,
    Time,
    Subject,
    DataSchema,
    DataContentType,
    Data,
    DataBase64,
}

impl Attribute {
    /// How many there are.
    const COUNT: usize = 10;
    /// All of them, in the order of declaration: `attribute as usize` is an index into this.
    const ALL: [Self; Self::COUNT] = [
        Self::SpecVersion,
        Self::Id,
        Self::Source,
        Self::Type,
        Self::Time,
        Self::Subject,
        Self::DataSchema,
        Self::DataContentType,
        Self::Data,
        Self::DataBase64,
    ];

    fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|attribute| &attribute.pointer()[1..] == name)
    }
}

impl Place for Attribute {
    fn pointer(self) -> &'static str {
        match self {
            Self::SpecVersion => "/specversion",
            Self::Id => "/id",
            Self::Source => "/source",
            Self::Type => "/type",
            Self::Time => "/time",
            Self::Subject => "/subject",
            Self::DataSchema => "/dataschema",
            Self::DataContentType => "/datacontenttype",
            Self::Data => "/data",
            Self::DataBase64 => "/data_base64",
        }
    }

    fn right_value(self) -> &'static str {
        match self {
            Self::SpecVersion => "`1.0` in a string",
            Self::Id => "a string of 1 to 200 characters, the event's id",
            Self::Source => "a string that is not empty, the till",
            Self::Type => "a string that is not empty, such as `com.example.order.placed`",
            Self::Time => {
                "an RFC 3339 time with an offset in a string, such as `2026-10-01T09:05:00Z`"
            }
            Self::Subject | Self::DataSchema => "a string that is not empty, or left out",
            Self::DataContentType => "`application/json` in a string, or left out",
            Self::Data => "the event, an object of named fields",
            Self::DataBase64 => "left out",
        }
    }
}

impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", &self.pointer()[1..])
    }
}

/// Takes a CloudEvent apart: the fields of its `data`, where there are any, and what its envelope
/// adds to them. Every fault goes to `faults`, which from then on points within `data`.
pub(super) fn read<'body>(item: &'body str, faults: &mut Faults) -> (Option<Fields<'body>>, Given) {
    let Some(envelope) = Envelope::read(item, faults) else { return (None, Given::default()) };
    envelope.check(faults);
    let event_id = faults
        .required(Attribute::Id, envelope.written(Attribute::Id))
        .and_then(|json| faults.id(Attribute::Id, json));
    let mut given = Given { event_id, ..Given::default() };
    let Some(data) = envelope.data(faults) else { return (None, given) };
    faults.point_within(Attribute::Data.pointer());
    let fields = Fields::read(data, faults);
    faults.point_within("");
    if let Some(fields) = &fields {
        envelope.stand_in(fields, &mut given, faults);
    }
    faults.point_within(Attribute::Data.pointer());
    (fields, given)
}

/// The JSON text that one CloudEvent has for each attribute.
#[derive(Debug, Default)]
struct Envelope<'body>([Option<&'body str>; Attribute::COUNT]);

impl<'body> Envelope<'body> {
    fn read(item: &'body str, faults: &mut Faults) -> Option<Self> {
        let mut envelope = Self::default();
        if each_member(item, |name, value| envelope.take(name, value, faults)).is_ok() {
            return Some(envelope);
        }
        let kind = Kind::of(item);
        faults.push(
            "",
            "wrong_type",
            format_args!("The item is {kind}; a CloudEvent is an object of named attributes"),
        );
        None
    }

    /// Notes one member.
    fn take(&mut self, name: &'body str, value: &'body str, faults: &mut Faults) {
        let name = match text_of_string(name) {
            Ok(name) => name,
            Err(fault) => {
                let detail = format_args!("The name of an attribute {fault}");
                return faults.push("", "invalid", detail);
            }
        };
        let Some(attribute) = Attribute::of_name(&name) else {
            return check_extension(&name, value, faults);
        };
        if self.0[attribute as usize].replace(value).is_some() {
            let detail = format_args!("{attribute} is written more than once; write it once");
            faults.push(attribute.pointer(), "duplicate_key", detail);
        }
    }

    /// The JSON text of `attribute`, null included.
    const fn written(&self, attribute: Attribute) -> Option<&'body str> {
        self.0[attribute as usize]
    }

    /// The JSON text of `attribute`; null counts as left out.
    fn value(&self, attribute: Attribute) -> Option<&'body str> {
        self.written(attribute).filter(|json| Kind::of(json) != Kind::Null)
    }

    /// Checks the attributes that say nothing of the event.
    fn check(&self, faults: &mut Faults) {
        let version = Attribute::SpecVersion;
        if let Some(json) = faults.required(version, self.written(version))
            && let Some(text) = faults.text(version, json)
            && text != "1.0"
        {
            let detail = format_args!("{version} is {}; only `1.0` is taken", Quoted(&text));
            faults.push(version.pointer(), "invalid", detail);
        }
        for attribute in [Attribute::Source, Attribute::Type] {
            if let Some(json) = faults.required(attribute, self.written(attribute)) {
                faults.filled_text(attribute, json);
            }
        }
        for attribute in [Attribute::Subject, Attribute::DataSchema] {
            if let Some(json) = self.value(attribute) {
                faults.filled_text(attribute, json);
            }
        }
        if let Some(json) = self.value(Attribute::DataContentType)
            && let Some(text) = faults.filled_text(Attribute::DataContentType, json)
            && !is_json(&text)
        {
            let quoted = Quoted(&text);
            let detail = format_args!(
                "`datacontenttype` is {quoted}; only JSON such as `application/json` is taken"
            );
            faults.push(Attribute::DataContentType.pointer(), "invalid", detail);
        }
    }

    /// The JSON text of the event.
    fn data(&self, faults: &mut Faults) -> Option<&'body str> {
        if self.value(Attribute::DataBase64).is_some() {
            let detail = format_args!(
                "`data_base64` is not taken; write the event as JSON into `data`, an object"
            );
            faults.push(Attribute::DataBase64.pointer(), "invalid", detail);
            return None;
        }
        let data = faults.required(Attribute::Data, self.written(Attribute::Data))?;
        if Kind::of(data) != Kind::Object {
            faults.wrong_type(Attribute::Data, data);
            return None;
        }
        Some(data)
    }

    /// Reads `source` and `time` where the fields name no till and no time.
    fn stand_in(&self, fields: &Fields<'_>, given: &mut Given, faults: &mut Faults) {
        // What is wrong with the form of `source` is noted already; left is how long it may be.
        if fields.value(Field::TillId).is_none()
            && let Some(json) = self.value(Attribute::Source)
            && let Ok(text) = text_of_string(json)
            && Kind::of(json) == Kind::String
            && !text.is_empty()
        {
            given.till_id = faults.bounded(Attribute::Source, text.into_owned());
        }
        let Some(json) = self.value(Attribute::Time) else { return };
        if fields.value(Field::EventTime).is_none() {
            given.event_time = Some(GivenTime { read: faults.time(Attribute::Time, json) });
        } else {
            faults.filled_text(Attribute::Time, json);
        }
    }
}

/// What an attribute that the specification does not name may be.
fn check_extension(name: &str, value: &str, faults: &mut Faults) {
    let (pointer, quoted) = (pointer_to("", name), Quoted(name));
    if Field::of_name(name).is_some() {
        let detail = format_args!(
            "{quoted} stands beside `data`; a field of the event belongs inside it, as `/data/{name}`"
        );
        return faults.push(&pointer, "misplaced", detail);
    }
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    if name.is_empty() || !name.bytes().all(fits) {
        let detail = format_args!(
            "{quoted} is no attribute of a CloudEvent; their names are lower-case letters and digits"
        );
        return faults.push(&pointer, "unknown_field", detail);
    }
    let kind = Kind::of(value);
    if matches!(kind, Kind::Array | Kind::Object) {
        let detail = format_args!(
            "{quoted} is {kind}; an attribute of a CloudEvent is a string, a number or a boolean"
        );
        faults.push(&pointer, "wrong_type", detail);
    }
}

/// Whether a media type is JSON, as the specification has it: subtype `json`, or one ending in it.
fn is_json(media_type: &str) -> bool {
    let name = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let Some((_, subtype)) = name.split_once('/') else { return false };
    subtype == "json" || subtype.ends_with("+json")
}

#[cfg(test)]
#[path = "cloud_event_tests.rs"]
mod tests;
