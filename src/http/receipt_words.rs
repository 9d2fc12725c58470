//! The sentences of a receipt.
//!
//! Times of the event's own day (UTC) are told as clock times, with seconds only where there are any;
//! others in full.

use super::figures::amount_text;
use crate::database::{Closing, ClosingRecord, LateRule, QueryReceipt, ReceiptOutcome};
use crate::domain::{
    BatchId, Event, EventId, EventTime, KeyField, Span, Watermark, Window, WindowSpec,
};

/// The word of the API for an outcome.
pub(super) const fn outcome_word(outcome: &ReceiptOutcome) -> &'static str {
    match outcome {
        ReceiptOutcome::Counted { .. } => "counted",
        ReceiptOutcome::Late { .. } => "late",
        ReceiptOutcome::Duplicate { .. } => "duplicate",
        ReceiptOutcome::Waiting => "waiting",
        ReceiptOutcome::Quarantined { .. } => "quarantined",
    }
}

/// Why an event stands with a query as it does.
pub(super) fn reason(receipt: &QueryReceipt, event: &Event) -> String {
    let words = Words { receipt, event };
    let said = match &receipt.outcome {
        ReceiptOutcome::Counted { n_final, final_since } => words.counted(*n_final, *final_since),
        ReceiptOutcome::Late { rule, closing } => words.late(*rule, closing.as_ref()),
        ReceiptOutcome::Duplicate { first } => words.duplicate(first.as_ref()),
        ReceiptOutcome::Waiting => "the query has not read it yet".to_owned(),
        ReceiptOutcome::Quarantined { reason } => reason.clone(),
    };
    format!("{}: {said}", outcome_word(&receipt.outcome))
}

/// An event and what a query made of it.
struct Words<'receipt> {
    receipt: &'receipt QueryReceipt,
    event: &'receipt Event,
}

