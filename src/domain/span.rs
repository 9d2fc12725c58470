//! Lengths of time in whole milliseconds, and their texts.

use std::fmt;
use std::str::FromStr;

const UNITS_MILLIS: [(&str, i64); 6] = [
    ("week", 604_800_000),
    ("day", 86_400_000),
    ("hour", 3_600_000),
    ("minute", 60_000),
    ("second", 1_000),
    ("millisecond", 1),
];
/// Ten years: longer than any window or delay of a shop, and far from overflow.
const MILLIS_MAX: i64 = 3_660 * 86_400_000;

/// A length of time in whole milliseconds: a window's size, a delay, an interval. As a text it is
/// at most 3,660 days.
///
/// Reads `"90 seconds"`, `"1 hour"`, `"2 days"` and ISO 8601 (`"PT1H"`, `"P1DT12H"`); writes the
/// first form in the largest unit that divides it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(i64);

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// One hour.
    pub const HOUR: Self = Self(3_600_000);
    /// One day of 24 hours.
    pub const DAY: Self = Self(86_400_000);

    /// The length of this many microseconds, cut to whole milliseconds; nothing for less than none.
    pub fn from_micros(micros: i64) -> Self {
        Self((micros / 1_000).max(0))
    }

    /// The length in whole milliseconds.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// The length in microseconds.
    pub const fn as_micros(self) -> i64 {
        self.0.saturating_mul(1_000)
    }

    /// The same length for timers.
    pub const fn to_duration(self) -> std::time::Duration {
        std::time::Duration::from_millis(self.0.unsigned_abs())
    }
}

/// A text that is not a length of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSpan {
    /// Not one of the forms.
    #[error("is not a duration such as `90 seconds`, `10 minutes`, `1 hour`, `2 days` or `PT1H`")]
    Form,
    /// Parts of a millisecond.
    #[error("is not a whole number of milliseconds")]
    Fraction,
    /// Longer than the longest allowed.
    #[error("is longer than 3,660 days")]
    TooLong,
}

impl FromStr for Span {
    type Err = InvalidSpan;

    /// # Errors
    /// [`InvalidSpan`] when the text has neither form, a fraction of a millisecond, or is too long.
    fn from_str(text: &str) -> Result<Self, InvalidSpan> {
        let millis = match text.strip_prefix('P') {
            Some(rest) => parse_iso(rest)?,
            None => parse_words(text)?,
        };
        if millis > MILLIS_MAX { Err(InvalidSpan::TooLong) } else { Ok(Self(millis)) }
    }
}

fn parse_words(text: &str) -> Result<i64, InvalidSpan> {
    let (count, unit) = text.trim().split_once(' ').ok_or(InvalidSpan::Form)?;
    let unit = unit.trim();
    let singular = unit.strip_suffix('s').unwrap_or(unit);
    let (_, unit_millis) =
        UNITS_MILLIS.into_iter().find(|(name, _)| *name == singular).ok_or(InvalidSpan::Form)?;
    whole(count)?.checked_mul(unit_millis).ok_or(InvalidSpan::TooLong)
}

/// Reads what follows the `P`: weeks, days, then after `T` hours, minutes, seconds, each once.
fn parse_iso(text: &str) -> Result<i64, InvalidSpan> {
    let (date, clock) = match text.split_once('T') {
        Some((_, "")) => return Err(InvalidSpan::Form),
        Some(parts) => parts,
        None if text.is_empty() => return Err(InvalidSpan::Form),
        None => (text, ""),
    };
    let date_millis = parse_iso_part(date, &[('W', 604_800_000), ('D', 86_400_000)])?;
    let clock_units = [('H', 3_600_000), ('M', 60_000), ('S', 1_000)];
    let clock_millis = parse_iso_part(clock, &clock_units)?;
    date_millis.checked_add(clock_millis).ok_or(InvalidSpan::TooLong)
}

fn parse_iso_part(mut text: &str, units: &[(char, i64)]) -> Result<i64, InvalidSpan> {
    let mut total: i64 = 0;
    for &(letter, unit_millis) in units {
        let Some((count, rest)) = text.split_once(letter) else { continue };
        let millis = match count.split_once('.') {
            Some((seconds, fraction)) if letter == 'S' => thousandths(seconds, fraction)?,
            Some(_) => return Err(InvalidSpan::Form),
            None => whole(count)?.checked_mul(unit_millis).ok_or(InvalidSpan::TooLong)?,
        };
        total = total.checked_add(millis).ok_or(InvalidSpan::TooLong)?;
        text = rest;
    }
    if text.is_empty() { Ok(total) } else { Err(InvalidSpan::Form) }
}

fn thousandths(seconds: &str, fraction: &str) -> Result<i64, InvalidSpan> {
    let digits = fraction.trim_end_matches('0');
    if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(InvalidSpan::Form);
    }
    if digits.len() > 3 {
        return Err(InvalidSpan::Fraction);
    }
    let millis = whole(&format!("{digits:0<3}"))?;
    whole(seconds)?
        .checked_mul(1_000)
        .and_then(|whole_millis| whole_millis.checked_add(millis))
        .ok_or(InvalidSpan::TooLong)
}

fn whole(digits: &str) -> Result<i64, InvalidSpan> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(InvalidSpan::Form);
    }
    digits.parse().map_err(|_| InvalidSpan::TooLong)
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = UNITS_MILLIS[1..].iter().find(|(_, unit)| self.0 != 0 && self.0 % unit == 0);
        let (unit, unit_millis) = named.copied().unwrap_or(("second", 1_000));
        let count = self.0 / unit_millis;
        write!(f, "{count} {unit}{}", if count == 1 { "" } else { "s" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_duration_are_read_and_one_is_written() {
        for (text, written) in [
            ("90 seconds", "90 seconds"),
            ("60 seconds", "1 minute"),
            ("1 hour", "1 hour"),
            ("PT1H", "1 hour"),
            ("P1DT12H", "36 hours"),
            ("P2W", "14 days"),
            ("PT0.250S", "250 milliseconds"),
            ("PT1.5S", "1500 milliseconds"),
            ("0 seconds", "0 seconds"),
            ("PT0S", "0 seconds"),
            ("2 days", "2 days"),
        ] {
            let span: Span = text.parse().expect(text);
            assert_eq!(span.to_string(), written, "{text}");
            assert_eq!(written.parse(), Ok(span), "{text} read back");
        }
    }

    #[test]
    fn what_is_not_a_duration_is_refused() {
        for (text, fault) in [
            ("", InvalidSpan::Form),
            ("hour", InvalidSpan::Form),
            ("1hour", InvalidSpan::Form),
            ("-1 hour", InvalidSpan::Form),
            ("1.5 hours", InvalidSpan::Form),
            ("1 fortnight", InvalidSpan::Form),
            ("P", InvalidSpan::Form),
            ("PT", InvalidSpan::Form),
            ("P1H", InvalidSpan::Form),
            ("P1M", InvalidSpan::Form),
            ("PT1S1H", InvalidSpan::Form),
            ("PT0.0001S", InvalidSpan::Fraction),
            ("3661 days", InvalidSpan::TooLong),
            ("99999999999999999999 days", InvalidSpan::TooLong),
        ] {
            assert_eq!(text.parse::<Span>(), Err(fault), "{text}");
        }
    }
}
