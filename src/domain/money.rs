//! Money: exact fixed point from the wire to the report, never a binary float.

use std::fmt;
use std::str::FromStr;

/// Decimals that every amount keeps.
const DECIMALS: usize = 4;
/// 10^14 in ten-thousandths: amounts stay below it on either side of zero.
const TEN_THOUSANDTHS_BOUND: i64 = 1_000_000_000_000_000_000;

/// The money of one event in ten-thousandths of its currency; negative for a refund.
///
/// Its magnitude is below 10^14 units of the currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(i64);

impl Amount {
    /// The amount in ten-thousandths of the currency's unit.
    pub const fn as_ten_thousandths(self) -> i64 {
        self.0
    }

    /// The amount of this many ten-thousandths, unless it is out of bounds.
    pub const fn from_ten_thousandths(units: i64) -> Option<Self> {
        if units > -TEN_THOUSANDTHS_BOUND && units < TEN_THOUSANDTHS_BOUND {
            Some(Self(units))
        } else {
            None
        }
    }
}

/// A text that is not an acceptable amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAmount {
    /// An exponent, as in `1e3`.
    #[error("has an exponent; write the digits out, as in `1000.00`")]
    Exponent,
    /// Five or more decimals that are not zeros.
    #[error("has more than 4 decimals")]
    TooManyDecimals,
    /// 10^14 or more.
    #[error("is out of bounds; its magnitude must be below 100000000000000")]
    OutOfBounds,
    /// Anything else.
    #[error("is not a plain decimal such as `68.50` or `-4.50`")]
    NotADecimal,
}

impl FromStr for Amount {
    type Err = InvalidAmount;

    /// Reads a plain decimal: an optional `-`, digits, and at most four decimals (zeros apart).
    ///
    /// # Errors
    /// [`InvalidAmount`] says what is wrong.
    fn from_str(text: &str) -> Result<Self, InvalidAmount> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, decimals) = match digits.split_once('.') {
            Some((_, "")) => return Err(InvalidAmount::NotADecimal),
            Some(parts) => parts,
            None => (digits, ""),
        };
        if whole.is_empty() || !all_digits(whole) || !all_digits(decimals) {
            let exponent = digits.starts_with(|first: char| first.is_ascii_digit())
                && digits.bytes().all(|byte| b"0123456789.eE+-".contains(&byte))
                && digits.contains(['e', 'E']);
            return Err(if exponent {
                InvalidAmount::Exponent
            } else {
                InvalidAmount::NotADecimal
            });
        }
        let decimals = decimals.trim_end_matches('0');
        if decimals.len() > DECIMALS {
            return Err(InvalidAmount::TooManyDecimals);
        }
        let whole = whole.trim_start_matches('0');
        let magnitude = format!("{whole}{decimals:0<DECIMALS$}")
            .parse::<i64>()
            .map_err(|_| InvalidAmount::OutOfBounds)?;
        let units = if negative { -magnitude } else { magnitude };
        Self::from_ten_thousandths(units).ok_or(InvalidAmount::OutOfBounds)
    }
}

fn all_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A sum of amounts of one currency, in ten-thousandths.
///
/// Wide enough for any log: 2^63 amounts of the largest magnitude stay below 10^37, and an `i128`
/// holds 1.7 × 10^38.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Revenue(i128);

impl Revenue {
    /// No money.
    pub const ZERO: Self = Self(0);

    /// The sum of this many ten-thousandths.
    pub const fn from_ten_thousandths(units: i128) -> Self {
        Self(units)
    }

    /// The sum in ten-thousandths of the currency's unit.
    pub const fn as_ten_thousandths(self) -> i128 {
        self.0
    }

    /// This sum and one amount more.
    #[must_use]
    pub fn plus_amount(self, amount: Amount) -> Self {
        Self(self.0.saturating_add(i128::from(amount.0)))
    }

    /// Both sums together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// This sum less another.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

/// An ISO 4217 currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Currency(iso_currency::Currency);

impl Currency {
    /// The three capital letters of ISO 4217.
    pub fn code(self) -> &'static str {
        self.0.code()
    }

