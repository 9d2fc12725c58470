//! One JSON value → one value of the domain, wherever it stands; what is wrong is noted.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use super::faults::{Coded, Faults, Quoted};
use super::raw_json::{Kind, text_of_string};
use crate::domain::{EventTime, InvalidText};

/// A named place of an item. It displays as its name in backticks, as sentences have it.
pub(super) trait Place: fmt::Display + Copy {
    /// Its name with the `/` before it: where it stands in the object that it belongs to.
    fn pointer(self) -> &'static str;

    /// What a right value is, as the end of a sentence.
    fn right_value(self) -> &'static str;
}

/// Each answers `None` for a value at fault, and the fault is among them then.
impl Faults {
    /// The JSON text of a value that must be there; null counts as left out.
    pub(super) fn required<'body>(
        &mut self,
        place: impl Place,
        written: Option<&'body str>,
    ) -> Option<&'body str> {
        let value = written.filter(|json| Kind::of(json) != Kind::Null);
        if value.is_none() {
            let how = if written.is_some() { "is null, but it is required" } else { "is required" };
            let detail = format_args!("{place} {how}: {}", place.right_value());
            self.push(place.pointer(), "missing", detail);
        }
        value
    }

    /// Notes that a value is of another JSON type than belongs there.
    pub(super) fn wrong_type(&mut self, place: impl Place, json: &str) {
        let (kind, right) = (Kind::of(json), place.right_value());
        let detail = format_args!("{place} is {kind}; it must be {right}");
        self.push(place.pointer(), "wrong_type", detail);
    }

    /// The text of a value that must be a string.
    pub(super) fn text<'body>(
        &mut self,
        place: impl Place,
        json: &'body str,
    ) -> Option<Cow<'body, str>> {
        if Kind::of(json) != Kind::String {
            self.wrong_type(place, json);
            return None;
        }
        text_of_string(json)
            .map_err(|fault| self.push(place.pointer(), "invalid", format_args!("{place} {fault}")))
            .ok()
    }

    /// The text of a value that must be a string with something in it.
    pub(super) fn filled_text<'body>(
        &mut self,
        place: impl Place,
        json: &'body str,
    ) -> Option<Cow<'body, str>> {
        let text = self.text(place, json)?;
        self.filled(place, &text).then_some(text)
    }

    /// Whether there is anything in a text; that there is not becomes a fault.
    fn filled(&mut self, place: impl Place, text: &str) -> bool {
        if text.is_empty() {
            let detail = format_args!("{place} is empty; it must be {}", place.right_value());
            self.push(place.pointer(), "empty", detail);
        }
        !text.is_empty()
    }

    /// An id or a word of the domain: a string of bounded length.
    pub(super) fn id<T>(&mut self, place: impl Place, json: &str) -> Option<T>
    where
        T: TryFrom<String, Error = InvalidText>,
    {
        let text = self.text(place, json)?;
        self.bounded(place, text.into_owned())
    }

    /// The same from a text that has been read already.
    pub(super) fn bounded<T>(&mut self, place: impl Place, text: String) -> Option<T>
    where
        T: TryFrom<String, Error = InvalidText>,
    {
        T::try_from(text)
            .map_err(|fault| {
                self.push(place.pointer(), fault.code(), format_args!("{place} {fault}"));
            })
            .ok()
    }

    /// A value whose domain type reads it from text.
    pub(super) fn parsed<T>(&mut self, place: impl Place, text: &str) -> Option<T>
    where
        T: FromStr<Err: Coded>,
    {
        if !self.filled(place, text) {
            return None;
        }
        text.parse()
            .map_err(|fault: T::Err| {
                let detail = format_args!("{place} {} {fault}", Quoted(text));
                self.push(place.pointer(), fault.code(), detail);
            })
            .ok()
    }

    /// A time with its offset.
    pub(super) fn time(&mut self, place: impl Place, json: &str) -> Option<EventTime> {
        if Kind::of(json) == Kind::Number {
            let right = place.right_value();
            let detail =
                format_args!("{place} is a number; epoch numbers are refused, write {right}");
            self.push(place.pointer(), "wrong_type", detail);
            return None;
        }
        let text = self.text(place, json)?;
        self.parsed(place, &text)
    }
}
