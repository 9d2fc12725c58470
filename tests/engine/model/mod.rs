//! A naive model of the rules: it keeps lists of events and works everything out anew from them.
//! No code of the engine, no running sums, no maps.
//!
//! All numbers are plain: microseconds, milliseconds for watermarks and lengths, ten-thousandths of
//! a currency for money.

mod log;
mod outcome;
mod recount;
mod windows;

pub(crate) use log::{ModelEvent, ModelMode, ModelRecord, ModelRules, ModelSettings, ModelWindows};
pub(crate) use outcome::{ModelDrop, ModelOutcome, ModelRemembered, ModelWatermarks};
pub(crate) use recount::{Accounts, Recount, Told};
pub(crate) use windows::{ModelKey, ModelRow, add_rows, covers, keys_of};

use windows::merge_rows;

struct ModelBatch {
    events: Vec<ModelEvent>,
    heartbeats: Vec<i64>,
    idle_heartbeats: Vec<i64>,
    delay_millis: i64,
}

/// An event in one of the windows that it was counted in.
struct Counted {
    batch: usize,
    own: ModelKey,
    money: i64,
}

/// An event that was the first with its key.
struct First {
    batch: usize,
    values: Vec<Option<String>>,
    expires_at: i64,
}

pub(crate) struct Model {
    rules: ModelRules,
    batches: Vec<ModelBatch>,
    /// `W(0)`, `W(1)` … up to the one that comes next, each with what it would be without idle
    /// heartbeats.
    watermarks: Vec<(i64, i64)>,
    /// The counted events whose windows are open.
    sitting: Vec<Counted>,
    /// The windows that were closed.
    closed: Vec<ModelRow>,
    /// The first event of each key, again and again once it was forgotten.
    firsts: Vec<First>,
}

impl Model {
    pub(crate) fn new(rules: ModelRules) -> Self {
        let (batches, sitting, closed, firsts) = (vec![], vec![], vec![], vec![]);
        Self { rules, batches, watermarks: vec![(0, 0)], sitting, closed, firsts }
    }

    /// Whether a batch without data is owed.
    pub(crate) fn owes(&self) -> bool {
        let count = self.batches.len();
        self.rules.closes() && self.watermarks[count].0 > self.late_watermark(count)
    }

    /// `W(n-1)`, which judges batch `n`; of no batch, zero.
    pub(crate) fn late_watermark(&self, n: usize) -> i64 {
        if n == 0 { 0 } else { self.watermarks[n - 1].0 }
    }

    /// Runs a batch; an empty one is the batch without data. Nothing when there is none to report.
    pub(crate) fn run(
        &mut self,
        read: &[ModelRecord],
        settings: ModelSettings,
    ) -> Option<ModelOutcome> {
        let batch = self.batch_of(read, settings);
        let nothing = batch.events.is_empty()
            && batch.heartbeats.is_empty()
            && batch.idle_heartbeats.is_empty();
        if nothing && !(read.is_empty() && self.owes()) {
            return None;
        }
        self.batches.push(batch);
        let next = self.batches.len();
        self.watermarks.push((self.reached(next, true), self.reached(next, false)));
        Some(self.outcome_of_last())
    }

    fn batch_of(&self, read: &[ModelRecord], settings: ModelSettings) -> ModelBatch {
        let delay_millis = settings.delay_millis;
        let (events, heartbeats, idle_heartbeats) = (vec![], vec![], vec![]);
        let mut batch = ModelBatch { events, heartbeats, idle_heartbeats, delay_millis };
        for record in read {
            match record {
                ModelRecord::Event(event) if self.rules.matches(event) => {
                    batch.events.push(event.clone());
                }
                ModelRecord::Event(_) => {}
                ModelRecord::Heartbeat { micros, .. } => batch.heartbeats.push(*micros),
                ModelRecord::IdleHeartbeat { micros, quiet_millis, .. } => {
                    if settings.idle_timeout_millis.is_some_and(|after| *quiet_millis >= after) {
                        batch.idle_heartbeats.push(*micros);
                    }
                }
            }
        }
        batch
    }

