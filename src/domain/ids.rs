//! Names and numbers that identify things: texts with a bounded length, and positions.

use std::fmt;
use std::str::FromStr;

/// A text that cannot serve as an id or name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidText {
    /// Nothing stands there.
    #[error("is empty; it needs 1 to {chars_max} characters")]
    Empty {
        /// The longest text allowed, in characters.
        chars_max: usize,
    },
    /// More characters than allowed.
    #[error("has {chars} characters; at most {chars_max} are allowed")]
    TooLong {
        /// The length found, in characters.
        chars: usize,
        /// The longest text allowed, in characters.
        chars_max: usize,
    },
    /// A NUL character, which Postgres cannot store.
    #[error("holds a NUL character (\\u0000), which cannot be stored")]
    Nul,
    /// Not of the form that a query's name has.
    #[error("must be 1 to 100 of a-z, 0-9, `-` and `_`, and start with a letter or digit")]
    NotAName,
}

fn checked(text: &str, chars_max: usize) -> Result<(), InvalidText> {
    if text.is_empty() {
        return Err(InvalidText::Empty { chars_max });
    }
    let chars = text.chars().count();
    if chars > chars_max {
        return Err(InvalidText::TooLong { chars, chars_max });
    }
    if text.contains('\0') {
        return Err(InvalidText::Nul);
    }
    Ok(())
}

macro_rules! text_ids {
    ($($(#[$doc:meta])* $name:ident, $chars_max:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// The text as it was posted.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidText;

            fn try_from(text: String) -> Result<Self, InvalidText> {
                checked(&text, $chars_max)?;
                Ok(Self(text))
            }
        }

        impl FromStr for $name {
            type Err = InvalidText;

            fn from_str(text: &str) -> Result<Self, InvalidText> {
                Self::try_from(text.to_owned())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

text_ids! {
    /// What makes an event itself: made by the till, the same on every retry. 1 to 200 characters.
    EventId, 200;
    /// The order that an event is about. 1 to 200 characters.
    OrderId, 200;
    /// What happened to the order: `placed`, `paid`, `refunded`, … any word of 1 to 64 characters.
    Status, 64;
    /// The shop that sold. 1 to 200 characters.
    StoreId, 200;
    /// The till that posted. 1 to 200 characters.
    TillId, 200;
    /// Who bought. 1 to 200 characters.
    CustomerId, 200;
    /// Who sends a heartbeat, such as a till. 1 to 200 characters.
    Source, 200;
    /// Why somebody decided as they did, in their own words. 1 to 1,000 characters.
    Note, 1_000;
    /// Whose key it is, or where it is used. 1 to 100 characters.
    KeyName, 100;
}

/// The name of a query: `[a-z0-9][a-z0-9_-]{0,99}`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueryName(String);

impl QueryName {
    /// The name as it stands in addresses.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for QueryName {
    type Err = InvalidText;

    fn from_str(text: &str) -> Result<Self, InvalidText> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let starts_well = text.bytes().next().is_some_and(plain);
        let goes_on_well = text.bytes().all(|byte| plain(byte) || byte == b'-' || byte == b'_');
        if starts_well && goes_on_well && text.len() <= 100 {
            return Ok(Self(text.to_owned()));
        }
        Err(InvalidText::NotAName)
    }
}

impl fmt::Display for QueryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A position in the raw log: 1, 2, 3 … with gaps allowed. 0 stands before the first event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Seq(i64);

impl Seq {
    /// Before the first event.
    pub const START: Self = Self(0);

    /// The position with this number.
    pub const fn new(number: i64) -> Self {
        Self(number)
    }

    /// The number, as SQL and JSON carry it.
    pub const fn get(self) -> i64 {
        self.0
    }

    /// The position this many places further on.
    #[must_use]
    pub const fn plus(self, places: u32) -> Self {
        Self(self.0.saturating_add(places as i64))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of a micro-batch within its query: 0, 1, 2 ….
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchId(i64);

impl BatchId {
    /// The first micro-batch of a query.
    pub const FIRST: Self = Self(0);

    /// The micro-batch with this number.
    pub const fn new(number: i64) -> Self {
        Self(number)
    }

    /// The number, as SQL and JSON carry it.
    pub const fn get(self) -> i64 {
        self.0
    }

    /// The micro-batch after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for BatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_one_to_two_hundred_characters_and_no_nul() {
        for (case, text, fits) in [
            ("one character", "1".to_owned(), true),
            ("two hundred characters, not bytes", "é".repeat(200), true),
            ("empty", String::new(), false),
            ("two hundred and one", "x".repeat(201), false),
            ("NUL", "a\0b".to_owned(), false),
        ] {
            assert_eq!(EventId::try_from(text).is_ok(), fits, "{case}");
        }
    }

    #[test]
    fn a_query_name_is_safe_in_an_address() {
        for (text, fits) in [
            ("hourly_sales", true),
            ("2026-by-store", true),
            (&"a".repeat(100), true),
            (&"a".repeat(101), false),
            ("", false),
            ("_x", false),
            ("Hourly", false),
            ("a/b", false),
            ("ä", false),
        ] {
            assert_eq!(text.parse::<QueryName>().is_ok(), fits, "{text}");
        }
    }
}
