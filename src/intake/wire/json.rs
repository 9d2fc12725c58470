//! Bodies that are one JSON value: an event, an array of events or `{"events": […]}`; a CloudEvent
//! or an array of them.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{BodyError, BodyLimits, DEPTH_MAX, Item, ItemForm};
use crate::intake::faults::Quoted;
use crate::intake::raw_json::{Kind, is_deeper_than, text_of_string};

/// Takes a body of events apart into its items, in the order written. An empty array has none.
pub(super) fn event_items<'body>(
    text: &'body str,
    limits: &BodyLimits,
) -> Result<Vec<Item<'body>>, BodyError> {
    // The parser gets the text untrimmed, so that line and column are those of the body.
    let value = trimmed(text);
    match Kind::of(value) {
        Kind::Array => not_too_deep(array_items(text, ItemForm::Event, limits)?, 1),
        Kind::Object => match envelope_items(text, limits)? {
            Some(items) => not_too_deep(items, 2),
            None => not_too_deep(vec![Item::of(0, value, ItemForm::Event)], 0),
        },
        kind @ (Kind::Null | Kind::Boolean | Kind::Number | Kind::String) => {
            serde_json::from_str::<IgnoredAny>(text)?;
            Err(BodyError::NotAnEventList { found: kind.to_string() })
        }
    }
}

/// The one item of a body that is a CloudEvent.
pub(super) fn cloud_event_item(text: &str) -> Result<Vec<Item<'_>>, BodyError> {
    serde_json::from_str::<IgnoredAny>(text)?;
    let value = trimmed(text);
    match Kind::of(value) {
        Kind::Object => not_too_deep(vec![Item::of(0, value, ItemForm::CloudEvent)], 0),
        kind => Err(BodyError::NotACloudEvent { found: kind.to_string() }),
    }
}

/// The items of a body that is an array of CloudEvents.
pub(super) fn cloud_event_items<'body>(
    text: &'body str,
    limits: &BodyLimits,
) -> Result<Vec<Item<'body>>, BodyError> {
    match Kind::of(trimmed(text)) {
        Kind::Array => not_too_deep(array_items(text, ItemForm::CloudEvent, limits)?, 1),
        kind => {
            serde_json::from_str::<IgnoredAny>(text)?;
            Err(BodyError::NotACloudEventBatch { found: kind.to_string() })
        }
    }
}

/// The text without the white space of JSON around it.
fn trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\n', '\r'])
}

/// The items, unless one of them is too deep inside the `levels_around` it.
fn not_too_deep(items: Vec<Item<'_>>, levels_around: usize) -> Result<Vec<Item<'_>>, BodyError> {
    let depth_max = DEPTH_MAX - levels_around;
    if items.iter().filter_map(|item| item.text().ok()).any(|text| is_deeper_than(text, depth_max))
    {
        return Err(BodyError::TooDeep { max: DEPTH_MAX });
    }
    Ok(items)
}

/// The items of a body that is an array.
fn array_items<'body>(
    text: &'body str,
    form: ItemForm,
    limits: &BodyLimits,
) -> Result<Vec<Item<'body>>, BodyError> {
    let mut json = serde_json::Deserializer::from_str(text);
    let list = List::up_to(limits.events_max).of(form).deserialize(&mut json)?;
    json.end()?;
    list.into_items()
}

/// The items of `{"events": […]}`; `None` when there is no `events`, so that it is one event.
fn envelope_items<'body>(
    text: &'body str,
    limits: &BodyLimits,
) -> Result<Option<Vec<Item<'body>>>, BodyError> {
    let mut json = serde_json::Deserializer::from_str(text);
    let envelope = Envelope { events_max: limits.events_max, ..Envelope::default() };
    let envelope = json.deserialize_map(envelope).map_err(|error| {
        // The one type asked for inside an envelope is the array.
        if error.is_data() { BodyError::EventsNotAnArray } else { error.into() }
    })?;
    json.end()?;
    let Some(events) = envelope.events else { return Ok(None) };
    if envelope.is_repeated {
        return Err(BodyError::DuplicateEvents);
    }
    if let Some(name) = envelope.other_member {
        let name = text_of_string(name).unwrap_or(name.into());
        return Err(BodyError::UnknownMember { name: Quoted(&name).to_string() });
    }
    events.into_items().map(Some)
}