    /// `W(n)`: the largest of zero and of what each batch before `n` reached.
    fn reached(&self, n: usize, with_silence: bool) -> i64 {
        let mut watermark = 0;
        for batch in &self.batches[..n] {
            let idle = batch.idle_heartbeats.iter().copied().filter(|_| with_silence);
            let events = batch.events.iter().map(|event| event.micros);
            for micros in events.chain(batch.heartbeats.iter().copied()).chain(idle) {
                watermark = watermark.max(micros.div_euclid(1_000) - batch.delay_millis);
            }
        }
        watermark
    }

    /// The newest event time before batch `n`.
    fn newest_before(&self, n: usize) -> Option<i64> {
        self.batches[..n].iter().flat_map(|batch| &batch.events).map(|event| event.micros).max()
    }

    fn outcome_of_last(&mut self) -> ModelOutcome {
        let n = self.batches.len() - 1;
        let open_before = self.open();
        let dropped = self.judge(n);
        let now = self.open();
        let touched: Vec<ModelRow> =
            now.iter().filter(|row| self.is_touched(row, n)).cloned().collect();
        let (closing, open): (Vec<ModelRow>, Vec<ModelRow>) =
            now.iter().cloned().partition(|row| self.is_closed(&row.0, n));
        self.sitting.retain(|counted| !closing.iter().any(|row| covers(&row.0, &counted.own)));
        self.closed.extend(closing.iter().cloned());
        let is_gone = |key: &ModelKey| !now.iter().any(|row| row.0 == *key);
        let late_events = count_events(dropped.iter().filter(|entry| !entry.is_duplicate));
        let duplicates = count_events(dropped.iter().filter(|entry| entry.is_duplicate));
        ModelOutcome {
            watermarks: self.watermarks_of(n),
            newest_event: self.newest_before(n + 1),
            events_in: count(self.batches[n].events.len()),
            late_events,
            duplicates,
            event_times: self.times(n),
            windows_updated: count(touched.len()),
            windows_open: count(open.len()),
            state_changed: touched.iter().filter(|row| open.contains(row)).cloned().collect(),
            state_removed: closing
                .iter()
                .map(|row| (row.0.clone(), row.0.0 > self.watermarks[n].1 * 1_000))
                .collect(),
            state_merged: open_before.into_iter().map(|row| row.0).filter(is_gone).collect(),
            rows: match self.rules.mode {
                ModelMode::Append => closing,
                ModelMode::Update => touched,
                ModelMode::Complete => now,
            },
            dropped,
            keys_remembered: self
                .firsts
                .iter()
                .filter(|first| first.batch == n && first.expires_at > self.micros_at(n))
                .map(|first| (first.expires_at, first.values.clone()))
                .collect(),
            keys_forgotten: count(
                self.firsts
                    .iter()
                    .filter(|first| self.is_remembered(first, n))
                    .filter(|first| first.expires_at <= self.micros_at(n))
                    .count(),
            ),
        }
    }

    fn watermarks_of(&self, n: usize) -> ModelWatermarks {
        ModelWatermarks {
            late: self.late_watermark(n),
            current: self.watermarks[n].0,
            current_by_sources: self.watermarks[n].1,
            next: self.watermarks[n + 1].0,
            next_by_sources: self.watermarks[n + 1].1,
        }
    }

