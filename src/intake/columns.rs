//! Rows of a table as items: each named column is a field of an event.
//!
//! A row is written as the JSON line that a till would have posted, so that it passes the very same
//! check. An empty cell is a value left out.

use serde::Serialize;

use super::faults::Quoted;
use super::fields::Field;
use crate::domain::Attributes;

const ATTRIBUTE_PREFIX: &str = "attributes.";

/// Why a header does not say what the columns are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHeader {
    /// There is no header.
    #[error("the header is empty; its columns must be {}", known())]
    Empty,
    /// A column that is no field.
    #[error(
        "column {number} is {name}, which is no field of an event; the columns are {}",
        known()
    )]
    Unknown {
        /// Which column, from 1.
        number: usize,
        /// Its name, cut short where it is long, in backticks.
        name: String,
    },
    /// Two columns of one name.
    #[error("the column {name} is there twice; name it once")]
    Twice {
        /// The name in backticks.
        name: String,
    },
    /// No column for a field that every event has.
    #[error("there is no column {name}, which every event needs; the columns are {}", known())]
    Missing {
        /// The name in backticks.
        name: &'static str,
    },
}

fn known() -> String {
    let names = Field::ALL.into_iter().filter(|field| *field != Field::Attributes);
    let names: Vec<&str> = names.map(Field::name).collect();
    format!("{}, attributes.<name>", names.join(", "))
}

/// What the columns of a table are, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns(Vec<Column>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Column {
    Field(Field),
    Attribute(String),
}

impl Columns {
    /// Reads the names of the columns: those of the fields, and `attributes.<name>`.
    ///
    /// # Errors
    /// [`InvalidHeader`] names the first column at fault, or one that is missing.
    pub fn of_header<'a>(names: impl Iterator<Item = &'a str>) -> Result<Self, InvalidHeader> {
        let mut columns = Vec::new();
        for (index, name) in names.enumerate() {
            let Some(column) = Column::of_name(name) else {
                let name = Quoted(name).to_string();
                return Err(InvalidHeader::Unknown { number: index + 1, name });
            };
            if columns.contains(&column) {
                return Err(InvalidHeader::Twice { name: Quoted(name).to_string() });
            }
            columns.push(column);
        }
        if columns.is_empty() {
            return Err(InvalidHeader::Empty);
        }
        let has = |field| columns.contains(&Column::Field(field));
        let needed = [
            (has(Field::OrderId), "`order_id`"),
            (has(Field::Status), "`status`"),
            (has(Field::Amount) || has(Field::Total), "`amount`"),
            (has(Field::EventTime), "`event_time`"),
        ];
        match needed.into_iter().find(|(is_there, _)| !is_there) {
            Some((_, name)) => Err(InvalidHeader::Missing { name }),
            None => Ok(Self(columns)),
        }
    }

    /// How many there are.
    pub const fn count(&self) -> usize {
        self.0.len()
    }

    /// Appends a row as one line of JSON, without the line's end.
    pub fn write_item<'a>(&self, cells: impl Iterator<Item = &'a str>, line: &mut Vec<u8>) {
        let mut attributes = Vec::new();
        line.push(b'{');
        let start = line.len();
        let filled = self.0.iter().zip(cells).filter(|(_, cell)| !cell.is_empty());
        for (column, cell) in filled {
            match column {
                Column::Field(field) => write_member(line, start, field.name(), |line| {
                    // The one field that must be a number; what is none goes to its check as it is.
                    if *field == Field::ItemCount && cell.parse::<serde_json::Number>().is_ok() {
                        line.extend_from_slice(cell.as_bytes());
                    } else {
                        write_json(line, cell);
                    }
                }),
                Column::Attribute(name) => attributes.push((name, cell)),
            }
        }
        if !attributes.is_empty() {
            write_member(line, start, Field::Attributes.name(), |line| {
                line.push(b'{');
                let start = line.len();
                for (name, cell) in attributes {
                    write_member(line, start, name, |line| write_json(line, cell));
                }
                line.push(b'}');
            });
        }
        line.push(b'}');
    }
}

