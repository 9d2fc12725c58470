//! The checks that make a query's rule out of its JSON form.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use super::query_text::{DeduplicateText, QuerySpecText, TriggerText, WindowText};
use super::{
    EventField, Fault, Filter, KeyField, OutputMode, QuerySpec, Span, Start, Trigger, WindowSpec,
};

const MAX_EVENTS_PER_BATCH_BOUND: u32 = 1_000_000;

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
        let deduplicate = check.deduplicate(text.deduplicate.as_ref());
        let idle_timeout = text
            .idle_timeout
            .as_ref()
            .and_then(|timeout| check.longer_than_nothing("/idle_timeout", timeout));
        check.combination(window, &deduplicate, output_mode);
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
                    deduplicate,
                    output_mode,
                    trigger,
                    max_events_per_batch,
                    start,
                    idle_timeout,
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
            for (index, _) in values.iter().enumerate().filter(|(_, value)| value.contains('\0')) {
                let detail = "holds a NUL character, which no event has";
                self.fault(&format!("{pointer}/{index}"), "invalid", detail);
            }
            if let Some(field) = self.parse::<EventField>(&pointer, name) {
                filter.0.insert(field, values.clone());
            }
        }
        filter
    }

    fn group_by(&mut self, names: &[String]) -> Vec<EventField> {
        self.fields("/group_by", names)
    }

    fn deduplicate(&mut self, text: Option<&DeduplicateText>) -> Vec<KeyField> {
        let Some(DeduplicateText { keys }) = text else { return Vec::new() };
        if keys.is_empty() {
            let detail = "names no field; leave `deduplicate` out to count every event";
            self.fault("/deduplicate/keys", "empty", detail);
        }
        self.fields("/deduplicate/keys", keys)
    }

    /// The fields of these names, each named once.
    fn fields<F>(&mut self, at: &str, names: &[String]) -> Vec<F>
    where
        F: FromStr<Err: Display> + PartialEq,
    {
        let mut fields = Vec::new();
        for (index, name) in names.iter().enumerate() {
            let pointer = format!("{at}/{index}");
            match self.parse::<F>(&pointer, name) {
                Some(field) if fields.contains(&field) => {
                    self.fault(&pointer, "repeated", format_args!("`{name}` is named twice"));
                }
                Some(field) => fields.push(field),
                None => {}
            }
        }
        fields
    }

    /// Sessions are written once, when they are final; a forgotten key cannot be taken back out of a
    /// table that is written anew every time.
    fn combination(
        &mut self,
        window: Option<WindowSpec>,
        deduplicate: &[KeyField],
        output_mode: Option<OutputMode>,
    ) {
        let Some(output_mode) = output_mode else { return };
        if matches!(window, Some(WindowSpec::Session { .. })) && output_mode != OutputMode::Append {
            let detail =
                "must be `append` with session windows, since two sessions may still become one";
            self.fault("/output_mode", "combination", detail);
        }
        if !deduplicate.is_empty() && output_mode == OutputMode::Complete {
            let detail =
                "must be `append` or `update` with `deduplicate`, since keys are forgotten in time";
            self.fault("/output_mode", "combination", detail);
        }
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
            WindowText::Sliding { size, slide, offset } => self.sliding(size, slide, offset),
            WindowText::Session { gap } => {
                Some(WindowSpec::Session { gap: self.longer_than_nothing("/window/gap", gap)? })
            }
        }
    }

    fn sliding(&mut self, size: &str, slide: &str, offset: &str) -> Option<WindowSpec> {
        let size = self.longer_than_nothing("/window/size", size);
        let slide = self.longer_than_nothing("/window/slide", slide);
        let offset = self.parse::<Span>("/window/offset", offset);
        let (size, slide, offset) = (size?, slide?, offset?);
        let before = self.faults.len();
        if slide > size {
            let detail =
                "must be at most `size`, or events between two windows would count nowhere";
            self.fault("/window/slide", "out_of_range", detail);
        }
        if offset >= slide {
            self.fault("/window/offset", "out_of_range", "must be less than `slide`");
        }
        let windows_max = WindowSpec::WINDOWS_PER_EVENT_MAX;
        if size.as_millis().div_euclid(slide.as_millis().max(1)) >= windows_max
            && size.as_millis() > slide.as_millis().saturating_mul(windows_max)
        {
            let detail = format!("must be at least a {windows_max}th of `size`");
            self.fault("/window/slide", "out_of_range", detail);
        }
        (self.faults.len() == before).then_some(WindowSpec::Sliding { size, slide, offset })
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

#[cfg(test)]
#[path = "query_spec_tests.rs"]
mod tests;
