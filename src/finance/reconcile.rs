//! The stream against the recount, window by window, every difference itemised. Pure.
//!
//! For every window and group: recount − stream = corrections + late + open + waiting − repeats, in
//! events and in money; `late` is what no correction holds.
//! What does not add up is `unexplained`, and somebody should look.

mod gather;

use std::collections::BTreeMap;

use crate::database::{Finding, ReconciliationSnapshot};
use crate::domain::{
    Currency, EventField, EventId, EventTime, GroupKey, Money, StoreReach, Totals, WindowKey,
};

/// What a window's comparison comes to; the first that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The difference is not what its parts add up to: something was damaged.
    Unexplained,
    /// Late events were booked as corrections.
    Corrected,
    /// Events came after the window was final.
    Late,
    /// Events are counted in state, and the window is not final yet.
    Open,
    /// Events are received, and the query has not read them yet.
    Waiting,
    /// The stream counts events that the recount does not: repeats of keys that it had forgotten.
    Repeats,
    /// Stream and recount are equal.
    Match,
}

impl Verdict {
    /// The word of the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unexplained => "unexplained",
            Self::Corrected => "corrected",
            Self::Late => "late",
            Self::Open => "open",
            Self::Waiting => "waiting",
            Self::Repeats => "repeats",
            Self::Match => "match",
        }
    }
}

/// What a difference is made of besides late events, and what stands beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Parts {
    /// Counted in state, not yet written.
    pub open: Totals,
    /// Received, not yet read by the query.
    pub waiting: Totals,
    /// Counted by the stream and not by the recount.
    pub repeats: Totals,
    /// Counted by neither, for information.
    pub duplicates: Totals,
    /// Set aside: in quarantine, or impossible to process. Stands beside the recount, not in it.
    pub quarantined: Totals,
    /// Late events that were booked: they are in no row, and explained by who booked them.
    pub corrections: Totals,
}

impl Parts {
    const NONE: Self = Self {
        open: Totals::ZERO,
        waiting: Totals::ZERO,
        repeats: Totals::ZERO,
        duplicates: Totals::ZERO,
        quarantined: Totals::ZERO,
        corrections: Totals::ZERO,
    };

    fn plus(self, other: Self) -> Self {
        Self {
            open: self.open.plus(other.open),
            waiting: self.waiting.plus(other.waiting),
            repeats: self.repeats.plus(other.repeats),
            duplicates: self.duplicates.plus(other.duplicates),
            quarantined: self.quarantined.plus(other.quarantined),
            corrections: self.corrections.plus(other.corrections),
        }
    }
}

/// One line: a window and group on both sides, and what makes the difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// What the stream wrote; nothing where no row exists.
    pub stream: Option<Totals>,
    /// What the raw log holds; nothing where it holds no matching event.
    pub recount: Option<Totals>,
    /// Late events that no correction holds.
    pub late: Totals,
    /// Their ids, in the order of the raw log.
    pub late_event_ids: Vec<EventId>,
    /// What else the difference is made of.
    pub parts: Parts,
    /// Whether the window is final.
    pub is_final: bool,
    /// What was met here and cannot be; each a sentence without its full stop.
    pub findings: Vec<String>,
}

impl Line {
    const EMPTY: Self = Self {
        stream: None,
        recount: None,
        late: Totals::ZERO,
        late_event_ids: Vec::new(),
        parts: Parts::NONE,
        is_final: false,
        findings: Vec::new(),
    };

    /// What the recount has more than the stream.
    pub fn difference(&self) -> Totals {
        self.recount.unwrap_or_default().minus(self.stream.unwrap_or_default())
    }

    /// The part of the difference that nothing explains.
    pub fn unexplained(&self) -> Totals {
        let Parts { open, waiting, repeats, corrections, .. } = self.parts;
        let explained = self.late.plus(corrections).plus(open).plus(waiting).minus(repeats);
        self.difference().minus(explained)
    }

    /// Says in which way the sides disagree, where nothing explains it.
    fn name_what_is_unexplained(&mut self, currency: Currency) {
        let Totals { orders, revenue } = self.unexplained();
        if self.unexplained() == Totals::ZERO {
            return;
        }
        let money = Money { revenue, currency };
        let what = match (self.stream, self.recount) {
            (None, Some(_)) if self.parts.open != Totals::ZERO => {
                "the state, the ledger and the raw log disagree"
            }
            (None, Some(_)) => "the stream has no row, or state, for what the raw log holds",
            (Some(_), None) => "the stream has a row for which the raw log holds no event",
            (Some(_), Some(_)) => "the stream's row, the ledger and the raw log disagree",
            (None, None) => "the ledger or the state names events that the raw log does not hold",
        };
        let code = currency.code();
        self.findings.push(format!("{what}: {orders} orders, {money} {code} are not explained"));
    }

