//! Local calendars: the hours, days, ISO weeks and months of a time zone, as moments. Pure.
//!
//! A local day begins at the first moment when the zone's clock has reached the day's date at the
//! day's start. From this alone follows what clocks do to days:
//! * a day on which the clock is changed has 23 or 25 hours, or whatever the zone did;
//! * a start that the clock jumps over is the moment of the jump; one that it shows twice is the first;
//! * a date that a zone skipped has no moments, so it is no day: the day before ends where the day
//!   after begins.
//!
//! Hours are whole hours of the local clock; one that is shown twice is two hours.

use std::fmt;
use std::str::FromStr;

use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{Span as CivilSpan, Timestamp};

use super::{EventTime, Window};

const MICROS_PER_HOUR: i64 = 3_600_000_000;

/// How long a period of a calendar is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granularity {
    /// `PT1H`.
    Hour,
    /// `P1D`.
    Day,
    /// `P1W`: weeks that begin on Monday (ISO 8601).
    Week,
    /// `P1M`.
    Month,
}

/// A text that is no granularity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not `PT1H`, `P1D`, `P1W` or `P1M`")]
pub struct UnknownGranularity;

impl FromStr for Granularity {
    type Err = UnknownGranularity;

    fn from_str(text: &str) -> Result<Self, UnknownGranularity> {
        match text {
            "PT1H" => Ok(Self::Hour),
            "P1D" => Ok(Self::Day),
            "P1W" => Ok(Self::Week),
            "P1M" => Ok(Self::Month),
            _ => Err(UnknownGranularity),
        }
    }
}

/// A time zone of the IANA database that this binary brings along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone(TimeZone);

/// A text that names no time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not a time zone of the IANA database, such as `Europe/Lisbon` or `UTC`")]
pub struct UnknownZone;

impl FromStr for Zone {
    type Err = UnknownZone;

    fn from_str(name: &str) -> Result<Self, UnknownZone> {
        let zone = TimeZone::get(name).map_err(|_| UnknownZone)?;
        if zone.is_unknown() { Err(UnknownZone) } else { Ok(Self(zone)) }
    }
}

impl Zone {
    /// Coordinated universal time.
    pub const UTC: Self = Self(TimeZone::UTC);

    /// The first moment after `time` when the zone changes anything, if it ever does again.
    pub fn next_change(&self, time: EventTime) -> Option<EventTime> {
        self.0.following(timestamp(time)).next().map(|change| event_time(change.timestamp()))
    }

    /// The last change at or before `time`.
    fn last_change(&self, time: EventTime) -> Option<EventTime> {
        let after = EventTime::from_micros(time.as_micros().saturating_add(1));
        self.0.preceding(timestamp(after)).next().map(|change| event_time(change.timestamp()))
    }

    fn offset(&self, time: EventTime) -> Offset {
        self.0.to_offset(timestamp(time))
    }

    /// The first moment when the clock has reached `clock`.
    fn first_moment_at(&self, clock: DateTime) -> EventTime {
        let read_with = |offset: Offset| offset.to_timestamp(clock).unwrap_or(Timestamp::MAX);
        let moment = match self.0.to_ambiguous_timestamp(clock).offset() {
            AmbiguousOffset::Unambiguous { offset } => read_with(offset),
            AmbiguousOffset::Fold { before, .. } => read_with(before),
            // Read with the offset after the jump, it is a moment before it.
            AmbiguousOffset::Gap { after, .. } => {
                let before_jump = read_with(after);
                self.0.following(before_jump).next().map_or(before_jump, |jump| jump.timestamp())
            }
        };
        event_time(moment)
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.iana_name().unwrap_or("UTC"))
    }
}

/// When a business day begins, by the local clock: `HH:MM`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DayStart {
    hour: i8,
    minute: i8,
}

/// A text that is no start of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not a time of the day from `00:00` to `23:59`, such as `04:00`")]
pub struct InvalidDayStart;

impl FromStr for DayStart {
    type Err = InvalidDayStart;

    fn from_str(text: &str) -> Result<Self, InvalidDayStart> {
        let two_digits = |digits: &str, end: i8| {
            let are_two = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse().ok().filter(|number| are_two && *number < end).ok_or(InvalidDayStart)
        };
        let (hour, minute) = text.split_once(':').ok_or(InvalidDayStart)?;
        Ok(Self { hour: two_digits(hour, 24)?, minute: two_digits(minute, 60)? })
    }
}

impl fmt::Display for DayStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.hour, self.minute)
    }
}

