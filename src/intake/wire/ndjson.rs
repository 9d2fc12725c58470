//! Bodies of lines, each a JSON value: what is wrong with a line is that line's alone.

use super::{BodyError, BodyLimits, DEPTH_MAX, Item, ItemForm};
use crate::intake::raw_json::is_deeper_than;

/// Why a line could not be looked at as JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnreadableLine {
    /// Not UTF-8.
    #[error("The line is not UTF-8: byte {position} of it belongs to no character")]
    NotUtf8 {
        /// The first byte of the line that is wrong, counted from 0.
        position: usize,
    },
    /// Lists and objects stand in one another too deep.
    #[error("The line is nested deeper than {DEPTH_MAX} levels; an event needs two")]
    TooDeep,
}

impl UnreadableLine {
    /// The stable code that programs tell it by.
    pub(in crate::intake) const fn code(self) -> &'static str {
        match self {
            Self::NotUtf8 { .. } => "not_utf8",
            Self::TooDeep => "too_deep",
        }
    }
}

/// The lines of a body that are not blank, each under its number from 0, blank ones counted.
pub(super) fn line_items<'body>(
    body: &'body [u8],
    limits: &BodyLimits,
) -> Result<Vec<Item<'body>>, BodyError> {
    let mut items = Vec::new();
    let mut count = 0_usize;
    for (index, line) in body.split(|byte| *byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        if count < limits.events_max {
            items.push(Item { index, text: text_of(line), form: ItemForm::Event });
        }
        count += 1;
    }
    if count > limits.events_max {
        return Err(BodyError::TooManyEvents { count, max: limits.events_max });
    }
    Ok(items)
}

fn text_of(line: &[u8]) -> Result<&str, UnreadableLine> {
    let text = std::str::from_utf8(line)
        .map_err(|error| UnreadableLine::NotUtf8 { position: error.valid_up_to() })?;
    if is_deeper_than(text, DEPTH_MAX) { Err(UnreadableLine::TooDeep) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Line<'body> = (usize, Result<&'body str, UnreadableLine>);

    fn lines(body: &[u8]) -> Result<Vec<Line<'_>>, BodyError> {
        let limits = BodyLimits { events_max: 3, ..BodyLimits::default() };
        let items = line_items(body, &limits)?;
        Ok(items.iter().map(|item| (item.index(), item.text())).collect())
    }

    #[test]
    fn every_line_that_is_not_blank_is_an_item_under_its_number() {
        for (case, body, expected) in [
            ("nothing", "", vec![]),
            ("blank lines alone", "\n \r\n\t\n", vec![]),
            ("one line without an end", "{}", vec![(0, Ok("{}"))]),
            ("a final newline", "1\n2\n", vec![(0, Ok("1")), (1, Ok("2"))]),
            ("carriage returns", "1\r\n2\r\n", vec![(0, Ok("1")), (1, Ok("2"))]),
            ("blank lines count", "\n1\n\n2\n\n", vec![(1, Ok("1")), (3, Ok("2"))]),
            ("indented", "  1 \n", vec![(0, Ok("1"))]),
            ("no JSON", "{\nsales\n", vec![(0, Ok("{")), (1, Ok("sales"))]),
        ] {
            assert_eq!(lines(body.as_bytes()), Ok(expected), "{case}");
        }
    }

    #[test]
    fn a_line_that_is_no_text_costs_nobody_but_itself() {
        let not_utf8 = Err(UnreadableLine::NotUtf8 { position: 2 });
        assert_eq!(lines(b"1\n[\"\xFF\"]\n2"), Ok(vec![(0, Ok("1")), (1, not_utf8), (2, Ok("2"))]));
        let deep = "[".repeat(200) + &"]".repeat(200) + "\n1";
        let expected = vec![(0, Err(UnreadableLine::TooDeep)), (1, Ok("1"))];
        assert_eq!(lines(deep.as_bytes()), Ok(expected));
    }

    #[test]
    fn too_many_lines_are_counted_without_the_blank_ones() {
        let fault = BodyError::TooManyEvents { count: 4, max: 3 };
        assert_eq!(lines(b"1\n2\n\n3\n4\n"), Err(fault));
    }
}