    /// What the line comes to.
    pub fn verdict(&self) -> Verdict {
        if self.unexplained() != Totals::ZERO || !self.findings.is_empty() {
            Verdict::Unexplained
        } else if self.parts.corrections != Totals::ZERO {
            Verdict::Corrected
        } else if self.late != Totals::ZERO {
            Verdict::Late
        } else if self.parts.open != Totals::ZERO {
            Verdict::Open
        } else if self.parts.waiting != Totals::ZERO {
            Verdict::Waiting
        } else if self.parts.repeats != Totals::ZERO {
            Verdict::Repeats
        } else {
            Verdict::Match
        }
    }
}

/// All lines of one currency added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CurrencyTotals {
    /// What the stream wrote.
    pub stream: Totals,
    /// What the raw log holds.
    pub recount: Totals,
    /// Late events.
    pub late: Totals,
    /// What else the differences are made of.
    pub parts: Parts,
}

/// The whole report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconciliation {
    /// Every window that stands on either side, by start, then group and currency.
    pub lines: Vec<(WindowKey, Line)>,
    /// Per currency; currencies are never added together.
    pub totals: BTreeMap<Currency, CurrencyTotals>,
    /// How many lines are unexplained, and what was met besides that nobody can explain.
    pub unexplained: usize,
    /// What was met and belongs to no line.
    pub findings: Vec<Finding>,
}

/// Which lines to keep: those of one currency, and of these values of the group key by their places;
/// an empty text also means no value.
#[derive(Debug, Clone, Default)]
pub struct LineFilter {
    /// The currency.
    pub currency: Option<Currency>,
    /// The values.
    pub group: Vec<(usize, String)>,
    /// The stores. Of some stores only, what belongs to no line is left out too: it may be of others.
    pub reach: StoreReach,
}

impl LineFilter {
    fn keeps(&self, group_by: &[EventField], key: &WindowKey) -> bool {
        self.currency.is_none_or(|currency| currency == key.currency)
            && self.reach.holds_group(group_by, &key.group)
            && self.group.iter().all(|(index, value)| {
                key.group.0.get(*index).is_some_and(|has| has.as_deref().unwrap_or("") == value)
            })
    }
}

/// Compares both sides of a snapshot in the lines that `filter` keeps.
pub fn compare(snapshot: &ReconciliationSnapshot, filter: &LineFilter) -> Reconciliation {
    let complete_through = snapshot.query.complete_through();
    let mut lines = gather::gather(snapshot);
    lines.retain(|key, _| filter.keeps(&snapshot.query.spec.group_by, key));
    for (key, line) in &mut lines {
        line.is_final |= complete_through.is_some_and(|through| key.window.end <= through);
        line.name_what_is_unexplained(key.currency);
    }
    let mut totals: BTreeMap<Currency, CurrencyTotals> = BTreeMap::new();
    for (key, line) in &lines {
        let sum = totals.entry(key.currency).or_default();
        sum.stream = sum.stream.plus(line.stream.unwrap_or_default());
        sum.recount = sum.recount.plus(line.recount.unwrap_or_default());
        sum.late = sum.late.plus(line.late);
        sum.parts = sum.parts.plus(line.parts);
    }
    let lines_unexplained = lines.values().filter(|line| line.verdict() == Verdict::Unexplained);
    let is_whole = !filter.reach.is_bound();
    let elsewhere = snapshot.findings.iter().filter(|finding| is_whole && finding.key.is_none());
    let findings: Vec<Finding> = elsewhere.cloned().collect();
    let faults_elsewhere = findings.iter().filter(|finding| finding.is_fault).count();
    let unexplained = lines_unexplained.count().saturating_add(faults_elsewhere);
    let mut lines: Vec<(WindowKey, Line)> = lines.into_iter().collect();
    lines.sort_by(|(a, _), (b, _)| reading_order(a).cmp(&reading_order(b)));
    Reconciliation { lines, totals, unexplained, findings }
}

fn reading_order(key: &WindowKey) -> (EventTime, EventTime, &GroupKey, Currency) {
    (key.window.start, key.window.end, &key.group, key.currency)
}

#[cfg(test)]
mod tests;
