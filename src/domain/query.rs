//! Queries: named rules over the raw log.

use std::collections::BTreeMap;

use super::{Event, EventField, Fault, KeyField, Span, Watermark, WindowSpec};

/// Which events a query counts: for every field named, the event's value is one of those listed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter(pub BTreeMap<EventField, Vec<String>>);

impl Filter {
    /// Whether `event` passes.
    pub fn matches(&self, event: &Event) -> bool {
        self.0.iter().all(|(field, allowed)| {
            field.value_in(event).is_some_and(|value| allowed.iter().any(|one| one == value))
        })
    }
}

/// When rows are written (Spark's output modes).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputMode {
    /// Once, when the window is final.
    Append,
    /// Whenever they change, until the window is final.
    Update,
    /// All of them, after every batch; no window is ever final.
    Complete,
}

impl OutputMode {
    /// Whether a batch without data is due once the log has nothing more: a watermark has been
    /// reached (`next_watermark`) that has closed nothing yet. In complete mode nothing ever closes.
    pub fn owes_batch_without_data(self, watermark: Watermark, next_watermark: Watermark) -> bool {
        self != Self::Complete && next_watermark > watermark
    }

    /// The word of the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Append => "append",
            Self::Update => "update",
            Self::Complete => "complete",
        }
    }
}

/// When a query looks for new events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// As soon as there is something.
    Continuous,
    /// At fixed intervals.
    Interval {
        /// The time between two looks, more than nothing.
        every: Span,
    },
    /// Only when asked.
    Manual,
}

impl Trigger {
    /// What a query of this trigger rests at least between two batches: a continuous one so long that single
    /// events of many tills are not a batch each.
    pub fn rest_min(self) -> Span {
        match self {
            Self::Continuous => Span::from_micros(7_000),
            Self::Interval { .. } | Self::Manual => Span::ZERO,
        }
    }
}

/// Where in the raw log a query starts; counts only at its creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// At the first event ever received.
    Earliest,
    /// At the first event received after the query's creation.
    Latest,
}

/// The whole rule of one query, checked (api.md, "Queries").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuerySpec {
    /// Which events.
    pub filter: Filter,
    /// Into which windows.
    pub window: WindowSpec,
    /// How far behind the newest event the watermark stays.
    pub watermark_delay: Span,
    /// One row per value of these fields; each named once.
    pub group_by: Vec<EventField>,
    /// Of events that are equal in these fields only the first counts; empty: every event counts.
    pub deduplicate: Vec<KeyField>,
    /// When rows are written.
    pub output_mode: OutputMode,
    /// When it runs.
    pub trigger: Trigger,
    /// The most records that one micro-batch reads, matching or not; 1 to 1,000,000.
    pub max_events_per_batch: u32,
    /// Where it started.
    pub start: Start,
    /// After how long without any new record the windows close by the wall clock; `None`: only
    /// event time closes them.
    pub idle_timeout: Option<Span>,
}

impl QuerySpec {
    /// What keeps `changed` from taking this query's place: the parts that make it another query.
    ///
    /// Delay, trigger, batch size and idle timeout may change; `start` counts only at creation.
    pub fn faults_of_change(&self, changed: &Self) -> Vec<Fault> {
        let mut faults = Vec::new();
        let mut keep = |field: &str, same: bool| {
            if !same {
                let detail = format!(
                    "`{field}` cannot change: that would be another query. Create one under another \
                     name, or delete this one first"
                );
                faults.push(Fault::new(format!("/{field}"), "another_query", detail));
            }
        };
        keep("filter", self.filter == changed.filter);
        keep("window", self.window == changed.window);
        keep("group_by", self.group_by == changed.group_by);
        keep("deduplicate", self.deduplicate == changed.deduplicate);
        keep("output_mode", self.output_mode == changed.output_mode);
        faults
    }
}
