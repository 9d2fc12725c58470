//! The part of a query's rule that decides what is counted.

use super::batch::Profile;
use crate::domain::{EventField, Filter, KeyField, OutputMode, QuerySpec, Span, WindowSpec};

/// What the engine needs to know of a query; trigger and batch size are the pipeline's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Events that do not pass count nowhere and move no watermark.
    pub filter: Filter,
    /// How event time is cut.
    pub window: WindowSpec,
    /// How far the watermark stays behind the newest event.
    pub watermark_delay: Span,
    /// One row per value of these fields.
    pub group_by: Vec<EventField>,
    /// Of events that are equal in these fields the first counts; empty: every event counts.
    pub deduplicate: Vec<KeyField>,
    /// When rows are written.
    pub output_mode: OutputMode,
    /// Idle heartbeats after so long, or longer, move this query's watermark; `None`: none do.
    pub idle_timeout: Option<Span>,
    /// A mistake to make on purpose; only `tests/defects` sets it.
    #[cfg(feature = "defects")]
    pub defect: Option<crate::domain::Defect>,
}

impl Rules {
    /// The fields that a [`Profile`](super::Profile) of this query has: those to group by, then
    /// those to filter by.
    pub fn fields(&self) -> impl Iterator<Item = &EventField> {
        self.group_by.iter().chain(self.filter.0.keys())
    }

    /// Whether events of this profile pass the filter: the values that stand after those to group by
    /// are among those that it lets through.
    pub fn passes(&self, profile: &Profile) -> bool {
        let values = profile.values.iter().skip(self.group_by.len());
        self.filter.0.values().zip(values).all(|(allowed, value)| {
            value.as_ref().is_some_and(|value| allowed.iter().any(|one| one == value))
        })
    }

    /// Whether an idle heartbeat after so long a silence moves this query's watermark.
    pub fn heeds_silence(&self, quiet: Span) -> bool {
        self.idle_timeout.is_some_and(|timeout| timeout <= quiet)
    }
}

impl From<&QuerySpec> for Rules {
    fn from(spec: &QuerySpec) -> Self {
        Self {
            filter: spec.filter.clone(),
            window: spec.window,
            watermark_delay: spec.watermark_delay,
            group_by: spec.group_by.clone(),
            deduplicate: spec.deduplicate.clone(),
            output_mode: spec.output_mode,
            idle_timeout: spec.idle_timeout,
            #[cfg(feature = "defects")]
            defect: None,
        }
    }
}
