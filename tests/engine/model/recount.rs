//! A plain recount of the raw log, without any event-time rule, and how it and the stream's numbers
//! explain each other: recount = stream + late + open + waiting − repeats, line by line.
//!
//! A line is a window; with sessions it is one session of everything that arrived, so that whatever
//! sessions the stream made of it lie inside.

use super::log::{ModelEvent, ModelRecord, ModelRules};
use super::outcome::ModelDrop;
use super::windows::{ModelKey, ModelRow, add_rows, covers, keys_of, merge_rows};

/// An event in one of its windows.
struct Placed {
    /// How many records of the log stand before it.
    position: usize,
    seq: i64,
    own: ModelKey,
    line: ModelKey,
    money: i64,
    /// Whether it is the first with its key in the whole log; so is every event without a rule.
    is_first: bool,
}

/// What must be counted of a log.
pub(crate) struct Recount {
    placed: Vec<Placed>,
}

/// What the stream told of itself.
pub(crate) struct Told<'run> {
    /// Its output table.
    pub(crate) table: Vec<ModelRow>,
    /// What it has counted and not written yet.
    pub(crate) open: Vec<ModelRow>,
    /// Its ledger of dropped events, ordered by `seq` and key.
    pub(crate) ledger: &'run [ModelDrop],
    /// How many records it has read.
    pub(crate) position: usize,
}

/// Every part of a reconciliation, ordered by line.
#[derive(Debug)]
pub(crate) struct Accounts {
    pub(crate) recount: Vec<ModelRow>,
    pub(crate) stream: Vec<ModelRow>,
    pub(crate) late: Vec<ModelRow>,
    pub(crate) open: Vec<ModelRow>,
    pub(crate) waiting: Vec<ModelRow>,
    /// Counted by the stream, not by the recount.
    pub(crate) repeats: Vec<ModelRow>,
    /// Read, and counted by neither.
    pub(crate) duplicates: Vec<ModelRow>,
}

impl Recount {
    pub(crate) fn of(rules: &ModelRules, log: &[ModelRecord]) -> Self {
        let mut placed = Vec::new();
        let mut known_keys: Vec<Vec<Option<String>>> = Vec::new();
        for (position, record) in log.iter().enumerate() {
            let Some(event) = record.event().filter(|event| rules.matches(event)) else { continue };
            let is_first = !rules.has_duplicates_rule() || {
                let values = event.values(&rules.deduplicate);
                let is_new = !known_keys.contains(&values);
                known_keys.push(values);
                is_new
            };
            placed.extend(place(rules, event, position, is_first));
        }
        let mut recount = Self { placed };
        if rules.windows.are_sessions() {
            recount.draw_lines_around_sessions();
        }
        recount
    }

    fn draw_lines_around_sessions(&mut self) {
        let lines = merge_rows(self.placed.iter().map(|placed| (placed.own.clone(), 0, 0)));
        for placed in &mut self.placed {
            placed.line = line_of(&lines, &placed.own);
        }
    }

    /// Holds what the stream told against the log.
    pub(crate) fn accounts(&self, told: &Told<'_>) -> Accounts {
        let parts = || (Vec::new(), Vec::new(), Vec::new());
        let ((mut recount, mut late, mut waiting), (mut repeats, mut duplicates, _)) =
            (parts(), parts());
        let mut entries_found = 0;
        for placed in &self.placed {
            let row = || (placed.line.clone(), 1, i128::from(placed.money));
            let entry =
                told.ledger.iter().find(|entry| entry.seq == placed.seq && entry.key == placed.own);
            let is_read = placed.position < told.position;
            entries_found += usize::from(entry.is_some());
            assert!(is_read || entry.is_none(), "dropped before it was read: {:?}", placed.own);
            if placed.is_first {
                recount.push(row());
                match entry {
                    Some(entry) if entry.is_duplicate => panic!("of nothing: {entry:?}"),
                    Some(_) => late.push(row()),
                    None if !is_read => waiting.push(row()),
                    None => {}
                }
            } else if is_read {
                let part = if entry.is_some() { &mut duplicates } else { &mut repeats };
                part.push(row());
            }
        }
        assert_eq!(entries_found, told.ledger.len(), "entries for what nobody posted");
        Accounts {
            recount: add_rows(recount),
            stream: self.on_lines(&told.table),
            late: add_rows(late),
            open: self.on_lines(&told.open),
            waiting: add_rows(waiting),
            repeats: add_rows(repeats),
            duplicates: add_rows(duplicates),
        }
    }

    /// Rows of the stream added up on the lines that they are parts of.
    fn on_lines(&self, rows: &[ModelRow]) -> Vec<ModelRow> {
        let line = |key: &ModelKey| {
            let placed = self.placed.iter().find(|placed| covers(key, &placed.own));
            placed.map_or_else(|| panic!("a row of nothing: {key:?}"), |placed| placed.line.clone())
        };
        add_rows(rows.iter().map(|(key, orders, money)| (line(key), *orders, *money)))
    }
}

impl Accounts {
    /// What the stream's side and everything itemised come to; lines of nothing left out.
    pub(crate) fn explained(&self) -> Vec<ModelRow> {
        let added = [&self.stream, &self.late, &self.open, &self.waiting];
        let repeats =
            self.repeats.iter().map(|(key, orders, money)| (key.clone(), -orders, -money));
        let mut explained = add_rows(added.into_iter().flatten().cloned().chain(repeats));
        explained.retain(|(_, orders, money)| (*orders, *money) != (0, 0));
        explained
    }
}

fn place(
    rules: &ModelRules,
    event: &ModelEvent,
    position: usize,
    is_first: bool,
) -> impl Iterator<Item = Placed> {
    let (seq, money) = (event.seq, event.money);
    let keys = keys_of(rules, event).into_iter();
    keys.map(move |own| Placed { position, seq, line: own.clone(), own, money, is_first })
}

fn line_of(lines: &[ModelRow], own: &ModelKey) -> ModelKey {
    lines.iter().find(|line| covers(&line.0, own)).unwrap().0.clone()
}
