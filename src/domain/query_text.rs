//! The JSON form of a query's rule.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::object::{each_name_once, object, object_or_null};
use super::{EventField, KeyField, QuerySpec, Span, Start, Trigger, WindowSpec};

const MAX_EVENTS_PER_BATCH_DEFAULT: u32 = 100_000;

/// A query's rule as JSON has it, not yet checked (api.md, "Queries").
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuerySpecText {
    /// Field → the values that pass.
    #[serde(default, deserialize_with = "each_name_once")]
    pub filter: BTreeMap<String, Vec<String>>,
    /// The windows.
    #[serde(deserialize_with = "object")]
    pub window: WindowText,
    /// A duration.
    pub watermark_delay: String,
    /// Field names.
    #[serde(default)]
    pub group_by: Vec<String>,
    /// The duplicates rule, if there is one.
    #[serde(default, deserialize_with = "object_or_null")]
    pub deduplicate: Option<DeduplicateText>,
    /// `append`, `update` or `complete`.
    pub output_mode: String,
    /// When it runs.
    #[serde(default = "TriggerText::continuous", deserialize_with = "object")]
    pub trigger: TriggerText,
    /// The most records of one micro-batch.
    #[serde(default = "max_events_per_batch_default")]
    pub max_events_per_batch: u32,
    /// `earliest` or `latest`.
    #[serde(default = "earliest")]
    pub start: String,
    /// A duration; null: off.
    #[serde(default)]
    pub idle_timeout: Option<String>,
}

/// The duplicates rule of a query as JSON has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeduplicateText {
    /// Field names.
    pub keys: Vec<String>,
}

/// The windows of a query as JSON has them.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum WindowText {
    /// Windows side by side.
    Tumbling {
        /// A duration.
        size: String,
        /// A duration.
        #[serde(default = "no_offset")]
        offset: String,
    },
    /// Overlapping windows.
    Sliding {
        /// A duration.
        size: String,
        /// A duration.
        slide: String,
        /// A duration.
        #[serde(default = "no_offset")]
        offset: String,
    },
    /// Windows that end after a gap without events.
    Session {
        /// A duration.
        gap: String,
    },
}

/// When a query runs, as JSON has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum TriggerText {
    /// As soon as there is something.
    Continuous {},
    /// At fixed intervals.
    Interval {
        /// A duration.
        every: String,
    },
    /// Only when asked.
    Manual {},
}

impl TriggerText {
    const fn continuous() -> Self {
        Self::Continuous {}
    }
}

fn no_offset() -> String {
    Span::ZERO.to_string()
}

fn earliest() -> String {
    "earliest".to_owned()
}

const fn max_events_per_batch_default() -> u32 {
    MAX_EVENTS_PER_BATCH_DEFAULT
}

impl From<WindowSpec> for WindowText {
    fn from(spec: WindowSpec) -> Self {
        match spec {
            WindowSpec::Tumbling { size, offset } => {
                Self::Tumbling { size: size.to_string(), offset: offset.to_string() }
            }
            WindowSpec::Sliding { size, slide, offset } => Self::Sliding {
                size: size.to_string(),
                slide: slide.to_string(),
                offset: offset.to_string(),
            },
            WindowSpec::Session { gap } => Self::Session { gap: gap.to_string() },
        }
    }
}

impl From<&QuerySpec> for QuerySpecText {
    fn from(spec: &QuerySpec) -> Self {
        Self {
            filter: spec
                .filter
                .0
                .iter()
                .map(|(field, values)| (field.to_string(), values.clone()))
                .collect(),
            window: WindowText::from(spec.window),
            watermark_delay: spec.watermark_delay.to_string(),
            group_by: spec.group_by.iter().map(EventField::to_string).collect(),
            deduplicate: (!spec.deduplicate.is_empty()).then(|| DeduplicateText {
                keys: spec.deduplicate.iter().map(KeyField::to_string).collect(),
            }),
            output_mode: spec.output_mode.as_str().to_owned(),
            trigger: match spec.trigger {
                Trigger::Continuous => TriggerText::Continuous {},
                Trigger::Interval { every } => TriggerText::Interval { every: every.to_string() },
                Trigger::Manual => TriggerText::Manual {},
            },
            max_events_per_batch: spec.max_events_per_batch,
            start: match spec.start {
                Start::Earliest => earliest(),
                Start::Latest => "latest".to_owned(),
            },
            idle_timeout: spec.idle_timeout.map(|timeout| timeout.to_string()),
        }
    }
}
