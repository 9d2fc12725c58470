//! Windows → local hours, days, weeks and months. Pure.
//!
//! Invariants:
//! * Every window of a period is in its fold or in none: [`fit`](super::local_fit) has made sure that no
//!   window lies across a boundary.
//! * A fold is final when every window in it is, those without a row included.
//! * Folds come in the order of their periods, then of group and currency.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use crate::database::WindowRow;
use crate::domain::{
    BatchId, Calendar, ClosedBy, Currency, EventTime, GroupKey, Period, Totals, Window, WindowKey,
};

/// The windows that are asked for, by the boundaries around them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FoldRange {
    /// The start of the first window.
    pub from: Option<EventTime>,
    /// The end of the last.
    pub to: Option<EventTime>,
}

/// What the windows of a period come to, for one group and currency.
#[derive(Debug, Clone)]
pub struct FoldedRow {
    /// The period.
    pub period: Period,
    /// The part of it that was asked for.
    pub covered: Window,
    /// The implicit group key.
    pub currency: Currency,
    /// The group-by values.
    pub group: GroupKey,
    /// What was counted.
    pub totals: Totals,
    /// The last batch that wrote one of the rows.
    pub batch_id: Option<BatchId>,
    /// The last moment when one was written, by the database's clock.
    pub written_at: DateTime<Utc>,
    /// What made it final: the wall clock, where that closed one of its windows. Nothing while it is not.
    pub closed_by: Option<ClosedBy>,
    /// Events that came too late to count; with corrections, those in none.
    pub late_since: Totals,
    /// How much of the totals are corrections, where they were asked for.
    pub corrections: Option<Totals>,
}

impl FoldedRow {
    /// Whether every window in it is final.
    pub fn is_final(&self) -> bool {
        self.closed_by.is_some()
    }

    /// Whether `from` or `to` cut it.
    pub fn is_partial(&self) -> bool {
        self.covered != self.period.bounds
    }

    /// What it stands for, the whole period as its window.
    pub fn key(&self) -> WindowKey {
        let (currency, group) = (self.currency, self.group.clone());
        WindowKey { window: self.period.bounds, currency, group }
    }
}

/// Folds windows that come by their start.
#[derive(Debug)]
pub struct Folding {
    calendar: Calendar,
    range: FoldRange,
    complete_through: Option<EventTime>,
    open: Option<OpenPeriod>,
}

#[derive(Debug)]
struct OpenPeriod {
    period: Period,
    rows: BTreeMap<(GroupKey, Currency), FoldedRow>,
}

impl Folding {
    /// Folds windows of `range`. Those that end by `complete_through` are final, whether or not they have
    /// a row.
    pub fn new(calendar: Calendar, range: FoldRange, complete_through: Option<EventTime>) -> Self {
        Self { calendar, range, complete_through, open: None }
    }

    /// Takes the next window. Answers with the folds of the period before, when it begins another.
    pub fn take(&mut self, row: &WindowRow) -> Vec<FoldedRow> {
        let start = row.key.window.start;
        let goes_on = self.open.as_ref().is_some_and(|open| start < open.period.bounds.end);
        let done = if goes_on { Vec::new() } else { self.end() };
        let calendar = &self.calendar;
        let open = self.open.get_or_insert_with(|| OpenPeriod {
            period: calendar.period_of(start),
            rows: BTreeMap::new(),
        });
        let period = open.period;
        let covered = self.range.part_of(period.bounds);
        let is_final = self.complete_through.is_some_and(|through| covered.end <= through);
        let closed_by = is_final.then_some(ClosedBy::Watermark);
        let WindowKey { currency, group, .. } = &row.key;
        let fold = open.rows.entry((group.clone(), *currency)).or_insert_with(|| FoldedRow {
            period,
            covered,
            currency: *currency,
            group: group.clone(),
            totals: Totals::ZERO,
            batch_id: row.batch_id,
            written_at: row.written_at,
            closed_by,
            late_since: Totals::ZERO,
            corrections: None,
        });
        fold.add(row);
        done
    }

    /// The folds of the last period.
    pub fn end(&mut self) -> Vec<FoldedRow> {
        self.open.take().map(|open| open.rows.into_values().collect()).unwrap_or_default()
    }
}

impl FoldedRow {
    fn add(&mut self, row: &WindowRow) {
        self.totals = self.totals.plus(row.totals);
        self.late_since = self.late_since.plus(row.late_since);
        if let Some(corrections) = row.corrections {
            self.corrections = Some(self.corrections.unwrap_or_default().plus(corrections));
        }
        self.batch_id = self.batch_id.max(row.batch_id);
        self.written_at = self.written_at.max(row.written_at);
        if self.is_final() && row.closed_by.as_deref() == Some(ClosedBy::Idle.as_str()) {
            self.closed_by = Some(ClosedBy::Idle);
        }
    }
}

impl FoldRange {
    /// The part of a period that is asked for.
    fn part_of(self, period: Window) -> Window {
        let start = self.from.map_or(period.start, |from| from.max(period.start));
        let end = self.to.map_or(period.end, |to| to.min(period.end));
        Window { start, end }
    }
}

#[cfg(test)]
#[path = "local_days_tests.rs"]
mod tests;