impl Column {
    fn of_name(name: &str) -> Option<Self> {
        if let Some(name) = name.strip_prefix(ATTRIBUTE_PREFIX) {
            let fits = (1..=Attributes::NAME_CHARS_MAX).contains(&name.chars().count());
            return fits.then(|| Self::Attribute(name.to_owned()));
        }
        Field::of_name(name).filter(|field| *field != Field::Attributes).map(Self::Field)
    }
}

/// Writes a member of the object whose inside begins at `start`.
fn write_member(line: &mut Vec<u8>, start: usize, name: &str, value: impl FnOnce(&mut Vec<u8>)) {
    if line.len() > start {
        line.push(b',');
    }
    write_json(line, name);
    line.push(b':');
    value(line);
}

fn write_json(line: &mut Vec<u8>, text: &str) {
    text.serialize(&mut serde_json::Serializer::new(line))
        .expect("a text can always be written as JSON, and memory takes what is written to it");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intake::{BodyFormat, BodyLimits, EventDefaults, events};

    const HEADER: [&str; 7] = [
        "event_id",
        "order_id",
        "status",
        "amount",
        "event_time",
        "item_count",
        "attributes.colour",
    ];

    fn columns(names: &[&str]) -> Result<Columns, InvalidHeader> {
        Columns::of_header(names.iter().copied())
    }

    fn line(cells: &[&str]) -> String {
        let mut line = Vec::new();
        columns(&HEADER).unwrap().write_item(cells.iter().copied(), &mut line);
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn a_header_names_every_column_once_and_none_that_an_event_needs_is_missing() {
        for (case, names, said) in [
            ("nothing", vec![], "the header is empty"),
            ("no field", vec!["order_id", "colour"], "column 2 is `colour`, which is no field"),
            ("another case", vec!["Order_id"], "column 1 is `Order_id`, which is no field"),
            ("all attributes at once", vec!["attributes"], "column 1 is `attributes`"),
            ("no name", vec!["attributes."], "column 1 is `attributes.`"),
            ("twice", vec!["status", "status"], "the column `status` is there twice"),
            ("no time", vec!["order_id", "status", "total"], "no column `event_time`"),
            ("no amount", vec!["order_id", "status", "event_time"], "no column `amount`"),
        ] {
            let error = columns(&names).unwrap_err().to_string();
            assert!(error.contains(said), "{case}: {error}");
        }
        assert_eq!(columns(&HEADER).unwrap().count(), HEADER.len());
    }

    #[test]
    fn a_row_is_the_line_that_a_till_would_have_posted() {
        for (case, cells, expected) in [
            (
                "everything",
                ["e1", "1001", "placed", "20.00", "2026-10-01T09:05:00Z", "2", "red"],
                r#"{"event_id":"e1","order_id":"1001","status":"placed","amount":"20.00","event_time":"2026-10-01T09:05:00Z","item_count":2,"attributes":{"colour":"red"}}"#,
            ),
            ("empty cells are left out", ["", "1", "", "", "", "", ""], r#"{"order_id":"1"}"#),
            ("a count that is none", ["", "", "", "", "", "two", ""], r#"{"item_count":"two"}"#),
            (
                "quotes and line ends",
                ["", "a\"b\nc", "", "", "", "", "\\"],
                r#"{"order_id":"a\"b\nc","attributes":{"colour":"\\"}}"#,
            ),
        ] {
            assert_eq!(line(&cells), expected, "{case}");
        }
    }

    #[test]
    fn a_row_is_the_same_event_as_its_json() {
        let row = line(&["", "1001", "placed", "20", "2026-10-01T09:05:00Z", "2", ""]);
        let json = r#"{"order_id":1001,"status":"placed","amount":20.00,"item_count":2,"event_time":"2026-10-01T11:05:00+02:00"}"#;
        let defaults = EventDefaults { currency: "USD".parse().unwrap() };
        let body = format!("{row}\n{json}");
        let items =
            events(body.as_bytes(), BodyFormat::NdJson, &defaults, &BodyLimits::default()).unwrap();
        assert_eq!(items[0].outcome, items[1].outcome);
        assert!(items[0].outcome.is_ok());
    }
}
