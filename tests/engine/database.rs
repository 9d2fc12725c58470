//! Stands in for the database: keeps what a commit would keep, and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use tillmark::domain::{EventTime, OutputMode, Totals, WindowKey};
use tillmark::engine::{Dropped, Outcome, Remembered, Row, State, Watermarks};

/// One query's share of the database.
#[derive(Debug)]
pub(crate) struct Database {
    watermarks: Watermarks,
    newest_event_time: Option<EventTime>,
    /// The open windows, as far as `state_changed` and `state_removed` told of them.
    pub(crate) state: BTreeMap<WindowKey, Totals>,
    /// The output table, as far as `rows` told of it.
    pub(crate) table: BTreeMap<WindowKey, Totals>,
    /// The ledger of dropped events.
    pub(crate) ledger: Vec<Dropped>,
    /// The keys that the duplicates rule remembers.
    pub(crate) remembered: BTreeSet<Remembered>,
}

impl Default for Database {
    fn default() -> Self {
        Self {
            watermarks: Watermarks::EPOCH,
            newest_event_time: None,
            state: BTreeMap::new(),
            table: BTreeMap::new(),
            ledger: Vec::new(),
            remembered: BTreeSet::new(),
        }
    }
}

impl Database {
    /// Commits one micro-batch.
    pub(crate) fn commit(&mut self, mode: OutputMode, outcome: &Outcome) {
        self.watermarks = outcome.watermarks;
        self.newest_event_time = outcome.newest_event_time;
        for key in outcome.state_removed.iter().chain(&outcome.state_merged) {
            self.state.remove(key);
        }
        self.state.extend(pairs(&outcome.state_changed));
        if mode == OutputMode::Complete {
            self.table.clear();
        }
        for (key, totals) in pairs(&outcome.rows) {
            let before = self.table.insert(key.clone(), totals);
            let written_again = mode != OutputMode::Update && before.is_some();
            assert!(!written_again, "{key:?} was written twice");
        }
        self.ledger.extend(outcome.dropped.iter().cloned());
        let now = outcome.watermarks.current.as_event_time();
        let remembered_before = self.remembered.len();
        self.remembered.retain(|remembered| remembered.expires_at > now);
        let forgotten = remembered_before - self.remembered.len();
        assert!(forgotten as u64 <= outcome.keys_forgotten, "forgotten without a word");
        self.remembered.extend(outcome.keys_remembered.iter().cloned());
    }

    /// What a process that starts now begins with.
    pub(crate) fn restore(&self) -> State {
        let windows =
            self.state.iter().map(|(key, totals)| Row { key: key.clone(), totals: *totals });
        let remembered = self.remembered.iter().cloned();
        State::restore(self.watermarks, self.newest_event_time, windows, remembered)
    }
}

fn pairs(rows: &[Row]) -> impl Iterator<Item = (WindowKey, Totals)> {
    rows.iter().map(|row| (row.key.clone(), row.totals))
}
