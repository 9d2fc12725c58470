//! Event times and watermarks: UTC, counted from the Unix epoch.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, SecondsFormat, Timelike, Utc};

use super::Span;

const MICROS_PER_MILLI: i64 = 1_000;
/// 1900-01-01T00:00:00Z, the first event time accepted.
const EARLIEST_MICROS: i64 = -2_208_988_800_000_000;
/// 2200-01-01T00:00:00Z, the first event time after those accepted.
const TOO_LATE_MICROS: i64 = 7_258_118_400_000_000;

/// A moment in event time, in UTC microseconds; also the bound of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventTime(i64);

impl EventTime {
    /// 1900-01-01T00:00:00Z: no event is older.
    pub const EARLIEST: Self = Self(EARLIEST_MICROS);

    /// The last microsecond of 2199: no event is newer.
    pub const LATEST: Self = Self(TOO_LATE_MICROS - 1);

    /// The moment this many microseconds after the Unix epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the Unix epoch.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// The moment `span` later.
    #[must_use]
    pub const fn plus(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.as_micros()))
    }

    /// The moment `span` earlier.
    #[must_use]
    pub const fn minus(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.as_micros()))
    }

    /// How long after `earlier` this moment is, cut to whole milliseconds; nothing when it is not.
    pub fn since(self, earlier: Self) -> Span {
        Span::from_micros(self.0.saturating_sub(earlier.0))
    }

    /// The last moment `offset + k * step` at or before this one (floor, so right before 1970 too).
    ///
    /// A `step` of nothing leaves the moment as it is; no window has one.
    #[must_use]
    pub const fn floor_to(self, step: Span, offset: Span) -> Self {
        let since_boundary =
            self.0.saturating_sub(offset.as_micros()).checked_rem_euclid(step.as_micros());
        match since_boundary {
            Some(since) => Self(self.0.saturating_sub(since)),
            None => self,
        }
    }

    /// The same moment for SQL.
    pub fn to_utc(self) -> DateTime<Utc> {
        DateTime::from_timestamp_micros(self.0).unwrap_or(DateTime::<Utc>::MAX_UTC)
    }

    /// The moment that SQL answered; Postgres keeps microseconds, so nothing is lost.
    pub const fn from_utc(time: DateTime<Utc>) -> Self {
        Self(time.timestamp_micros())
    }
}

impl fmt::Display for EventTime {
    /// RFC 3339 in UTC with `Z` and as many digits as the time has, at most six.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.to_utc().to_rfc3339_opts(SecondsFormat::Micros, true);
        let digits = text.trim_end_matches('Z').trim_end_matches('0').trim_end_matches('.');
        write!(f, "{digits}Z")
    }
}

/// An end of a range of event times: one that an event may have, or the first moment after them all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangeEnd(pub EventTime);

/// A text that is no end of a range of event times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRangeEnd {
    /// It is no moment.
    #[error(transparent)]
    Moment(#[from] InvalidEventTime),
    /// It is beyond the event times accepted.
    #[error("is outside 1900-01-01T00:00:00Z to 2200-01-01T00:00:00Z")]
    OutOfRange,
}

impl FromStr for RangeEnd {
    type Err = InvalidRangeEnd;

    /// # Errors
    /// [`InvalidRangeEnd`] says which rule the text breaks.
    fn from_str(text: &str) -> Result<Self, InvalidRangeEnd> {
        let time = moment(text)?;
        let in_range = (EARLIEST_MICROS..=TOO_LATE_MICROS).contains(&time.0);
        in_range.then_some(Self(time)).ok_or(InvalidRangeEnd::OutOfRange)
    }
}

