//! JSON as its text: what stands where, without reading numbers into floats or values into trees.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// What a JSON value is, told by its first character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    /// `true` or `false`.
    Boolean,
    Number,
    String,
    Array,
    Object,
}

impl Kind {
    /// The kind of a JSON value that starts with the first character of `json`.
    pub(super) fn of(json: &str) -> Self {
        match json.as_bytes().first() {
            Some(b'"') => Self::String,
            Some(b'{') => Self::Object,
            Some(b'[') => Self::Array,
            Some(b't' | b'f') => Self::Boolean,
            Some(b'n') => Self::Null,
            _ => Self::Number,
        }
    }
}

impl fmt::Display for Kind {
    /// With its article, to follow "is".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::Boolean => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        })
    }
}

/// A string that is well-formed JSON and yet no text: half of a surrogate pair stands in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "holds half of a surrogate pair (`\\ud800` to `\\udfff` on its own), which is no character"
)]
pub(super) struct LoneSurrogate;

/// The text that a JSON string, quotes included, stands for; borrowed when nothing is escaped.
///
/// # Errors
/// [`LoneSurrogate`] is all that can be wrong with a string whose syntax has been checked.
pub(super) fn text_of_string(json: &str) -> Result<Cow<'_, str>, LoneSurrogate> {
    let inner = json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    // Tills hardly ever escape anything, and what is not escaped needs no second look.
    match inner {
        Some(plain) if !plain.as_bytes().contains(&b'\\') => Ok(Cow::Borrowed(plain)),
        _ => serde_json::from_str(json).map(Cow::Owned).map_err(|_| LoneSurrogate),
    }
}

/// Hands each member of a JSON object to `take`, as the JSON texts of its name and its value, in
/// the order written and repeated as often as written.
///
/// # Errors
/// `object` is not JSON, or not an object.
pub(super) fn each_member<'a>(
    object: &'a str,
    take: impl FnMut(&'a str, &'a str),
) -> Result<(), serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(object);
    deserializer.deserialize_map(Members(take))?;
    deserializer.end()
}

/// Visits an object without keeping any of it.
struct Members<F>(F);

impl<'de, F: FnMut(&'de str, &'de str)> Visitor<'de> for Members<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        while let Some((name, value)) = members.next_entry::<&RawValue, &RawValue>()? {
            (self.0)(name.get(), value.get());
        }
        Ok(())
    }
}

/// Whether the lists and objects of `json`, which is JSON, stand in one another more than `depth_max` deep.
pub(super) fn is_deeper_than(json: &str, depth_max: usize) -> bool {
    // Almost no item is worth the exact walk. Whatever opens also closes, so that a short text
    // cannot be deep; `[` and `{` differ in one bit; a sum that wraps is one the compiler vectorises.
    let add = |sum: usize, byte| sum.wrapping_add(usize::from(byte | 0x20 == b'{'));
    let openings = || json.bytes().fold(0, add);
    json.len() > 2 * depth_max && openings() > depth_max && depth_of(json) > depth_max
}

/// How deep lists and objects stand in one another; 0 for a plain value.
fn depth_of(json: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_inside_strings_do_not_count_as_depth() {
        let brackets_in_text = format!(r#"["\"{}"]"#, "[".repeat(200));
        assert!(!is_deeper_than(&brackets_in_text, 128));
        for (depth, deeper) in [(128, false), (129, true)] {
            let nested = "[".repeat(depth) + &"]".repeat(depth);
            assert_eq!(is_deeper_than(&nested, 128), deeper, "{depth}");
        }
    }

    #[test]
    fn a_repeated_name_is_seen_as_often_as_it_is_written() {
        let mut seen = Vec::new();
        each_member(r#"{"a":1e400, "a":[2]}"#, |name, value| seen.push((name, value)))
            .expect("an object");
        assert_eq!(seen, [("\"a\"", "1e400"), ("\"a\"", "[2]")]);
    }
}
