//! The faults of one item, gathered until all of them are known.

use std::fmt;

use crate::domain::{Fault, InvalidAmount, InvalidCurrency, InvalidEventTime, InvalidText};

/// More faults than an honest item has; a hostile one must not fill the memory with its own.
const FAULTS_MAX: usize = 40;
/// The longest offending value or name that an answer repeats, in characters.
const QUOTED_CHARS_MAX: usize = 40;

/// The faults found so far.
#[derive(Debug, Default)]
pub(super) struct Faults {
    found: Vec<Fault>,
    /// Where in the item the places now read stand.
    within: &'static str,
}

impl Faults {
    /// Notes one fault more; after [`FAULTS_MAX`] only that there are more.
    pub(super) fn push(&mut self, pointer: &str, code: &'static str, detail: fmt::Arguments<'_>) {
        if self.found.len() < FAULTS_MAX {
            let pointer = [self.within, pointer].concat();
            self.found.push(Fault::new(pointer, code, detail.to_string()));
        } else if self.found.len() == FAULTS_MAX {
            let detail = format!("The item has more faults than the {FAULTS_MAX} listed here");
            self.found.push(Fault::new("", "too_many", detail));
        }
    }

    /// From here on pointers begin at the member `within` of the item, `""` being the item itself.
    pub(super) const fn point_within(&mut self, within: &'static str) {
        self.within = within;
    }

    /// Whether nothing was wrong.
    pub(super) const fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// All of them, in the order found.
    pub(super) fn into_vec(self) -> Vec<Fault> {
        self.found
    }
}

/// How many faults of one body may still be told in full. The bound is for memory: each is some
/// hundred bytes, and a body of ten thousand items could have a fault for every few of its own.
#[derive(Debug)]
pub(super) struct FaultRoom(usize);

impl Default for FaultRoom {
    /// Four for each item of the largest body: what an event without any required field has.
    fn default() -> Self {
        Self(40_000)
    }
}

impl FaultRoom {
    /// Takes room for the faults of one item; of those that find none, the first stays.
    pub(super) fn bound(&mut self, faults: &mut Vec<Fault>) {
        if faults.len() <= self.0 || faults.len() <= 1 {
            self.0 = self.0.saturating_sub(faults.len());
            return;
        }
        self.0 = 0;
        faults.truncate(1);
        let detail = "The item has more faults; the body has too many to list them all";
        faults.push(Fault::new("", "too_many", detail));
        faults.shrink_to_fit();
    }
}

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

/// The JSON pointer (RFC 6901) of the member `name` of what `parent` points at; `parent` itself
/// when the name is too long to repeat.
pub(super) fn pointer_to(parent: &str, name: &str) -> String {
    if name.chars().nth(64).is_some() {
        return parent.to_owned();
    }
    format!("{parent}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// A refusal of a domain type, with the code that programs tell it by.
pub(super) trait Coded: fmt::Display {
    /// The stable code.
    fn code(&self) -> &'static str;
}

impl Coded for InvalidText {
    fn code(&self) -> &'static str {
        match self {
            Self::Empty { .. } => "empty",
            Self::TooLong { .. } => "too_long",
            Self::Nul | Self::NotAName => "invalid",
        }
    }
}

impl Coded for InvalidAmount {
    fn code(&self) -> &'static str {
        match self {
            Self::OutOfBounds => "out_of_range",
            Self::Exponent | Self::TooManyDecimals | Self::NotADecimal => "invalid",
        }
    }
}

impl Coded for InvalidCurrency {
    fn code(&self) -> &'static str {
        "invalid"
    }
}

impl Coded for InvalidEventTime {
    fn code(&self) -> &'static str {
        match self {
            Self::OutOfRange => "out_of_range",
            Self::NoOffset
            | Self::SpaceForPlus
            | Self::SpaceForT
            | Self::LeapSecond
            | Self::HourTwentyFour
            | Self::NotRfc3339 => "invalid",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_item_cannot_fill_the_answer_with_its_faults() {
        let mut faults = Faults::default();
        for number in 0..10_000 {
            faults.push("", "unknown_field", format_args!("{number}"));
        }
        let faults = faults.into_vec();
        assert_eq!(faults.len(), FAULTS_MAX + 1);
        assert_eq!(faults[FAULTS_MAX].code, "too_many");
    }

    #[test]
    fn a_hostile_body_cannot_fill_the_answer_either() {
        let faults = |count| vec![Fault::new("/amount", "missing", "x"); count];
        let mut room = FaultRoom(6);
        for (had, kept) in [(4, 4), (1, 1), (4, 2), (1, 1), (2, 2), (3, 2)] {
            let mut faults = faults(had);
            room.bound(&mut faults);
            assert_eq!(faults.len(), kept, "{had}");
        }
    }

    #[test]
    fn a_pointer_begins_where_the_places_stand() {
        let mut faults = Faults::default();
        faults.push("/source", "empty", format_args!(""));
        faults.point_within("/data");
        faults.push("/amount", "missing", format_args!(""));
        let pointers: Vec<String> =
            faults.into_vec().into_iter().map(|fault| fault.pointer).collect();
        assert_eq!(pointers, ["/source", "/data/amount"]);
    }

    #[test]
    fn a_pointer_escapes_what_rfc_6901_asks_for() {
        assert_eq!(pointer_to("/attributes", "a/b~c"), "/attributes/a~1b~0c");
        assert_eq!(pointer_to("/attributes", &"x".repeat(65)), "/attributes");
    }

    #[test]
    fn a_long_value_is_cut_short_between_characters() {
        assert_eq!(Quoted("20.0").to_string(), "`20.0`");
        let quoted = Quoted(&"é".repeat(1000)).to_string();
        assert_eq!(quoted, format!("`{}…`", "é".repeat(QUOTED_CHARS_MAX)));
    }
}
