//! The event times of one micro-batch.

use crate::domain::EventTime;

/// Oldest, newest and mean event time of the events that passed the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventTimeRange {
    /// The oldest.
    pub min: EventTime,
    /// The newest.
    pub max: EventTime,
    /// The mean, cut to whole microseconds.
    pub avg: EventTime,
}

impl EventTimeRange {
    /// The range of these times; nothing when there are none.
    pub(super) fn of(times: impl Iterator<Item = EventTime> + Clone) -> Option<Self> {
        let (min, max) = (times.clone().min()?, times.clone().max()?);
        let (sum, count) = times.fold((0_i128, 0_i128), |(sum, count), time| {
            (sum.saturating_add(i128::from(time.as_micros())), count.saturating_add(1))
        });
        let mean = sum.checked_div_euclid(count)?;
        // A mean of 64-bit numbers is one.
        let avg = i64::try_from(mean).map(EventTime::from_micros).ok()?;
        Some(Self { min, max, avg })
    }
}
