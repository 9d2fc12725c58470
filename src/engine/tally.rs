//! What a batch adds to each window and group, before it is merged into the state.

use std::collections::BTreeMap;

use crate::domain::{Amount, EventTime, Span, Totals, Window, WindowKey};

use super::groups::Groups;

/// Totals by window and group number.
#[derive(Debug, Default)]
pub(super) struct Tally {
    numbers: BTreeMap<Window, usize>,
    windows: Vec<(Window, BTreeMap<u32, Totals>)>,
    /// The window counted in last: neighbours in the log mostly share theirs.
    last: usize,
}

impl Tally {
    /// Counts one event.
    pub(super) fn count(&mut self, window: Window, group: u32, amount: Amount) {
        let is_last = self.windows.get(self.last).is_some_and(|(last, _)| *last == window);
        if !is_last {
            self.last = *self.numbers.entry(window).or_insert_with(|| {
                self.windows.push((window, BTreeMap::new()));
                self.windows.len().saturating_sub(1)
            });
        }
        if let Some((_, totals)) = self.windows.get_mut(self.last) {
            totals.entry(group).or_default().count(amount);
        }
    }

    /// The additions, ordered by key.
    pub(super) fn into_additions(self, groups: &Groups) -> Vec<(WindowKey, Totals)> {
        let mut additions = Vec::new();
        for (window, totals) in self.windows {
            for (number, totals) in totals {
                let Some((currency, group)) = groups.get(number).cloned() else { continue };
                additions.push((WindowKey { window, currency, group }, totals));
            }
        }
        additions.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        additions
    }
}

/// The sessions that the events of a batch open, by group number.
#[derive(Debug, Default)]
pub(super) struct SessionTally {
    opened: Vec<(u32, EventTime, Amount)>,
}

impl SessionTally {
    /// Notes the session that one event opens.
    pub(super) fn open(&mut self, time: EventTime, group: u32, amount: Amount) {
        self.opened.push((group, time, amount));
    }

    /// The sessions, each as large as this batch alone makes it, by group and time.
    pub(super) fn into_sessions(mut self, gap: Span) -> Vec<(u32, Window, Totals)> {
        self.opened.sort_unstable_by_key(|&(group, time, _)| (group, time));
        let mut sessions: Vec<(u32, Window, Totals)> = Vec::new();
        for (group, time, amount) in self.opened {
            let end = time.plus(gap);
            match sessions.last_mut() {
                Some((last, window, totals)) if *last == group && time <= window.end => {
                    window.end = end;
                    totals.count(amount);
                }
                _ => {
                    let mut totals = Totals::ZERO;
                    totals.count(amount);
                    sessions.push((group, Window { start: time, end }, totals));
                }
            }
        }
        sessions
    }
}