    /// The decimals that sums of this currency usually show: 2 for USD, 0 for JPY.
    pub fn usual_decimals(self) -> usize {
        self.0.exponent().map_or(0, usize::from)
    }
}

impl Ord for Currency {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.code().cmp(other.code())
    }
}

impl PartialOrd for Currency {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// A text that names no currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not an ISO 4217 currency code in capital letters, such as `USD`")]
pub struct InvalidCurrency;

impl FromStr for Currency {
    type Err = InvalidCurrency;

    fn from_str(text: &str) -> Result<Self, InvalidCurrency> {
        let currency = iso_currency::Currency::from_code(text).ok_or(InvalidCurrency)?;
        if currency.code() == text { Ok(Self(currency)) } else { Err(InvalidCurrency) }
    }
}

/// A sum with its currency, for showing: exact, with at least the currency's usual decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Money {
    /// How much.
    pub revenue: Revenue,
    /// Of what.
    pub currency: Currency,
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.revenue.0 < 0 { "-" } else { "" };
        let magnitude = self.revenue.0.unsigned_abs();
        let (whole, rest) = (magnitude / 10_000, magnitude % 10_000);
        let all = format!("{rest:04}");
        let usual = self.currency.usual_decimals().min(DECIMALS);
        let shown = all.trim_end_matches('0').len().max(usual);
        match &all[..shown] {
            "" => write!(f, "{sign}{whole}"),
            decimals => write!(f, "{sign}{whole}.{decimals}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_read_from_its_text_exactly() {
        for (text, units) in [
            ("20.00", 200_000),
            ("30.5", 305_000),
            ("0", 0),
            ("-0", 0),
            ("-4.50", -45_000),
            ("12.3456", 123_456),
            ("12.34560000", 123_456),
            ("007", 70_000),
            ("99999999999999.9999", 999_999_999_999_999_999),
        ] {
            let amount: Amount = text.parse().expect(text);
            assert_eq!(amount.as_ten_thousandths(), units, "{text}");
        }
    }

    #[test]
    fn what_is_no_plain_decimal_is_refused() {
        for (text, fault) in [
            ("1e3", InvalidAmount::Exponent),
            ("1E400", InvalidAmount::Exponent),
            ("NaN", InvalidAmount::NotADecimal),
            ("Infinity", InvalidAmount::NotADecimal),
            ("", InvalidAmount::NotADecimal),
            ("-", InvalidAmount::NotADecimal),
            ("+1", InvalidAmount::NotADecimal),
            (".5", InvalidAmount::NotADecimal),
            ("5.", InvalidAmount::NotADecimal),
            ("1,50", InvalidAmount::NotADecimal),
            (" 1", InvalidAmount::NotADecimal),
            ("1.23456", InvalidAmount::TooManyDecimals),
            ("100000000000000", InvalidAmount::OutOfBounds),
            ("-100000000000000", InvalidAmount::OutOfBounds),
            ("99999999999999999999999999", InvalidAmount::OutOfBounds),
        ] {
            assert_eq!(text.parse::<Amount>(), Err(fault), "{text}");
        }
    }

    #[test]
    fn money_shows_at_least_the_usual_decimals_of_its_currency() {
        for (units, code, shown) in [
            (685_000, "USD", "68.50"),
            (-45_000, "USD", "-4.50"),
            (123_456, "USD", "12.3456"),
            (0, "USD", "0.00"),
            (12_000_000, "JPY", "1200"),
            (12_005_000, "JPY", "1200.5"),
            (15_000, "BHD", "1.500"),
            (-1, "USD", "-0.0001"),
        ] {
            let currency = code.parse().expect(code);
            let money = Money { revenue: Revenue::from_ten_thousandths(units), currency };
            assert_eq!(money.to_string(), shown);
        }
    }

    #[test]
    fn only_capital_iso_4217_codes_are_currencies() {
        for (code, known) in
            [("USD", true), ("EUR", true), ("usd", false), ("XYZ", false), ("", false)]
        {
            assert_eq!(code.parse::<Currency>().is_ok(), known, "{code}");
        }
    }
}