/// How event time is cut into local periods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Calendar {
    /// How long they are.
    pub granularity: Granularity,
    /// Whose clock counts.
    pub zone: Zone,
    /// When a day begins, and with it a week and a month; hours know none.
    pub day_start: DayStart,
}

/// A period of a calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    /// From its first moment to the first after it.
    pub bounds: Window,
    /// The local date of its first day; of an hour, of the day that it is in.
    date: Date,
}

impl Period {
    /// The local date of its first day, `YYYY-MM-DD`.
    pub fn date(&self) -> String {
        self.date.to_string()
    }
}

impl Calendar {
    /// The period that holds `time`.
    pub fn period_of(&self, time: EventTime) -> Period {
        match self.granularity {
            Granularity::Hour => self.hour_of(time),
            Granularity::Day => self.between(self.day_of(time), CivilSpan::new().days(1)),
            Granularity::Week => {
                let day = self.day_of(time);
                let since_monday = i64::from(day.weekday().to_monday_zero_offset());
                let monday = plus(day, CivilSpan::new().days(-since_monday));
                self.between(monday, CivilSpan::new().days(7))
            }
            Granularity::Month => {
                self.between(self.day_of(time).first_of_month(), CivilSpan::new().months(1))
            }
        }
    }

    fn between(&self, date: Date, length: CivilSpan) -> Period {
        let (start, end) = (self.day_begins(date), self.day_begins(plus(date, length)));
        Period { bounds: Window { start, end }, date }
    }

    fn day_begins(&self, date: Date) -> EventTime {
        let DayStart { hour, minute } = self.day_start;
        self.zone.first_moment_at(date.at(hour, minute, 0, 0))
    }

    /// The date of the day that holds `time`: the clock's date, or one beside it where the day starts
    /// later than the clock's or the clock was changed.
    fn day_of(&self, time: EventTime) -> Date {
        let mut date = self.zone.0.to_datetime(timestamp(time)).date();
        // A day's start and a change of the clock move it by two days at most.
        for _ in 0..3 {
            if self.day_begins(date) <= time {
                break;
            }
            date = plus(date, CivilSpan::new().days(-1));
        }
        for _ in 0..3 {
            let next = plus(date, CivilSpan::new().days(1));
            if self.day_begins(next) > time {
                break;
            }
            date = next;
        }
        date
    }

    fn hour_of(&self, time: EventTime) -> Period {
        let (mut start, mut end) = self.hour_by_offset(time);
        if let Some(change) = self.zone.last_change(time).filter(|change| *change > start) {
            let before = just_before(change);
            let is_same = self.local_hour(before) == self.local_hour(change);
            start = if is_same { self.hour_by_offset(before).0 } else { change };
        }
        if let Some(change) = self.zone.next_change(time).filter(|change| *change <= end) {
            let (hour_start, hour_end) = self.hour_by_offset(change);
            let is_same = self.local_hour(just_before(change)) == self.local_hour(change);
            end = if is_same && hour_start != change { hour_end } else { change };
        }
        let date = self.zone.0.to_datetime(timestamp(start)).date();
        Period { bounds: Window { start, end }, date }
    }

    /// The whole hour around `time`, were its offset always the same.
    fn hour_by_offset(&self, time: EventTime) -> (EventTime, EventTime) {
        let offset = i64::from(self.zone.offset(time).seconds()).saturating_mul(1_000_000);
        let local = time.as_micros().saturating_add(offset);
        let start = time.as_micros().saturating_sub(local.rem_euclid(MICROS_PER_HOUR));
        let end = start.saturating_add(MICROS_PER_HOUR);
        (EventTime::from_micros(start), EventTime::from_micros(end))
    }

    fn local_hour(&self, time: EventTime) -> (Date, i8) {
        let clock = self.zone.0.to_datetime(timestamp(time));
        (clock.date(), clock.hour())
    }
}

/// A date so much later; the date itself at the end of all years, where no event is.
fn plus(date: Date, length: CivilSpan) -> Date {
    date.saturating_add(length)
}

fn just_before(time: EventTime) -> EventTime {
    EventTime::from_micros(time.as_micros().saturating_sub(1))
}

/// The moment for the time zone database, which knows the years up to 9999.
fn timestamp(time: EventTime) -> Timestamp {
    let end = if time.as_micros() < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_microsecond(time.as_micros()).unwrap_or(end)
}

fn event_time(timestamp: Timestamp) -> EventTime {
    EventTime::from_micros(timestamp.as_microsecond())
}

#[cfg(test)]
#[path = "calendar_tests.rs"]
mod tests;