impl Words<'_> {
    fn counted(&self, n_final: usize, final_since: Option<BatchId>) -> String {
        let (kind, by) = (self.kind(), self.by_batch());
        let since = final_since.map_or(String::new(), |batch| format!(" since batch {batch}"));
        match self.receipt.windows.as_slice() {
            [window] => {
                let now = match n_final {
                    0 => "still open".to_owned(),
                    _ => format!("final{since}"),
                };
                format!("in the {} {kind}{by}; the {kind} is {now}", self.window(*window))
            }
            windows => {
                let n_windows = windows.len();
                let now = match n_final {
                    0 => "all are still open".to_owned(),
                    _ if n_final == n_windows => format!("all are final{since}"),
                    1 => format!("the first is final{since}"),
                    _ => format!("the first {n_final} are final{since}"),
                };
                format!("in {n_windows} {kind}s ({}){by}; {now}", self.range(windows))
            }
        }
    }

    fn late(&self, rule: LateRule, closing: Option<&Closing>) -> String {
        let (kind, how) = (self.kind(), self.closed_how(closing));
        let window = match rule {
            LateRule::KeyForgotten => return self.late_for_its_key(closing),
            LateRule::WindowClosed(window) => self.window(window),
        };
        let (n_missed, n_counted) = (self.receipt.missed_windows.len(), self.receipt.windows.len());
        match (n_missed, n_counted) {
            (0 | 1, 0) => format!("the {window} {kind} was closed{how}"),
            (n_missed, 0) => {
                format!("all of its {n_missed} {kind}s were closed, the last, {window},{how}")
            }
            (n_missed, n_counted) => {
                let missed = match n_missed {
                    1 => format!("the {window} {kind} was closed{how}"),
                    _ => format!(
                        "{n_missed} of its {kind}s were closed, the last of them, {window},{how}"
                    ),
                };
                let others = match n_counted {
                    1 => "the other one".to_owned(),
                    _ => format!("the other {n_counted}"),
                };
                format!("{missed}; it counts in {others}{}", self.by_batch())
            }
        }
    }

    /// Before its window is closed an event can be too late for the duplicates rule.
    fn late_for_its_key(&self, closing: Option<&Closing>) -> String {
        let how = self.closed_how(closing);
        format!(
            "whether it is a duplicate could no longer be told: its time, {}, was passed{how}",
            self.clock(self.event.event_time)
        )
    }

    /// How something was closed, with a space before it.
    fn closed_how(&self, closing: Option<&Closing>) -> String {
        let Some(Closing { watermark, record }) = closing else { return String::new() };
        let at = self.clock(watermark.as_event_time());
        match record {
            None if *watermark == Watermark::EPOCH => {
                format!(" from the start: watermarks begin at {watermark}")
            }
            None => format!(" at {at}"),
            Some(ClosingRecord::Event { order_id, event_time }) => {
                format!(" at {at} by order {order_id} of {}", self.clock(*event_time))
            }
            Some(ClosingRecord::Heartbeat { source, event_time }) => {
                format!(" at {at} by a heartbeat of {source} of {}", self.clock(*event_time))
            }
            Some(ClosingRecord::Idle { quiet }) => {
                format!(" at {at} because nothing came for {quiet}")
            }
        }
    }

    fn duplicate(&self, first: Option<&EventId>) -> String {
        let mut fields: Vec<&KeyField> = self.receipt.spec.deduplicate.iter().collect();
        fields.sort_by_key(|field| **field != KeyField::OrderId);
        let mut values = fields.into_iter().map(|field| self.value(field));
        let head = values.next().unwrap_or_default();
        let mut others: Vec<String> = values.collect();
        let with = match (others.pop(), others.join(", ")) {
            (None, _) => String::new(),
            (Some(last), before) if before.is_empty() => format!(" with {last}"),
            (Some(last), before) => format!(" with {before} and {last}"),
        };
        let first = first.map_or(String::new(), |first| format!(", as event {first}"));
        format!("{head}{with} was counted first{first}")
    }

    /// The value of a key's field, named.
    fn value(&self, field: &KeyField) -> String {
        let value = match field {
            KeyField::Amount => Some(amount_text(self.event.amount, self.event.currency)),
            KeyField::EventTime => Some(self.event.event_time.to_string()),
            KeyField::EventId
            | KeyField::OrderId
            | KeyField::Currency
            | KeyField::ItemCount
            | KeyField::Field(_) => field.text_in(self.event),
        };
        match (field, value) {
            (KeyField::OrderId, Some(value)) => format!("order {value}"),
            (field, Some(value)) => format!("{field} {value}"),
            (field, None) => format!("no {field}"),
        }
    }

    const fn kind(&self) -> &'static str {
        match self.receipt.spec.window {
            WindowSpec::Session { .. } => "session",
            WindowSpec::Tumbling { .. } | WindowSpec::Sliding { .. } => "window",
        }
    }

    fn by_batch(&self) -> String {
        self.receipt.batch_id.map_or(String::new(), |batch| format!(" by batch {batch}"))
    }

    /// Both bounds as clock times, or else both in full.
    fn window(&self, Window { start, end }: Window) -> String {
        if self.is_same_day(start) && self.is_same_day(end) {
            format!("{}–{}", self.clock(start), self.clock(end))
        } else {
            format!("{start}–{end}")
        }
    }

    fn range(&self, windows: &[Window]) -> String {
        let texts = [windows.first(), windows.last()].map(|one| one.map(|one| self.window(*one)));
        let texts: Vec<String> = texts.into_iter().flatten().collect();
        texts.join(" to ")
    }

    fn is_same_day(&self, time: EventTime) -> bool {
        let day = |time: EventTime| time.floor_to(Span::DAY, Span::ZERO);
        day(time) == day(self.event.event_time)
    }

    fn clock(&self, time: EventTime) -> String {
        let text = time.to_string();
        let clock = text.split_once('T').map(|(_, clock)| clock.trim_end_matches('Z'));
        match clock.filter(|_| self.is_same_day(time)) {
            Some(clock) => match clock.strip_suffix(":00") {
                Some(minutes) => minutes.to_owned(),
                None => clock.to_owned(),
            },
            None => text,
        }
    }
}

#[cfg(test)]
#[path = "receipt_words_tests.rs"]
mod tests;
