//! The span of event times in a batch.

use crate::domain::EventTime;

/// Oldest, newest and mean event time of the events of one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventTimeRange {
    /// The oldest.
    pub min: EventTime,
    /// The newest.
    pub max: EventTime,
    /// The mean, cut to whole microseconds.
    pub avg: EventTime,
}

/// Gathers the times of a batch, one by one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EventTimes {
    ends: Option<(EventTime, EventTime)>,
    sum_micros: i128,
    pub(super) count: u64,
}

impl EventTimes {
    pub(super) fn add(&mut self, time: EventTime) {
        let (min, max) = self.ends.unwrap_or((time, time));
        self.ends = Some((min.min(time), max.max(time)));
        self.sum_micros = self.sum_micros.saturating_add(i128::from(time.as_micros()));
        self.count = self.count.saturating_add(1);
    }

    /// The newest so far.
    pub(super) fn newest(&self) -> Option<EventTime> {
        self.ends.map(|(_, max)| max)
    }

    /// The range; nothing when there was no event.
    pub(super) fn range(&self) -> Option<EventTimeRange> {
        let (min, max) = self.ends?;
        let mean = self.sum_micros.checked_div_euclid(i128::from(self.count))?;
        // A mean of 64-bit numbers is one.
        let avg = i64::try_from(mean).map(EventTime::from_micros).ok()?;
        Some(EventTimeRange { min, max, avg })
    }
}