/// The values of an array: the first `events_max` as items, all of them counted.
#[derive(Debug, Default)]
struct List<'body> {
    events_max: usize,
    form: ItemForm,
    items: Vec<Item<'body>>,
    /// All values, those beyond `events_max` included, so that the refusal can say how many.
    count: usize,
}

impl<'body> List<'body> {
    fn up_to(events_max: usize) -> Self {
        Self { events_max, ..Self::default() }
    }

    fn of(self, form: ItemForm) -> Self {
        Self { form, ..self }
    }

    fn into_items(self) -> Result<Vec<Item<'body>>, BodyError> {
        if self.count > self.events_max {
            return Err(BodyError::TooManyEvents { count: self.count, max: self.events_max });
        }
        Ok(self.items)
    }
}

impl<'de> DeserializeSeed<'de> for List<'de> {
    type Value = Self;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self, D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for List<'de> {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut values: A) -> Result<Self, A::Error> {
        while let Some(value) = values.next_element::<&RawValue>()? {
            if self.count < self.events_max {
                self.items.push(Item::of(self.count, value.get(), self.form));
            }
            self.count += 1;
        }
        Ok(self)
    }
}

/// What stands in an object that may be an envelope.
#[derive(Debug, Default)]
struct Envelope<'body> {
    events_max: usize,
    /// The last `events` written.
    events: Option<List<'body>>,
    is_repeated: bool,
    /// The name of the first member that is not `events`, as JSON.
    other_member: Option<&'body str>,
}

