//! A query in JSON: its rule, and where it stands.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use super::figures::DurationText;
use super::progress_body::ProgressBody;
use crate::database::{QueryFigures, StoredQuery};
use crate::domain::{BatchId, QuerySpecText};

/// A query: its rule and where it stands.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Query)]
pub(super) struct QueryBody {
    /// Its name.
    #[schema(example = "hourly_sales")]
    name: String,
    #[serde(flatten)]
    #[schema(value_type = RuleSchema)]
    rule: QuerySpecText,
    /// `running`, `paused` or `failed`.
    #[schema(example = "running")]
    status: &'static str,
    /// Why its last attempt failed; it tries again by itself.
    error: Option<String>,
    /// The watermark of its last batch.
    #[schema(format = DateTime, example = "2026-10-01T11:40:00.000Z")]
    watermark: String,
    /// The number of its last batch; null before the first.
    batch_id: Option<i64>,
    /// It has read the raw log up to this.
    position: i64,
    /// Records of the raw log that it has not read yet.
    lag_events: i64,
    /// Windows in its state.
    open_windows: i64,
    /// Bytes of its stored state.
    state_bytes: i64,
    /// Events that it could not process, and goes on without; their receipts say why.
    poison_events: i64,
    /// Its newest progress entry.
    last_progress: Option<ProgressBody>,
    /// Whether there is nothing to read and no batch without data is owed.
    idle: bool,
}

impl QueryBody {
    /// The same for somebody who may not see what all stores sold together.
    pub(super) fn without_sums(self) -> Self {
        Self { last_progress: None, ..self }
    }

    /// The query with its figures.
    pub(super) fn of(query: StoredQuery, figures: QueryFigures) -> Self {
        Self {
            name: query.name.to_string(),
            rule: QuerySpecText::from(&query.spec),
            status: match (query.paused, &query.error) {
                (true, _) => "paused",
                (false, Some(_)) => "failed",
                (false, None) => "running",
            },
            watermark: query.watermarks.current.to_string(),
            batch_id: query.last_batch_id().map(BatchId::get),
            position: query.position.get(),
            lag_events: figures.lag_events,
            open_windows: figures.open_windows,
            state_bytes: figures.state_bytes,
            poison_events: figures.poison_events,
            idle: figures.lag_events == 0 && !query.owes_batch_without_data(),
            last_progress: figures.last_progress.map(ProgressBody::from),
            error: query.error,
        }
    }
}

/// The rule of a query. A field that is not here is refused.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = QueryRule)]
pub(super) struct RuleSchema {
    /// Field → the values that pass. Fields are `store_id`, `till_id`, `customer_id`, `status` and
    /// `attributes.<name>`.
    #[schema(required = false, example = json!({ "status": ["placed"] }))]
    filter: BTreeMap<String, Vec<String>>,
    /// The windows.
    window: WindowSchema,
    /// How far the watermark stays behind the newest event.
    #[schema(value_type = DurationText, example = "1 hour")]
    watermark_delay: String,
    /// One row per value of these fields.
    #[schema(required = false, example = json!(["store_id"]))]
    group_by: Vec<String>,
    /// Of events that are equal in these fields only the first counts; null: every event counts.
    /// Not in complete mode.
    deduplicate: Option<DeduplicateSchema>,
    /// `append`, `update` or `complete`.
    #[schema(pattern = "^(append|update|complete)$", example = "append")]
    output_mode: String,
    /// When it runs.
    #[schema(required = false)]
    trigger: TriggerSchema,
    /// The most records that one batch reads, matching or not.
    #[schema(required = false, default = 100_000, minimum = 1, maximum = 1_000_000)]
    max_events_per_batch: u32,
    /// `earliest` or `latest`; counts only at creation.
    #[schema(required = false, default = "earliest", pattern = "^(earliest|latest)$")]
    start: String,
    /// After how long without any new record windows close by the wall clock; null: never.
    #[schema(value_type = Option<DurationText>, example = "30 minutes")]
    idle_timeout: Option<String>,
}

/// What makes two events the same.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = QueryDeduplicate)]
struct DeduplicateSchema {
    /// Fields of the event, any of them; attributes as `attributes.<name>`.
    #[schema(min_items = 1, example = json!(["order_id", "status"]))]
    keys: Vec<String>,
}

/// How event time is cut into windows.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
#[schema(as = QueryWindow)]
#[expect(dead_code, reason = "the domain reads and writes rules; this describes them")]
enum WindowSchema {
    /// Windows side by side.
    Tumbling {
        /// How long each is.
        #[schema(value_type = DurationText, example = "1 hour")]
        size: String,
        /// How far the boundaries stand from the Unix epoch, less than `size`.
        #[schema(value_type = DurationText, required = false, default = "0 seconds")]
        offset: String,
    },
    /// Overlapping windows; an event counts in each that holds it.
    Sliding {
        /// A duration.
        #[schema(value_type = DurationText, example = "1 hour")]
        size: String,
        /// From one start to the next: at most `size`, at least a thousandth of it.
        #[schema(value_type = DurationText, example = "15 minutes")]
        slide: String,
        /// How far the starts stand from the Unix epoch, less than `slide`.
        #[schema(value_type = DurationText, required = false, default = "0 seconds")]
        offset: String,
    },
    /// Windows that end when no event came for `gap`; append mode only.
    Session {
        /// A duration.
        #[schema(value_type = DurationText, example = "30 minutes")]
        gap: String,
    },
}

/// When a query runs.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
#[schema(as = QueryTrigger)]
#[expect(dead_code, reason = "the domain reads and writes rules; this describes them")]
enum TriggerSchema {
    /// As soon as there is something.
    Continuous {},
    /// At fixed intervals.
    Interval {
        /// A duration.
        #[schema(value_type = DurationText, example = "5 seconds")]
        every: String,
    },
    /// Only when asked.
    Manual {},
}

#[cfg(test)]
mod tests {
    use utoipa::PartialSchema as _;

    use super::*;
    use crate::http::examples;

    #[test]
    fn the_description_of_a_rule_has_the_fields_that_a_rule_has() {
        let rule: QuerySpecText = serde_json::from_value(examples::rule()).expect("a rule");
        let written = serde_json::to_value(&rule).expect("plain data");
        let schema = serde_json::to_value(RuleSchema::schema()).expect("plain data");
        let names = |value: &serde_json::Value| {
            let mut names: Vec<String> =
                value.as_object().expect("an object").keys().cloned().collect();
            names.sort();
            names
        };
        assert_eq!(names(&schema["properties"]), names(&written));
    }
}
