//! Event-time windows and what is counted in them.

use super::{Amount, Currency, EventTime, Revenue, Span, Watermark};

/// A half-open window of event time, `[start, end)`.
///
/// Ordered by end first, so that the windows a watermark closes stand together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Window {
    /// The first moment inside.
    pub start: EventTime,
    /// The first moment after.
    pub end: EventTime,
}

impl Window {
    /// Whether `watermark` closes the window: it is final, and an event for it is late.
    pub fn is_closed_at(&self, watermark: Watermark) -> bool {
        self.end <= watermark.as_event_time()
    }
}

impl Ord for Window {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.end, self.start).cmp(&(other.end, other.start))
    }
}

impl PartialOrd for Window {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// How a query cuts event time into windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowSpec {
    /// Windows side by side: `[offset + k × size, offset + (k + 1) × size)`.
    Tumbling {
        /// The length of each window, more than nothing.
        size: Span,
        /// How far the boundaries stand from the Unix epoch, less than `size`.
        offset: Span,
    },
    /// Overlapping windows: `[offset + k × slide, offset + k × slide + size)`.
    Sliding {
        /// The length of each window, more than nothing.
        size: Span,
        /// From one start to the next: more than nothing, at most `size`, and so much that an event
        /// belongs to at most [`WindowSpec::WINDOWS_PER_EVENT_MAX`] windows.
        slide: Span,
        /// How far the starts stand from the Unix epoch, less than `slide`.
        offset: Span,
    },
    /// Windows that end when no event came for `gap`: each event opens `[time, time + gap)`, and
    /// those of the same keys that overlap or touch are one.
    Session {
        /// How long after its last event a session ends, more than nothing.
        gap: Span,
    },
}

impl WindowSpec {
    /// The most windows that one event may belong to.
    pub const WINDOWS_PER_EVENT_MAX: i64 = 1_000;

    /// The last window boundary at or before `watermark`: every window that ends by then is
    /// closed. Nothing while the watermark stands at the epoch, where every query starts.
    ///
    /// Sessions end anywhere, so for them it is the watermark itself.
    pub fn complete_through(&self, watermark: Watermark) -> Option<EventTime> {
        let time = watermark.as_event_time();
        let boundary = match *self {
            Self::Tumbling { size, offset } => time.floor_to(size, offset),
            Self::Sliding { size, slide, offset } => {
                time.minus(size).floor_to(slide, offset).plus(size)
            }
            Self::Session { .. } => time,
        };
        (watermark > Watermark::EPOCH).then_some(boundary)
    }

    /// Whether every window that starts before `end` is closed, those without an event included. Of
    /// sessions nobody can tell: one that began before may still go on.
    pub fn is_closed_before(&self, end: EventTime, watermark: Watermark) -> bool {
        let last_start = EventTime::from_micros(end.as_micros().saturating_sub(1));
        match self {
            Self::Tumbling { .. } | Self::Sliding { .. } => {
                let newest = self.windows_of(last_start).next();
                watermark > Watermark::EPOCH
                    && newest.is_some_and(|window| window.is_closed_at(watermark))
            }
            Self::Session { .. } => false,
        }
    }

    /// The windows that hold `time`, the newest first. Of tumbling windows it is one; of sliding
    /// ones every window that holds it; of sessions the one that an event opens, before any merging.
    pub fn windows_of(self, time: EventTime) -> impl Iterator<Item = Window> {
        let (newest, slide) = match self {
            Self::Tumbling { size, offset } => {
                let start = time.floor_to(size, offset);
                (Window { start, end: start.plus(size) }, None)
            }
            Self::Sliding { size, slide, offset } => {
                let start = time.floor_to(slide, offset);
                (Window { start, end: start.plus(size) }, Some(slide))
            }
            Self::Session { gap } => (Window { start: time, end: time.plus(gap) }, None),
        };
        std::iter::successors(Some(newest), move |window| {
            let slide = slide?;
            let before = Window { start: window.start.minus(slide), end: window.end.minus(slide) };
            // A bound that cannot move any further would never end.
            (before.end > time && before.start < window.start).then_some(before)
        })
    }
}

/// What made a window final.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClosedBy {
    /// What its sources said: event times and heartbeats.
    Watermark,
    /// That they said nothing for long enough.
    Idle,
}

impl ClosedBy {
    /// The word of the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Watermark => "watermark",
            Self::Idle => "idle",
        }
    }
}

/// The values of a query's group-by fields, in its order; `None` where an event has no value,
/// which is a group of its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GroupKey(pub Vec<Option<String>>);

/// What one output row stands for: a window, a currency and the group-by values.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WindowKey {
    /// The window.
    pub window: Window,
    /// The implicit group key: currencies are never added together.
    pub currency: Currency,
    /// The group-by values.
    pub group: GroupKey,
}

/// The aggregates of one window and group: a count and an exact sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// How many events were counted; in a difference it may be negative.
    pub orders: i64,
    /// The sum of their amounts.
    pub revenue: Revenue,
}

impl Totals {
    /// Nothing counted.
    pub const ZERO: Self = Self { orders: 0, revenue: Revenue::ZERO };

    /// Counts one event of `amount`.
    pub fn count(&mut self, amount: Amount) {
        self.orders = self.orders.saturating_add(1);
        self.revenue = self.revenue.plus_amount(amount);
    }

    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            orders: self.orders.saturating_add(other.orders),
            revenue: self.revenue.plus(other.revenue),
        }
    }

    /// What this has more than `other`.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self {
            orders: self.orders.saturating_sub(other.orders),
            revenue: self.revenue.minus(other.revenue),
        }
    }
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