impl<'de> Visitor<'de> for Envelope<'de> {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<Self, A::Error> {
        while let Some(name) = members.next_key::<&RawValue>()? {
            if text_of_string(name.get()).is_ok_and(|name| name == "events") {
                let list = members.next_value_seed(List::up_to(self.events_max))?;
                self.is_repeated |= self.events.replace(list).is_some();
            } else {
                members.next_value::<IgnoredAny>()?;
                self.other_member = self.other_member.or(Some(name.get()));
            }
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intake::wire::{self, BodyFormat};

    fn json_items<'body>(
        body: &'body [u8],
        limits: &BodyLimits,
    ) -> Result<Vec<Item<'body>>, BodyError> {
        wire::items(body, BodyFormat::Json, limits)
    }

    fn items(body: &[u8]) -> Result<Vec<&str>, BodyError> {
        let limits = BodyLimits { events_max: 3, ..BodyLimits::default() };
        Ok(json_items(body, &limits)?.iter().filter_map(|item| item.text().ok()).collect())
    }

    #[test]
    fn one_event_an_array_and_an_envelope_are_the_forms_of_a_body() {
        for (case, body, expected) in [
            ("one event", " {\"status\":\"paid\"}\n", vec![r#"{"status":"paid"}"#]),
            ("an array", "[ {\"a\":1} , 2,null]", vec![r#"{"a":1}"#, "2", "null"]),
            ("an empty array", "[]", vec![]),
            ("an envelope", r#"{"events":[{}, {}]}"#, vec!["{}", "{}"]),
            ("an envelope with its name escaped", r#"{"\u0065vents":[{}]}"#, vec!["{}"]),
            ("an empty envelope", r#"{"events":[]}"#, vec![]),
            ("a number no float can hold", "[1e400]", vec!["1e400"]),
            ("half of a surrogate pair", r#"["\ud800"]"#, vec![r#""\ud800""#]),
            ("the same in a name", r#"{"\ud800":1}"#, vec![r#"{"\ud800":1}"#]),
            ("a name written twice", r#"{"a":1,"a":2}"#, vec![r#"{"a":1,"a":2}"#]),
        ] {
            assert_eq!(items(body.as_bytes()), Ok(expected), "{case}");
        }
    }

    #[test]
    fn items_are_numbered_from_zero_in_the_order_written() {
        let items = json_items(b"[{},[],{}]", &BodyLimits::default()).expect("an array");
        assert_eq!(items.iter().map(Item::index).collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn a_body_that_is_not_json_is_refused_as_a_whole_and_told_where() {
        for (case, body, detail) in [
            ("nothing", "", "EOF while parsing a value at line 1 column 0"),
            ("a word", "sales", "expected value at line 1 column 1"),
            ("NaN", r#"[{"amount":NaN}]"#, "expected value at line 1 column 12"),
            ("a number with a leading zero", "[007]", "invalid number at line 1 column 3"),
            ("a trailing comma in a list", "[{},]", "trailing comma at line 1 column 5"),
            (
                "a trailing comma in an event",
                "[{\"a\":1,}]",
                "key must be a string at line 1 column 9",
            ),
            ("two events", "{}\n{}", "trailing characters at line 2 column 1"),
            ("two lists", "[][]", "trailing characters at line 1 column 3"),
            ("cut short", "[{}", "EOF while parsing a list at line 1 column 3"),
            ("single quotes", "[{'a':1}]", "key must be a string at line 1 column 3"),
            ("an unknown escape", r#"["\x"]"#, "invalid escape at line 1 column 4"),
        ] {
            let expected = BodyError::NotJson { detail: detail.to_owned() };
            assert_eq!(items(body.as_bytes()), Err(expected), "{case}");
        }
    }

    #[test]
    fn a_body_that_is_no_list_of_events_is_told_what_it_is() {
        let found = |found: &str| BodyError::NotAnEventList { found: found.to_owned() };
        let unknown = |name: &str| BodyError::UnknownMember { name: name.to_owned() };
        for (body, fault) in [
            (r#""events""#.as_bytes(), found("a string")),
            (b"17", found("a number")),
            (b"true", found("a boolean")),
            (b"null", found("null")),
            (br#"{"events":{}}"#, BodyError::EventsNotAnArray),
            (br#"{"events":null}"#, BodyError::EventsNotAnArray),
            (br#"{"events":"[]"}"#, BodyError::EventsNotAnArray),
            (br#"{"events":[],"events":[]}"#, BodyError::DuplicateEvents),
            (br#"{"events":[],"atomic":true}"#, unknown("`atomic`")),
            (br#"{"source":"till-7","events":[]}"#, unknown("`source`")),
            (b"\xEF\xBB\xBF[]", BodyError::ByteOrderMark),
            (b"[\"\xFF\"]", BodyError::NotUtf8 { position: 2 }),
            (b"\xFF\xFE[\0]\0", BodyError::NotUtf8 { position: 0 }),
            (b"[1,2,3,4,5]", BodyError::TooManyEvents { count: 5, max: 3 }),
            (br#"{"events":[1,2,3,4]}"#, BodyError::TooManyEvents { count: 4, max: 3 }),
        ] {
            assert_eq!(items(body), Err(fault), "{}", String::from_utf8_lossy(body));
        }
    }

    #[test]
    fn ten_thousand_events_are_a_body_and_one_more_is_too_many() {
        let body = |count: usize| format!("[{}]", vec!["{}"; count].join(","));
        let limits = BodyLimits::default();
        assert_eq!(
            json_items(body(10_000).as_bytes(), &limits).map(|items| items.len()),
            Ok(10_000)
        );
        let fault = BodyError::TooManyEvents { count: 10_001, max: 10_000 };
        assert_eq!(json_items(body(10_001).as_bytes(), &limits), Err(fault));
    }

    #[test]
    fn a_body_may_be_128_levels_deep_in_every_form() {
        for (case, before, after, levels_around) in [
            ("one event", r#"{"a":"#, "}", 1),
            ("an array", "[", "]", 1),
            ("an envelope", r#"{"events":["#, "]}", 2),
        ] {
            let body = |depth: usize| {
                let inner = depth - levels_around;
                format!("{before}{}{}{after}", "[".repeat(inner), "]".repeat(inner))
            };
            assert!(items(body(128).as_bytes()).is_ok(), "{case}");
            for depth in [129, 200, 1_000_000] {
                let fault = BodyError::TooDeep { max: 128 };
                assert_eq!(items(body(depth).as_bytes()), Err(fault), "{case}, {depth} levels");
            }
        }
    }
}
