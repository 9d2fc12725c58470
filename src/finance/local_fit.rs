//! Whether windows fold into the periods of a calendar without one lying across a boundary, and which
//! windows would. Pure.

use super::local_days::FoldRange;
use crate::domain::{Calendar, EventTime, Granularity, Period, Span, WindowSpec};

/// Window sizes worth proposing, the largest first, in milliseconds.
const SIZES_MILLIS: [i64; 16] = [
    604_800_000,
    86_400_000,
    43_200_000,
    28_800_000,
    21_600_000,
    14_400_000,
    10_800_000,
    7_200_000,
    3_600_000,
    1_800_000,
    1_200_000,
    900_000,
    600_000,
    300_000,
    60_000,
    1_000,
];

/// Why the windows of a query do not fold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DoesNotFold {
    /// Its windows overlap, or end anywhere.
    #[error("only tumbling windows fold: those of this query are {kind}")]
    Kind {
        /// The kind, a word of the API.
        kind: &'static str,
    },
    /// A window lies across a boundary of the calendar.
    #[error(
        "a window of {size} with offset {offset} lies across {boundary}, where {period} begins in \
         {zone}; {remedy}"
    )]
    Across {
        /// How long the windows are.
        size: Span,
        /// How far they stand from the epoch.
        offset: Span,
        /// The first boundary that is inside a window.
        boundary: EventTime,
        /// What begins there.
        period: String,
        /// The calendar's zone.
        zone: String,
        /// Which windows would do.
        remedy: Remedy,
    },
}

/// Windows that would fold over the same range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remedy {
    /// Shorter windows, without an offset.
    pub size: Span,
    /// An offset with which windows of the same size would do.
    pub offset: Option<Span>,
}

impl std::fmt::Display for Remedy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a query with windows of size `{}` and no offset would do", self.size)?;
        match self.offset {
            Some(offset) => write!(f, ", or one with windows of this size and offset `{offset}`"),
            None => Ok(()),
        }
    }
}

/// The windows of a query that may fold: size and offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Foldable {
    size: Span,
    offset: Span,
}

impl Foldable {
    /// The windows of a rule.
    ///
    /// # Errors
    /// [`DoesNotFold::Kind`] when they are not tumbling.
    pub fn of(window: WindowSpec) -> Result<Self, DoesNotFold> {
        match window {
            WindowSpec::Tumbling { size, offset } => Ok(Self { size, offset }),
            WindowSpec::Sliding { .. } => Err(DoesNotFold::Kind { kind: "sliding" }),
            WindowSpec::Session { .. } => Err(DoesNotFold::Kind { kind: "sessions" }),
        }
    }

    /// The boundaries around the windows that start in `[from, to)`.
    pub fn range(self, from: Option<EventTime>, to: Option<EventTime>) -> FoldRange {
        FoldRange { from: from.map(|time| self.next(time)), to: to.map(|time| self.next(time)) }
    }

    /// The first window boundary at or after `time`.
    fn next(self, time: EventTime) -> EventTime {
        let before = time.floor_to(self.size, self.offset);
        if before == time { time } else { before.plus(self.size) }
    }

    /// Looks at every boundary of the calendar between two moments.
    ///
    /// # Errors
    /// [`DoesNotFold::Across`] says where a window lies across one, and which windows would not.
    pub fn check(
        self,
        calendar: &Calendar,
        from: EventTime,
        to: EventTime,
    ) -> Result<(), DoesNotFold> {
        let boundaries = telling_boundaries(calendar, from, to);
        let is_across = |time: &&EventTime| time.floor_to(self.size, self.offset) != **time;
        let Some(boundary) = boundaries.iter().find(is_across).copied() else { return Ok(()) };
        Err(DoesNotFold::Across {
            size: self.size,
            offset: self.offset,
            boundary,
            period: name(calendar, &calendar.period_of(boundary)),
            zone: calendar.zone.to_string(),
            remedy: self.remedy(&boundaries),
        })
    }

    /// The longest windows that end at all of these boundaries.
    fn remedy(self, boundaries: &[EventTime]) -> Remedy {
        let millis: Vec<i64> = boundaries.iter().map(|time| time.as_micros() / 1_000).collect();
        let first = millis.first().copied().unwrap_or_default();
        let apart = millis.iter().fold(0, |all, one| common_divisor(all, one - first));
        let whole = common_divisor(apart, first);
        let longest = |size: &&i64| **size <= self.size.as_millis() && whole % **size == 0;
        let size = SIZES_MILLIS.iter().find(longest).copied().unwrap_or(1);
        let own = self.size.as_millis();
        let offset = first.checked_rem_euclid(own).filter(|_| apart.checked_rem(own) == Some(0));
        let span = |millis: i64| Span::from_micros(millis.saturating_mul(1_000));
        Remedy { size: span(size), offset: offset.map(span) }
    }
}

fn name(calendar: &Calendar, period: &Period) -> String {
    let what = match calendar.granularity {
        Granularity::Hour => "an hour of",
        Granularity::Day => "",
        Granularity::Week => "the week of",
        Granularity::Month => "the month of",
    };
    format!("{what} {}", period.date()).trim_start().to_owned()
}

/// The boundaries inside `(from, to)` that stand for all of them: while a zone changes nothing, the
/// boundaries of hours, days and weeks are equally far apart, so two tell of the rest.
fn telling_boundaries(calendar: &Calendar, from: EventTime, to: EventTime) -> Vec<EventTime> {
    let mut boundaries = Vec::new();
    let (mut time, mut n_of_stretch) = (from, 0);
    loop {
        let boundary = calendar.period_of(time).bounds.end;
        if boundary >= to {
            return boundaries;
        }
        boundaries.push(boundary);
        let change = calendar.zone.next_change(boundary);
        let has_changed = calendar.zone.next_change(time) != change;
        n_of_stretch = if has_changed { 1 } else { n_of_stretch + 1 };
        time = boundary;
        if calendar.granularity != Granularity::Month && n_of_stretch >= 2 {
            // On to the period in which the next change is.
            let Some(change) = change.filter(|change| *change < to) else { return boundaries };
            time = EventTime::from_micros(change.as_micros().saturating_sub(1)).max(boundary);
        }
    }
}

fn common_divisor(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a.checked_rem(b).unwrap_or(0));
    }
    a.saturating_abs()
}

#[cfg(test)]
#[path = "local_fit_tests.rs"]
mod tests;