/// A text that is not an acceptable event time; each variant says what would be right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEventTime {
    /// No `Z` and no offset.
    #[error("has no UTC offset; end it with `Z` or an offset such as `+02:00`")]
    NoOffset,
    /// A space where the offset's `+` should be.
    #[error("has a space before its offset; a `+` in an address must be written `%2B`")]
    SpaceForPlus,
    /// A space where the `T` should be.
    #[error("has a space between date and time; write a `T` there, as in `2026-10-01T09:05:00Z`")]
    SpaceForT,
    /// A leap second.
    #[error("has second 60; use 59 or the next minute")]
    LeapSecond,
    /// `24:00`.
    #[error("has hour 24; write 00:00 of the next day")]
    HourTwentyFour,
    /// Outside the years accepted.
    #[error("is outside the years 1900 to 2199")]
    OutOfRange,
    /// Anything else.
    #[error("is not an RFC 3339 time such as `2026-10-01T09:05:00Z`")]
    NotRfc3339,
}

impl FromStr for EventTime {
    type Err = InvalidEventTime;

    /// Reads an RFC 3339 time with an offset; digits beyond the sixth are cut off.
    ///
    /// # Errors
    /// [`InvalidEventTime`] says which rule the text breaks.
    fn from_str(text: &str) -> Result<Self, InvalidEventTime> {
        let time = moment(text)?;
        let in_range = (EARLIEST_MICROS..TOO_LATE_MICROS).contains(&time.0);
        in_range.then_some(time).ok_or(InvalidEventTime::OutOfRange)
    }
}

/// The moment of an RFC 3339 text, in whichever year.
fn moment(text: &str) -> Result<EventTime, InvalidEventTime> {
    let refused = || shape_fault(text).unwrap_or(InvalidEventTime::NotRfc3339);
    if text.as_bytes().get(10) != Some(&b'T') {
        return Err(refused());
    }
    let time = DateTime::parse_from_rfc3339(text).map_err(|_| refused())?;
    if time.nanosecond() >= 1_000_000_000 {
        return Err(InvalidEventTime::LeapSecond);
    }
    Ok(EventTime(time.timestamp_micros()))
}

/// Says what is wrong with a text that did not parse, when it is one of the usual mistakes.
fn shape_fault(text: &str) -> Option<InvalidEventTime> {
    let (date, separator, clock) = (text.get(..10)?, text.get(10..11)?, text.get(11..)?);
    if !date.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
        return None;
    }
    if separator == " " {
        return Some(InvalidEventTime::SpaceForT);
    }
    if clock.contains(' ') {
        return Some(InvalidEventTime::SpaceForPlus);
    }
    if clock.starts_with("24:") {
        return Some(InvalidEventTime::HourTwentyFour);
    }
    if clock.get(5..8) == Some(":60") {
        return Some(InvalidEventTime::LeapSecond);
    }
    let only_a_clock = clock.bytes().all(|byte| byte.is_ascii_digit() || b":.".contains(&byte));
    (only_a_clock && clock.len() >= 5).then_some(InvalidEventTime::NoOffset)
}

/// How far event time has come, in whole milliseconds; starts at the Unix epoch and never falls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Watermark(i64);

impl Watermark {
    /// Where every query starts: 1970-01-01T00:00:00.000Z.
    pub const EPOCH: Self = Self(0);

    /// The watermark this many milliseconds after the Unix epoch.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// The watermark as a moment in event time.
    pub const fn as_event_time(self) -> EventTime {
        EventTime(self.0.saturating_mul(MICROS_PER_MILLI))
    }

    /// Where the watermark goes after a batch whose newest event is `newest`: its whole
    /// milliseconds minus `delay`, unless that would be a step back.
    #[must_use]
    pub fn advanced_by(self, newest: EventTime, delay: Span) -> Self {
        let newest_millis = newest.0.div_euclid(MICROS_PER_MILLI);
        self.max(Self(newest_millis.saturating_sub(delay.as_millis())))
    }
}

