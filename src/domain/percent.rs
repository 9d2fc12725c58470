//! Shares of a whole as percentages, exact to a ten-thousandth of a percent.

use std::fmt;
use std::str::FromStr;

/// Decimals that a percentage keeps.
const DECIMALS: usize = 4;
const WHOLE: u32 = 1_000_000;

/// A share of a whole, from nothing to 100 %, in ten-thousandths of a percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(u32);

impl Percent {
    /// The share that `part` has of `whole`, cut and never rounded up: only all of it is 100 %.
    /// Nothing where there is no whole.
    pub fn of(part: u64, whole: u64) -> Option<Self> {
        let share = u128::from(part.min(whole)) * u128::from(WHOLE);
        share.checked_div(u128::from(whole))?.try_into().map(Self).ok()
    }

    /// Whether `part` of `whole` is this share or more.
    pub fn is_reached_by(self, part: u64, whole: u64) -> bool {
        u128::from(part) * u128::from(WHOLE) >= u128::from(whole) * u128::from(self.0)
    }
}

/// A text that is no percentage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not a percentage such as `99.9%`: above 0, at most 100, with at most 4 decimals")]
pub struct InvalidPercent;

impl FromStr for Percent {
    type Err = InvalidPercent;

    /// Reads `99.9%` and, the sign being awkward in an address, `99.9`.
    ///
    /// # Errors
    /// [`InvalidPercent`] also for nothing at all and for more than 100.
    fn from_str(text: &str) -> Result<Self, InvalidPercent> {
        let digits = text.strip_suffix('%').unwrap_or(text);
        let (whole, decimals) = digits.split_once('.').unwrap_or((digits, "0"));
        let plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !plain(whole) || !plain(decimals) || decimals.len() > DECIMALS {
            return Err(InvalidPercent);
        }
        let units = format!("{whole}{decimals:0<DECIMALS$}").parse().map_err(|_| InvalidPercent)?;
        if (1..=WHOLE).contains(&units) { Ok(Self(units)) } else { Err(InvalidPercent) }
    }
}

impl fmt::Display for Percent {
    /// As few decimals as it has.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / 10_000, self.0 % 10_000);
        match format!("{rest:04}").trim_end_matches('0') {
            "" => write!(f, "{whole}%"),
            decimals => write!(f, "{whole}.{decimals}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_is_read_with_or_without_its_sign() {
        for (text, shown) in [
            ("99.9%", Some("99.9%")),
            ("99.9", Some("99.9%")),
            ("100%", Some("100%")),
            ("0.0001%", Some("0.0001%")),
            ("99.9900", Some("99.99%")),
            ("0%", None),
            ("100.0001%", None),
            ("99.99999", None),
            ("99.", None),
            (".5", None),
            ("-1", None),
            ("%", None),
            ("", None),
            ("99999999999999", None),
        ] {
            let read = text.parse::<Percent>().ok().map(|percent| percent.to_string());
            assert_eq!(read.as_deref(), shown, "{text}");
        }
    }

    #[test]
    fn a_share_is_cut_so_that_only_all_of_it_is_the_whole() {
        for (part, whole, shown) in [
            (0, 3, Some("0%")),
            (2, 3, Some("66.6666%")),
            (9_999_999, 10_000_000, Some("99.9999%")),
            (u64::MAX, u64::MAX, Some("100%")),
            (0, 0, None),
        ] {
            let share = Percent::of(part, whole).map(|percent| percent.to_string());
            assert_eq!(share.as_deref(), shown, "{part} of {whole}");
        }
        let target: Percent = "99.9%".parse().expect("a percentage");
        assert!(target.is_reached_by(999, 1_000) && !target.is_reached_by(998, 1_000));
    }
}
