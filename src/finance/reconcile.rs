//! The stream against the recount, window by window, every difference itemised. Pure.
//!
//! For every window and group: recount − stream = late + open + waiting, in events and in money.
//! What does not add up is `unexplained`, and somebody should look.

use std::collections::BTreeMap;

use crate::database::{ReconciliationSnapshot, Recount};
use crate::domain::{Currency, EventId, EventTime, Totals, WindowKey};

/// What a window's comparison comes to; the first that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The difference is not what its parts add up to: something was damaged.
    Unexplained,
    /// Events came after the window was final.
    Late,
    /// Events are counted in state, and the window is not final yet.
    Open,
    /// Events are received, and the query has not read them yet.
    Waiting,
    /// Stream and recount are equal.
    Match,
}

impl Verdict {
    /// The word of the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unexplained => "unexplained",
            Self::Late => "late",
            Self::Open => "open",
            Self::Waiting => "waiting",
            Self::Match => "match",
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
    /// Late events.
    pub late: Totals,
    /// Their ids, in the order of the raw log.
    pub late_event_ids: Vec<EventId>,
    /// Counted in state, not yet written.
    pub open: Totals,
    /// Received, not yet read by the query.
    pub waiting: Totals,
    /// Whether the window is final.
    pub is_final: bool,
}

impl Line {
    const EMPTY: Self = Self {
        stream: None,
        recount: None,
        late: Totals::ZERO,
        late_event_ids: Vec::new(),
        open: Totals::ZERO,
        waiting: Totals::ZERO,
        is_final: false,
    };

    /// What the recount has more than the stream.
    pub fn difference(&self) -> Totals {
        self.recount.unwrap_or_default().minus(self.stream.unwrap_or_default())
    }

    /// The part of the difference that nothing explains.
    pub fn unexplained(&self) -> Totals {
        self.difference().minus(self.late).minus(self.open).minus(self.waiting)
    }

    /// What the line comes to.
    pub fn verdict(&self) -> Verdict {
        if self.unexplained() != Totals::ZERO {
            Verdict::Unexplained
        } else if self.late != Totals::ZERO {
            Verdict::Late
        } else if self.open != Totals::ZERO {
            Verdict::Open
        } else if self.waiting != Totals::ZERO {
            Verdict::Waiting
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
    /// Counted in state, not yet written.
    pub open: Totals,
    /// Received, not yet read.
    pub waiting: Totals,
}

/// The whole report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconciliation {
    /// Every window that stands on either side, by start, then group and currency.
    pub lines: Vec<(WindowKey, Line)>,
    /// Per currency; currencies are never added together.
    pub totals: BTreeMap<Currency, CurrencyTotals>,
    /// How many lines are unexplained.
    pub unexplained: usize,
}

/// Compares both sides of a snapshot.
pub fn compare(snapshot: &ReconciliationSnapshot) -> Reconciliation {
    let complete_through = snapshot.query.complete_through();
    let mut lines = gather(snapshot);
    for (key, line) in &mut lines {
        line.is_final |= complete_through.is_some_and(|through| key.window.end <= through);
    }
    let mut totals: BTreeMap<Currency, CurrencyTotals> = BTreeMap::new();
    for (key, line) in &lines {
        let sum = totals.entry(key.currency).or_default();
        sum.stream = sum.stream.plus(line.stream.unwrap_or_default());
        sum.recount = sum.recount.plus(line.recount.unwrap_or_default());
        sum.late = sum.late.plus(line.late);
        sum.open = sum.open.plus(line.open);
        sum.waiting = sum.waiting.plus(line.waiting);
    }
    let unexplained = lines.values().filter(|line| line.verdict() == Verdict::Unexplained).count();
    let mut lines: Vec<(WindowKey, Line)> = lines.into_iter().collect();
    lines.sort_by(|(a, _), (b, _)| reading_order(a).cmp(&reading_order(b)));
    Reconciliation { lines, totals, unexplained }
}

fn reading_order(key: &WindowKey) -> (EventTime, EventTime, &crate::domain::GroupKey, Currency) {
    (key.window.start, key.window.end, &key.group, key.currency)
}

/// Puts what every source says of a window into one line.
fn gather(snapshot: &ReconciliationSnapshot) -> BTreeMap<WindowKey, Line> {
    let mut lines: BTreeMap<WindowKey, Line> = BTreeMap::new();
    let mut line = |key: &WindowKey, fill: &dyn Fn(&mut Line)| {
        fill(lines.entry(key.clone()).or_insert(Line::EMPTY));
    };
    for (key, Recount { all, waiting }) in &snapshot.recount {
        line(key, &|line| (line.recount, line.waiting) = (Some(*all), *waiting));
    }
    for (key, totals, is_final) in &snapshot.stream {
        line(key, &|line| (line.stream, line.is_final) = (Some(*totals), *is_final));
    }
    for (key, totals, event_ids) in &snapshot.late {
        line(key, &|line| (line.late, line.late_event_ids) = (*totals, event_ids.clone()));
    }
    for (key, totals) in &snapshot.open {
        line(key, &|line| line.open = *totals);
    }
    lines
}
