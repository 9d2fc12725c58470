//! Prometheus' text format, version 0.0.4: families of samples, each with its help and its type.
//!
//! Names, help and labels are ours or are names of queries, of which none needs escaping.

use std::fmt::{Display, Write as _};

use crate::telemetry::Counted;

/// The content type of the format.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What the samples of a family are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A count that only grows, until the process starts anew.
    Counter,
    /// A value that goes up and down.
    Gauge,
    /// Values by their bounds.
    Histogram,
    /// Values by their number and their sum.
    Summary,
}

/// How a whole number is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// As it is.
    Whole,
    /// Microseconds, as seconds.
    Seconds,
}

/// A text in the format, as it is written.
#[derive(Debug, Default)]
pub(super) struct Exposition(String);

/// A family whose samples are to be written.
#[derive(Debug)]
pub(super) struct Family<'text> {
    text: &'text mut String,
    name: &'static str,
}

impl Exposition {
    /// Begins a family.
    pub(super) fn family(&mut self, name: &'static str, kind: Kind, help: &str) -> Family<'_> {
        let word = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
            Kind::Summary => "summary",
        };
        // Writing to a text cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {word}");
        Family { text: &mut self.0, name }
    }

    /// The whole text.
    pub(super) fn into_text(self) -> String {
        self.0
    }
}

impl Family<'_> {
    /// Writes a sample; `labels` as they stand between braces.
    pub(super) fn sample(&mut self, labels: &str, value: impl Display) {
        self.line("", labels, value);
    }

    /// Writes the samples of a histogram.
    pub(super) fn histogram(&mut self, labels: &str, counted: &Counted, unit: Unit) {
        let comma = if labels.is_empty() { "" } else { "," };
        for (bound, count) in &counted.up_to {
            let labels = format!("{labels}{comma}le=\"{}\"", written(*bound, unit));
            self.line("_bucket", &labels, count);
        }
        self.line("_bucket", &format!("{labels}{comma}le=\"+Inf\""), counted.count);
        self.summary(labels, counted.count, counted.sum, unit);
    }

    /// Writes the number of values and their sum.
    pub(super) fn summary(&mut self, labels: &str, count: u64, sum: u64, unit: Unit) {
        self.line("_sum", labels, written(sum, unit));
        self.line("_count", labels, count);
    }

    fn line(&mut self, ending: &str, labels: &str, value: impl Display) {
        let name = self.name;
        let _ = if labels.is_empty() {
            writeln!(self.text, "{name}{ending} {value}")
        } else {
            writeln!(self.text, "{name}{ending}{{{labels}}} {value}")
        };
    }
}

/// A number in its unit, exact.
fn written(number: u64, unit: Unit) -> String {
    if unit == Unit::Whole {
        return number.to_string();
    }
    let text = format!("{}.{:06}", number / 1_000_000, number % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_written_with_its_help_its_type_and_its_samples() {
        let mut text = Exposition::default();
        text.family("till_up", Kind::Gauge, "Whether it is up.").sample("", 1);
        let counted =
            Counted { up_to: vec![(5_000, 2), (1_000_000, 3)], count: 4, sum: 20_010_002 };
        let mut waits = text.family("wait_seconds", Kind::Histogram, "How long.");
        waits.histogram("till=\"7\"", &counted, Unit::Seconds);
        text.family("sales", Kind::Summary, "How many.").summary("", 2, 10, Unit::Whole);
        let expected = "# HELP till_up Whether it is up.\n# TYPE till_up gauge\ntill_up 1\n\
            # HELP wait_seconds How long.\n# TYPE wait_seconds histogram\n\
            wait_seconds_bucket{till=\"7\",le=\"0.005\"} 2\n\
            wait_seconds_bucket{till=\"7\",le=\"1\"} 3\n\
            wait_seconds_bucket{till=\"7\",le=\"+Inf\"} 4\n\
            wait_seconds_sum{till=\"7\"} 20.010002\nwait_seconds_count{till=\"7\"} 4\n\
            # HELP sales How many.\n# TYPE sales summary\nsales_sum 10\nsales_count 2\n";
        assert_eq!(text.into_text(), expected);
    }
}
