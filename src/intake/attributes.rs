//! The `attributes` of an item: a flat object of strings.

use std::borrow::Cow;

use super::faults::{Faults, Quoted, pointer_to};
use super::fields::Field;
use super::raw_json::{Kind, each_member, text_of_string};
use super::values::Place as _;
use crate::domain::Attributes;

/// Reads a JSON value as attributes; every fault goes to `faults`, and then there are none.
pub(super) fn read(json: &str, faults: &mut Faults) -> Option<Attributes> {
    let pointer = Field::Attributes.pointer();
    let mut values = Vec::new();
    let mut count = 0_usize;
    let outcome = each_member(json, |name, value| {
        count += 1;
        // The rest of too many would be read only to be thrown away.
        if count <= Attributes::COUNT_MAX {
            take(name, value, &mut values, faults);
        }
    });
    if outcome.is_err() {
        let (kind, right) = (Kind::of(json), Field::Attributes.right_value());
        let detail = format_args!("`attributes` is {kind}; it must be {right}");
        faults.push(pointer, "wrong_type", detail);
        return None;
    }
    if count > Attributes::COUNT_MAX {
        let allowed = Attributes::COUNT_MAX;
        let detail =
            format_args!("`attributes` has {count} members; at most {allowed} are allowed");
        faults.push(pointer, "too_many", detail);
    }
    // Collected at once the map is as small as it can be; grown one by one it is half empty.
    let owned = |(name, value): (Cow<'_, str>, Cow<'_, str>)| (name.into(), value.into());
    Attributes::new(values.into_iter().map(owned).collect())
}

/// Adds one attribute to `values`, unless something is wrong with it.
fn take<'body>(
    name: &'body str,
    value: &'body str,
    values: &mut Vec<(Cow<'body, str>, Cow<'body, str>)>,
    faults: &mut Faults,
) {
    let parent = Field::Attributes.pointer();
    let name = match text_of_string(name) {
        Ok(name) => name,
        Err(fault) => {
            return faults.push(
                parent,
                "invalid",
                format_args!("The name of an attribute {fault}"),
            );
        }
    };
    let pointer = || pointer_to(parent, &name);
    let quoted = Quoted(&name);
    if let Some((code, fault)) = text_fault(&name, 1, Attributes::NAME_CHARS_MAX) {
        let detail = format_args!("The name of attribute {quoted} {fault}");
        faults.push(&pointer(), code, detail);
    }
    if Kind::of(value) != Kind::String {
        let kind = Kind::of(value);
        let detail = format_args!("Attribute {quoted} is {kind}; write a string, or leave it out");
        return faults.push(&pointer(), "wrong_type", detail);
    }
    let value = match text_of_string(value) {
        Ok(value) => value,
        Err(fault) => {
            return faults.push(&pointer(), "invalid", format_args!("Attribute {quoted} {fault}"));
        }
    };
    if let Some((code, fault)) = text_fault(&value, 0, Attributes::VALUE_CHARS_MAX) {
        return faults.push(&pointer(), code, format_args!("Attribute {quoted} {fault}"));
    }
    if values.iter().any(|(known, _)| *known == name) {
        let detail = format_args!("Attribute {quoted} is written more than once; write it once");
        return faults.push(&pointer(), "duplicate_key", detail);
    }
    values.push((name, value));
}

/// What is wrong with a text of an attribute: its code, and the rest of the sentence.
fn text_fault(
    text: &str,
    chars_min: usize,
    chars_max: usize,
) -> Option<(&'static str, Cow<'static, str>)> {
    let chars = text.chars().count();
    if chars < chars_min {
        return Some(("empty", Cow::Borrowed("is empty; it needs at least one character")));
    }
    if chars > chars_max {
        let fault = format!("has {chars} characters; at most {chars_max} are allowed");
        return Some(("too_long", Cow::Owned(fault)));
    }
    let nul = "holds a NUL character (\\u0000), which cannot be stored";
    text.contains('\0').then_some(("invalid", Cow::Borrowed(nul)))
}
