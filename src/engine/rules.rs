//! The part of a query's rule that decides what is counted.

use crate::domain::{EventField, Filter, OutputMode, QuerySpec, Span, WindowSpec};

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
    /// When rows are written.
    pub output_mode: OutputMode,
}

impl From<&QuerySpec> for Rules {
    fn from(spec: &QuerySpec) -> Self {
        Self {
            filter: spec.filter.clone(),
            window: spec.window,
            watermark_delay: spec.watermark_delay,
            group_by: spec.group_by.clone(),
            output_mode: spec.output_mode,
        }
    }
}
