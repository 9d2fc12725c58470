//! How far one moment stands behind another.

use std::fmt;

use super::{EventTime, Span};

/// How far one moment stands behind another, in whole milliseconds, cut downwards; less than nothing
/// when it stands ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lag(i64);

impl Lag {
    /// From `earlier` to `later`.
    pub const fn between(earlier: EventTime, later: EventTime) -> Self {
        Self(later.as_micros().saturating_sub(earlier.as_micros()).div_euclid(1_000))
    }

    /// This many milliseconds.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// The milliseconds.
    pub const fn as_millis(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Lag {
    /// As a [`Span`] is written, after a `-` when it is less than nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        write!(f, "{sign}{}", Span::from_micros(self.0.saturating_abs().saturating_mul(1_000)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lag_is_cut_downwards_and_may_be_less_than_nothing() {
        for (earlier, later, shown) in [
            (0, 90_000_000, "90 seconds"),
            (0, 0, "0 seconds"),
            (0, 1_999, "1 millisecond"),
            (1, 0, "-1 millisecond"),
            (60_000_000, 0, "-1 minute"),
        ] {
            let lag = Lag::between(EventTime::from_micros(earlier), EventTime::from_micros(later));
            assert_eq!(lag.to_string(), shown);
        }
    }
}
