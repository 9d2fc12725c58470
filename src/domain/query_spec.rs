//! The JSON form of a query's rule, and the checks on the way in.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{EventField, Fault, Filter, OutputMode, QuerySpec, Span, Start, Trigger, WindowSpec};

const MAX_EVENTS_PER_BATCH_DEFAULT: u32 = 100_000;
const MAX_EVENTS_PER_BATCH_BOUND: u32 = 1_000_000;

/// A query's rule as JSON has it, not yet checked (api.md, "Queries").
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuerySpecText {
    /// Field → the values that pass.
    #[serde(default)]
    pub filter: BTreeMap<String, Vec<String>>,
    /// The windows.
    pub window: WindowText,
    /// A duration.
    pub watermark_delay: String,
    /// Field names.
    #[serde(default)]
    pub group_by: Vec<String>,
    /// The rule for duplicates; none yet.
    #[serde(default)]
    pub deduplicate: Option<serde_json::Value>,
    /// `append`, `update` or `complete`.
    pub output_mode: String,
    /// When it runs.
    #[serde(default = "TriggerText::continuous")]
    pub trigger: TriggerText,
    /// The most records of one micro-batch.
    #[serde(default = "max_events_per_batch_default")]
    pub max_events_per_batch: u32,
    /// `earliest` or `latest`.
    #[serde(default = "earliest")]
    pub start: String,
    /// Idle closing; none yet.
    #[serde(default)]
    pub idle_timeout: Option<String>,
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

impl TryFrom<QuerySpecText> for QuerySpec {
    type Error = Vec<Fault>;

    /// # Errors
    /// Every fault of the rule, each at its place.
    fn try_from(text: QuerySpecText) -> Result<Self, Vec<Fault>> {
        let mut check = Check { faults: Vec::new() };
        let filter = check.filter(&text.filter);
        let window = check.window(&text.window);
        let watermark_delay = check.parse::<Span>("/watermark_delay", &text.watermark_delay);
        let group_by = check.group_by(&text.group_by);
        let output_mode = check.output_mode(&text.output_mode);
        let trigger = check.trigger(&text.trigger);
        let start = check.start(&text.start);
        check.batch_size(text.max_events_per_batch);
        if text.deduplicate.is_some() {
            check.not_yet("/deduplicate", "a rule for duplicates");
        }
        if text.idle_timeout.is_some() {
            check.not_yet("/idle_timeout", "idle closing");
        }
        match (window, watermark_delay, output_mode, trigger, start) {
            (
                Some(window),
                Some(watermark_delay),
                Some(output_mode),
                Some(trigger),
                Some(start),
            ) if check.faults.is_empty() => {
                let max_events_per_batch = text.max_events_per_batch;
                Ok(Self {
                    filter,
                    window,
                    watermark_delay,
                    group_by,
                    output_mode,
                    trigger,
                    max_events_per_batch,
                    start,
                })
            }
            _ => Err(check.faults),
        }
    }
}

/// Collects the faults of one rule.
struct Check {
    faults: Vec<Fault>,
}

impl Check {
    fn fault(&mut self, pointer: &str, code: &'static str, detail: impl Display) {
        self.faults.push(Fault::new(pointer, code, detail.to_string()));
    }

    fn not_yet(&mut self, pointer: &str, what: &str) {
        self.fault(
            pointer,
            "not_yet",
            format_args!("{what} cannot be asked for yet; leave it out"),
        );
    }

    fn parse<T>(&mut self, pointer: &str, text: &str) -> Option<T>
    where
        T: FromStr<Err: Display>,
    {
        match text.parse() {
            Ok(value) => Some(value),
            Err(error) => {
                self.fault(pointer, "invalid", format_args!("`{text}` {error}"));
                None
            }
        }
    }

    fn filter(&mut self, text: &BTreeMap<String, Vec<String>>) -> Filter {
        let mut filter = Filter::default();
        for (name, values) in text {
            let pointer = format!("/filter/{}", name.replace('~', "~0").replace('/', "~1"));
            if values.is_empty() {
                self.fault(&pointer, "empty", "lists no value, so no event could pass");
            }
            if let Some(field) = self.parse::<EventField>(&pointer, name) {
                filter.0.insert(field, values.clone());
            }
        }
        filter
    }

    fn group_by(&mut self, names: &[String]) -> Vec<EventField> {
        let mut fields = Vec::new();
        for (index, name) in names.iter().enumerate() {
            let pointer = format!("/group_by/{index}");
            match self.parse::<EventField>(&pointer, name) {
                Some(field) if fields.contains(&field) => {
                    self.fault(&pointer, "repeated", format_args!("`{name}` is named twice"));
                }
                Some(field) => fields.push(field),
                None => {}
            }
        }
        fields
    }

    fn window(&mut self, text: &WindowText) -> Option<WindowSpec> {
        match text {
            WindowText::Tumbling { size, offset } => {
                let size = self.longer_than_nothing("/window/size", size);
                let offset = self.parse::<Span>("/window/offset", offset);
                let (size, offset) = (size?, offset?);
                if offset >= size {
                    self.fault("/window/offset", "out_of_range", "must be less than `size`");
                    return None;
                }
                Some(WindowSpec::Tumbling { size, offset })
            }
            WindowText::Sliding { .. } => {
                self.not_yet("/window/kind", "sliding windows");
                None
            }
            WindowText::Session { .. } => {
                self.not_yet("/window/kind", "session windows");
                None
            }
        }
    }

    fn longer_than_nothing(&mut self, pointer: &str, text: &str) -> Option<Span> {
        let span = self.parse::<Span>(pointer, text)?;
        if span == Span::ZERO {
            self.fault(pointer, "out_of_range", "must be longer than nothing");
            return None;
        }
        Some(span)
    }

    fn output_mode(&mut self, text: &str) -> Option<OutputMode> {
        match text {
            "append" => Some(OutputMode::Append),
            "update" => Some(OutputMode::Update),
            "complete" => Some(OutputMode::Complete),
            _ => {
                let detail = "is none of `append`, `update` and `complete`";
                self.fault("/output_mode", "invalid", format_args!("`{text}` {detail}"));
                None
            }
        }
    }

    fn trigger(&mut self, text: &TriggerText) -> Option<Trigger> {
        match text {
            TriggerText::Continuous {} => Some(Trigger::Continuous),
            TriggerText::Manual {} => Some(Trigger::Manual),
            TriggerText::Interval { every } => {
                let every = self.longer_than_nothing("/trigger/every", every)?;
                Some(Trigger::Interval { every })
            }
        }
    }

    fn start(&mut self, text: &str) -> Option<Start> {
        match text {
            "earliest" => Some(Start::Earliest),
            "latest" => Some(Start::Latest),
            _ => {
                let detail = "is neither `earliest` nor `latest`";
                self.fault("/start", "invalid", format_args!("`{text}` {detail}"));
                None
            }
        }
    }

    fn batch_size(&mut self, count: u32) {
        if !(1..=MAX_EVENTS_PER_BATCH_BOUND).contains(&count) {
            self.fault("/max_events_per_batch", "out_of_range", "must be 1 to 1000000");
        }
    }
}

impl From<&QuerySpec> for QuerySpecText {
    fn from(spec: &QuerySpec) -> Self {
        let WindowSpec::Tumbling { size, offset } = spec.window;
        Self {
            filter: spec
                .filter
                .0
                .iter()
                .map(|(field, values)| (field.to_string(), values.clone()))
                .collect(),
            window: WindowText::Tumbling { size: size.to_string(), offset: offset.to_string() },
            watermark_delay: spec.watermark_delay.to_string(),
            group_by: spec.group_by.iter().map(EventField::to_string).collect(),
            deduplicate: None,
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
            idle_timeout: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str) -> Result<QuerySpec, Vec<Fault>> {
        serde_json::from_str::<QuerySpecText>(json).expect(json).try_into()
    }

    #[test]
    fn a_rule_is_written_as_it_was_read() {
        let spec = check(
            r#"{"filter":{"status":["placed"]},"window":{"kind":"tumbling","size":"PT1H"},
                "watermark_delay":"60 minutes","group_by":["store_id","attributes.channel"],
                "output_mode":"append","trigger":{"kind":"interval","every":"5 seconds"}}"#,
        )
        .expect("a good rule");
        let text = QuerySpecText::from(&spec);
        assert_eq!(text.watermark_delay, "1 hour");
        assert_eq!(QuerySpec::try_from(text), Ok(spec));
    }

    #[test]
    fn every_fault_of_a_rule_is_named_at_its_place() {
        let faults = check(
            r#"{"filter":{"colour":["red"],"status":[]},"window":{"kind":"tumbling","size":"1 hour","offset":"1 hour"},
                "watermark_delay":"soon","group_by":["store_id","store_id"],"output_mode":"apend",
                "trigger":{"kind":"interval","every":"0 seconds"},"max_events_per_batch":0,
                "start":"now","deduplicate":{"keys":["order_id"]},"idle_timeout":"1 hour"}"#,
        )
        .expect_err("nothing is right");
        let pointers: Vec<&str> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
        assert_eq!(
            pointers,
            [
                "/filter/colour",
                "/filter/status",
                "/window/offset",
                "/watermark_delay",
                "/group_by/1",
                "/output_mode",
                "/trigger/every",
                "/start",
                "/max_events_per_batch",
                "/deduplicate",
                "/idle_timeout"
            ]
        );
    }

    #[test]
    fn a_change_of_what_is_counted_makes_it_another_query() {
        let hourly = r#"{"window":{"kind":"tumbling","size":"1 hour"},"watermark_delay":"1 hour","output_mode":"append"}"#;
        let spec = check(hourly).expect("a good rule");
        for (case, json, pointer) in [
            (
                "delay",
                hourly.replace(r#""watermark_delay":"1 hour""#, r#""watermark_delay":"0 seconds""#),
                None,
            ),
            ("window", hourly.replace(r#""size":"1 hour""#, r#""size":"1 day""#), Some("/window")),
            ("mode", hourly.replace("append", "update"), Some("/output_mode")),
        ] {
            let faults = spec.faults_of_change(&check(&json).expect("a good rule"));
            assert_eq!(faults.first().map(|fault| fault.pointer.as_str()), pointer, "{case}");
        }
    }
}
