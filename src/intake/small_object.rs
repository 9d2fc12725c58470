//! Bodies that are one small object: read as strictly as events, and refused in the same sentences.

use std::borrow::Cow;
use std::fmt;

use super::faults::{Coded, Faults, Quoted, pointer_to};
use super::raw_json::{Kind, each_member, text_of_string};
use super::wire::BodyError;
use crate::domain::{EventTime, Fault, InvalidText};

/// Why a body is not the object that it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidObject {
    /// It cannot be read at all.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// It can, and these are the faults of its members.
    #[error("the object is not acceptable; its faults: {}", .0.len())]
    Members(Vec<Fault>),
}

/// A member that an object may have. It displays as its name in backticks, as sentences have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Member {
    /// Its name with the `/` before it: where it stands.
    pub(super) pointer: &'static str,
    /// What a right value is, as the end of a sentence.
    pub(super) right_value: &'static str,
}

impl Member {
    /// The time of an event, wherever one is asked for.
    pub(super) const EVENT_TIME: Self = Self {
        pointer: "/event_time",
        right_value: "an RFC 3339 time with an offset in a string, such as `2026-10-01T09:05:00Z`",
    };

    fn name(self) -> &'static str {
        &self.pointer[1..]
    }
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.name())
    }
}

/// An object taken apart into its members. Its methods answer `None` for a value at fault, and the
/// fault is among them then.
#[derive(Debug)]
pub(super) struct SmallObject<'body> {
    written: Vec<(Member, Option<&'body str>)>,
    faults: Faults,
}

impl<'body> SmallObject<'body> {
    /// Takes a body apart. `what` it should be is said with its article, such as "a heartbeat".
    ///
    /// # Errors
    /// [`InvalidObject`] when it is not JSON, or no object.
    pub(super) fn read(
        body: &'body [u8],
        what: &str,
        members: &[Member],
    ) -> Result<Self, InvalidObject> {
        if body.starts_with(b"\xEF\xBB\xBF") {
            return Err(BodyError::ByteOrderMark.into());
        }
        let text = std::str::from_utf8(body)
            .map_err(|error| BodyError::NotUtf8 { position: error.valid_up_to() })?;
        let written = members.iter().map(|member| (*member, None)).collect();
        let mut object = Self { written, faults: Faults::default() };
        let outcome = each_member(text, |name, value| object.take(what, name, value));
        let Err(error) = outcome else { return Ok(object) };
        if serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() {
            return Err(BodyError::NotJson { detail: error.to_string() }.into());
        }
        let kind = Kind::of(text.trim_start());
        let detail = format_args!("The body is {kind}; {what} is an object of named fields");
        let mut faults = Faults::default();
        faults.push("", "wrong_type", detail);
        Err(InvalidObject::Members(faults.into_vec()))
    }

    fn take(&mut self, what: &str, name: &'body str, value: &'body str) {
        let name = match text_of_string(name) {
            Ok(name) => name,
            Err(fault) => {
                let detail = format_args!("The name of a field {fault}");
                return self.faults.push("", "invalid", detail);
            }
        };
        let Some(place) = self.written.iter_mut().find(|(member, _)| member.name() == name) else {
            let known: Vec<&str> = self.written.iter().map(|(member, _)| member.name()).collect();
            let (name_quoted, known) = (Quoted(&name), known.join(", "));
            let detail =
                format_args!("{name_quoted} is no field of {what}; the fields are {known}");
            return self.faults.push(&pointer_to("", &name), "unknown_field", detail);
        };
        let member = place.0;
        if place.1.replace(value).is_some() {
            let detail = format_args!("{member} is written more than once; write it once");
            self.faults.push(member.pointer, "duplicate_key", detail);
        }
    }

    fn written(&self, member: Member) -> Option<&'body str> {
        self.written.iter().find(|(known, _)| *known == member).and_then(|(_, json)| *json)
    }

    /// The JSON text of a member; null counts as left out.
    pub(super) fn value(&self, member: Member) -> Option<&'body str> {
        self.written(member).filter(|json| Kind::of(json) != Kind::Null)
    }

    /// The JSON text of a member that must be there.
    pub(super) fn required(&mut self, member: Member) -> Option<&'body str> {
        let value = self.value(member);
        if value.is_none() {
            let is_null = self.written(member).is_some();
            let how = if is_null { "is null, but it is required" } else { "is required" };
            let detail = format_args!("{member} {how}: {}", member.right_value);
            self.faults.push(member.pointer, "missing", detail);
        }
        value
    }

    fn text(&mut self, member: Member, json: &'body str) -> Option<Cow<'body, str>> {
        let kind = Kind::of(json);
        if kind != Kind::String {
            let so = match kind {
                Kind::Number if member == Member::EVENT_TIME => "epoch numbers are refused, write",
                _ => "it must be",
            };
            let detail = format_args!("{member} is {kind}; {so} {}", member.right_value);
            self.faults.push(member.pointer, "wrong_type", detail);
            return None;
        }
        text_of_string(json)
            .map_err(|fault| {
                self.faults.push(member.pointer, "invalid", format_args!("{member} {fault}"));
            })
            .ok()
    }

    /// A text of the domain: a string of bounded length.
    pub(super) fn bounded<T>(&mut self, member: Member, json: &'body str) -> Option<T>
    where
        T: TryFrom<String, Error = InvalidText>,
    {
        let text = self.text(member, json)?;
        T::try_from(text.into_owned())
            .map_err(|fault| {
                self.faults.push(member.pointer, fault.code(), format_args!("{member} {fault}"));
            })
            .ok()
    }

    /// A time with its offset.
    pub(super) fn time(&mut self, json: &'body str) -> Option<EventTime> {
        let member = Member::EVENT_TIME;
        let text = self.text(member, json)?;
        if text.is_empty() {
            let detail = format_args!("{member} is empty; it must be {}", member.right_value);
            self.faults.push(member.pointer, "empty", detail);
            return None;
        }
        text.parse()
            .map_err(|fault: crate::domain::InvalidEventTime| {
                let detail = format_args!("{member} {} {fault}", Quoted(&text));
                self.faults.push(member.pointer, fault.code(), detail);
            })
            .ok()
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(
        &mut self,
        member: Member,
        json: &'body str,
        words: &[(&str, T)],
    ) -> Option<T> {
        let text = self.text(member, json)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        if found.is_none() {
            let (quoted, right) = (Quoted(&text), member.right_value);
            self.refuse(member, "invalid", format_args!("is {quoted}; it must be {right}"));
        }
        found
    }

    /// Notes a fault that only the members together have.
    pub(super) fn refuse(&mut self, member: Member, code: &'static str, rest: fmt::Arguments<'_>) {
        self.faults.push(member.pointer, code, format_args!("{member} {rest}"));
    }

    /// What was read, unless anything was at fault.
    ///
    /// # Errors
    /// [`InvalidObject`] with all the faults.
    pub(super) fn finish<T>(self, value: Option<T>) -> Result<T, InvalidObject> {
        value
            .filter(|_| self.faults.is_empty())
            .ok_or_else(|| InvalidObject::Members(self.faults.into_vec()))
    }
}