    /// Judges the events of batch `n`, one by one: late, duplicate, or counted in their windows.
    fn judge(&mut self, n: usize) -> Vec<ModelDrop> {
        let mut dropped = Vec::new();
        let newest = self.newest_before(n);
        for event in self.batches[n].events.clone() {
            let own = keys_of(&self.rules, &event);
            let mut drop = |key: ModelKey, is_duplicate: bool| {
                let late_by_millis =
                    newest.map_or(0, |newest| (newest - event.micros).max(0) / 1_000);
                let (seq, money) = (event.seq, event.money);
                dropped.push(ModelDrop { seq, key, money, is_duplicate, late_by_millis });
            };
            if self.rules.has_duplicates_rule() {
                let is_late = self.is_late(event.micros, n);
                if is_late || self.is_duplicate(&event, n) {
                    own.into_iter().for_each(|key| drop(key, !is_late));
                    continue;
                }
                let values = event.values(&self.rules.deduplicate);
                let expires_at = event.micros + self.batches[n].delay_millis * 1_000;
                self.firsts.push(First { batch: n, values, expires_at });
            }
            for key in own {
                if self.is_late(key.0, n) {
                    drop(key, false);
                } else {
                    self.sitting.push(Counted { batch: n, own: key, money: event.money });
                }
            }
        }
        dropped.sort();
        dropped
    }

    /// Whether what ends at `end` is late in batch `n`.
    fn is_late(&self, end: i64, n: usize) -> bool {
        self.rules.closes() && end <= self.late_watermark(n) * 1_000
    }

    fn is_duplicate(&self, event: &ModelEvent, n: usize) -> bool {
        let values = event.values(&self.rules.deduplicate);
        self.firsts.iter().any(|first| first.values == values && self.is_remembered(first, n))
    }

    /// Whether batch `n` finds this key remembered, or remembers it itself.
    fn is_remembered(&self, first: &First, n: usize) -> bool {
        first.batch == n || first.expires_at > self.late_watermark(n) * 1_000
    }

    fn micros_at(&self, n: usize) -> i64 {
        self.watermarks[n].0 * 1_000
    }

    fn is_closed(&self, key: &ModelKey, n: usize) -> bool {
        self.rules.closes() && key.0 <= self.micros_at(n)
    }

    fn is_touched(&self, row: &ModelRow, n: usize) -> bool {
        self.sitting.iter().any(|counted| counted.batch == n && covers(&row.0, &counted.own))
    }

    /// Oldest, newest and mean event time of batch `n`.
    fn times(&self, n: usize) -> Option<(i64, i64, i64)> {
        let times = || self.batches[n].events.iter().map(|event| event.micros);
        let sum: i128 = times().map(i128::from).sum();
        let mean = sum.div_euclid(i128::try_from(times().count().max(1)).unwrap());
        Some((times().min()?, times().max()?, i64::try_from(mean).unwrap()))
    }

    /// The windows that are open.
    pub(crate) fn open(&self) -> Vec<ModelRow> {
        let rows = self.sitting.iter();
        let rows = rows.map(|counted| (counted.own.clone(), 1, i128::from(counted.money)));
        if self.rules.windows.are_sessions() { merge_rows(rows) } else { add_rows(rows) }
    }

    /// The output table as it stands.
    pub(crate) fn table(&self) -> Vec<ModelRow> {
        let mut rows = self.closed.clone();
        if self.rules.mode != ModelMode::Append {
            rows.extend(self.open());
        }
        rows.sort();
        rows
    }

    /// The windows that were closed.
    pub(crate) fn closed(&self) -> &[ModelRow] {
        &self.closed
    }

    /// The keys that are remembered, in the order of their expiry.
    pub(crate) fn remembered(&self) -> Vec<ModelRemembered> {
        let now = self.late_watermark(self.batches.len()) * 1_000;
        let kept = self.firsts.iter().filter(|first| first.expires_at > now);
        let mut kept: Vec<_> = kept.map(|first| (first.expires_at, first.values.clone())).collect();
        kept.sort();
        kept
    }
}

/// How many events these entries are of.
fn count_events<'entry>(entries: impl Iterator<Item = &'entry ModelDrop>) -> u64 {
    let mut seqs: Vec<i64> = entries.map(|entry| entry.seq).collect();
    seqs.dedup();
    count(seqs.len())
}

fn count(len: usize) -> u64 {
    len.try_into().unwrap()
}
