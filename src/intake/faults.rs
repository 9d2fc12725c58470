//! How a fault is put to its sender.

use std::fmt;

/// The longest offending value or name that an answer repeats, in characters.
const QUOTED_CHARS_MAX: usize = 40;

/// A text of the sender's in backticks, cut short where it is long.
pub(super) struct Quoted<'a>(pub(super) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(QUOTED_CHARS_MAX) {
            Some((cut, _)) => write!(f, "`{}…`", &self.0[..cut]),
            None => write!(f, "`{}`", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_value_is_cut_short_between_characters() {
        assert_eq!(Quoted("20.0").to_string(), "`20.0`");
        let quoted = Quoted(&"é".repeat(1000)).to_string();
        assert_eq!(quoted, format!("`{}…`", "é".repeat(QUOTED_CHARS_MAX)));
    }
}