impl fmt::Display for Watermark {
    /// RFC 3339 in UTC with milliseconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.as_event_time().to_utc().to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_time_is_answered_in_utc_with_the_digits_it_has() {
        for (posted, answered) in [
            ("2026-10-01T09:05:00Z", "2026-10-01T09:05:00Z"),
            ("2026-10-01T09:05:00.500Z", "2026-10-01T09:05:00.5Z"),
            ("2026-10-01T11:05:00+02:00", "2026-10-01T09:05:00Z"),
            ("2026-10-01T00:00:00.123456789Z", "2026-10-01T00:00:00.123456Z"),
            ("1969-12-31T23:59:59.9999999Z", "1969-12-31T23:59:59.999999Z"),
            ("1900-01-01T00:00:00Z", "1900-01-01T00:00:00Z"),
            ("2199-12-31T23:59:59.999999Z", "2199-12-31T23:59:59.999999Z"),
        ] {
            let time: EventTime = posted.parse().expect(posted);
            assert_eq!(time.to_string(), answered, "{posted}");
        }
    }

    #[test]
    fn a_refused_event_time_is_told_which_rule_it_breaks() {
        for (text, fault) in [
            ("2026-10-01T09:05:00", InvalidEventTime::NoOffset),
            ("2026-10-01 09:05:00Z", InvalidEventTime::SpaceForT),
            ("2026-10-01T09:05:00 02:00", InvalidEventTime::SpaceForPlus),
            ("2026-12-31T23:59:60Z", InvalidEventTime::LeapSecond),
            ("2026-10-01T24:00:00Z", InvalidEventTime::HourTwentyFour),
            ("1899-12-31T23:59:59Z", InvalidEventTime::OutOfRange),
            ("2200-01-01T00:00:00Z", InvalidEventTime::OutOfRange),
            ("2026-02-30T00:00:00Z", InvalidEventTime::NotRfc3339),
            ("10000-01-01T00:00:00Z", InvalidEventTime::NotRfc3339),
            ("1790845500", InvalidEventTime::NotRfc3339),
            ("", InvalidEventTime::NotRfc3339),
        ] {
            assert_eq!(text.parse::<EventTime>(), Err(fault), "{text}");
        }
    }

    #[test]
    fn a_range_may_end_where_the_last_event_time_ends() {
        for (text, fault) in [
            ("1900-01-01T00:00:00Z", None),
            ("1899-12-31T23:59:59.999999Z", Some(InvalidRangeEnd::OutOfRange)),
            ("2200-01-01T00:00:00Z", None),
            ("2200-01-01T00:00:00.000001Z", Some(InvalidRangeEnd::OutOfRange)),
            ("2026-10-01", Some(InvalidEventTime::NotRfc3339.into())),
        ] {
            assert_eq!(text.parse::<RangeEnd>().err(), fault, "{text}");
        }
    }

    #[test]
    fn a_watermark_keeps_whole_milliseconds_and_never_falls() {
        let delay: Span = "1 second".parse().expect("a span");
        let newest = EventTime::from_micros(5_000_999);
        assert_eq!(Watermark::EPOCH.advanced_by(newest, delay).as_millis(), 4_000);
        let before_1970 = EventTime::from_micros(-1);
        assert_eq!(Watermark::EPOCH.advanced_by(before_1970, delay), Watermark::EPOCH);
        assert_eq!(Watermark::EPOCH.to_string(), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn boundaries_are_found_by_floor_division() {
        let (hour, quarter) =
            ("1 hour".parse().expect("span"), "15 minutes".parse().expect("span"));
        for (case, time, start) in [
            ("on the boundary", "2026-10-01T09:15:00Z", "2026-10-01T09:15:00Z"),
            ("just before it", "2026-10-01T09:14:59.999999Z", "2026-10-01T08:15:00Z"),
            ("before 1970", "1969-12-31T23:59:59Z", "1969-12-31T23:15:00Z"),
        ] {
            let floor = time.parse::<EventTime>().expect("time").floor_to(hour, quarter);
            assert_eq!(floor.to_string(), start, "{case}");
        }
    }
}
