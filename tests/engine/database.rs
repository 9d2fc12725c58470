//! Stands in for the database: keeps what a commit would keep, and nothing else.

use std::collections::BTreeMap;

use tillmark::domain::{EventTime, OutputMode, Totals, Watermark, WindowKey};
use tillmark::engine::{Dropped, Outcome, Row, State};

/// One query's share of the database.
#[derive(Debug)]
pub(crate) struct Database {
    watermarks: (Watermark, Watermark),
    newest_event_time: Option<EventTime>,
    /// The open windows, as far as `state_changed` and `state_removed` told of them.
    pub(crate) state: BTreeMap<WindowKey, Totals>,
    /// The output table, as far as `rows` told of it.
    pub(crate) table: BTreeMap<WindowKey, Totals>,
    /// The ledger of dropped events.
    pub(crate) ledger: Vec<Dropped>,
}

impl Default for Database {
    fn default() -> Self {
        Self {
            watermarks: (Watermark::EPOCH, Watermark::EPOCH),
            newest_event_time: None,
            state: BTreeMap::new(),
            table: BTreeMap::new(),
            ledger: Vec::new(),
        }
    }
}

impl Database {
    /// Commits one micro-batch.
    pub(crate) fn commit(&mut self, mode: OutputMode, outcome: &Outcome) {
        self.watermarks = (outcome.watermark, outcome.next_watermark);
        self.newest_event_time = outcome.newest_event_time;
        for key in &outcome.state_removed {
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
    }

    /// What a process that starts now begins with.
    pub(crate) fn restore(&self) -> State {
        let (watermark, next_watermark) = self.watermarks;
        let windows =
            self.state.iter().map(|(key, totals)| Row { key: key.clone(), totals: *totals });
        State::restore(watermark, next_watermark, self.newest_event_time, windows)
    }
}

fn pairs(rows: &[Row]) -> impl Iterator<Item = (WindowKey, Totals)> {
    rows.iter().map(|row| (row.key.clone(), row.totals))
}
