//! A naive model of the rules: it keeps every event of every batch and works everything out anew
//! from that list whenever it is asked. No code of the engine, no running sums, no state.
//!
//! All numbers are plain: microseconds, milliseconds for watermarks and lengths, ten-thousandths of
//! a currency for money.

/// One event as the model sees it; `fields` are the values of the fields that queries name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelEvent {
    pub(crate) seq: i64,
    pub(crate) micros: i64,
    pub(crate) money: i64,
    pub(crate) currency: String,
    pub(crate) fields: Vec<(String, Option<String>)>,
}

impl ModelEvent {
    fn value(&self, field: &str) -> Option<String> {
        self.fields.iter().find(|(name, _)| name == field).and_then(|(_, value)| value.clone())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelMode {
    Append,
    Update,
    Complete,
}

/// The query's rule.
#[derive(Debug, Clone)]
pub(crate) struct ModelRules {
    pub(crate) filter: Vec<(String, Vec<String>)>,
    pub(crate) size_millis: i64,
    pub(crate) offset_millis: i64,
    pub(crate) group_by: Vec<String>,
    pub(crate) mode: ModelMode,
}

/// Window end, window start, currency and group: in the order in which rows are written.
pub(crate) type ModelKey = (i64, i64, String, Vec<Option<String>>);
/// A key with its events and money.
pub(crate) type ModelRow = (ModelKey, i64, i128);
/// `seq`, key missed, money, and how late in milliseconds.
pub(crate) type ModelDrop = (i64, ModelKey, i64, i64);

struct ModelBatch {
    events: Vec<ModelEvent>,
    delay_millis: i64,
}

pub(crate) struct Model {
    rules: ModelRules,
    batches: Vec<ModelBatch>,
    /// `W(0)`, `W(1)` … up to the one that comes next; worked out anew after every batch.
    watermarks: Vec<i64>,
}

impl Model {
    pub(crate) fn new(rules: ModelRules) -> Self {
        Self { rules, batches: Vec::new(), watermarks: vec![0] }
    }

    /// Whether a query counts this event at all.
    pub(crate) fn matches(&self, event: &ModelEvent) -> bool {
        self.rules.filter.iter().all(|(field, allowed)| {
            event.value(field).is_some_and(|value| allowed.contains(&value))
        })
    }

    /// Whether a batch of `read` is one to report; an empty one is the batch without data.
    pub(crate) fn reports(&self, read: &[ModelEvent]) -> bool {
        if read.is_empty() { self.owes() } else { read.iter().any(|event| self.matches(event)) }
    }

    /// Whether a batch without data is owed.
    pub(crate) fn owes(&self) -> bool {
        let count = self.batches.len();
        self.rules.mode != ModelMode::Complete && self.watermark(count) > self.last_watermark()
    }

    /// Runs a batch.
    pub(crate) fn run(&mut self, read: &[ModelEvent], delay_millis: i64) {
        let events = read.iter().filter(|event| self.matches(event)).cloned().collect();
        self.batches.push(ModelBatch { events, delay_millis });
        self.watermarks = (0..=self.batches.len()).map(|n| self.reached_before(n)).collect();
    }

    /// `W(n)`, in milliseconds.
    pub(crate) fn watermark(&self, n: usize) -> i64 {
        self.watermarks[n]
    }

    /// The largest of zero and of what each batch before `n` reached.
    fn reached_before(&self, n: usize) -> i64 {
        let mut watermark = 0;
        for batch in &self.batches[..n] {
            for event in &batch.events {
                watermark = watermark.max(event.micros.div_euclid(1_000) - batch.delay_millis);
            }
        }
        watermark
    }

    fn last(&self) -> usize {
        self.batches.len() - 1
    }

    /// `W(n)` of the batch run last; of no batch, zero.
    pub(crate) fn last_watermark(&self) -> i64 {
        if self.batches.is_empty() { 0 } else { self.watermark(self.last()) }
    }

    /// `W(n-1)`, which judges batch `n`.
    pub(crate) fn late_watermark(&self, n: usize) -> i64 {
        if n == 0 { 0 } else { self.watermark(n - 1) }
    }

    /// The newest event time before batch `n`.
    pub(crate) fn newest_before(&self, n: usize) -> Option<i64> {
        self.batches[..n].iter().flat_map(|batch| &batch.events).map(|event| event.micros).max()
    }

    /// Every key that an event counts under: one per window that holds it.
    pub(crate) fn keys_of(&self, event: &ModelEvent) -> Vec<ModelKey> {
        let (size, offset) = (self.rules.size_millis * 1_000, self.rules.offset_millis * 1_000);
        let mut start = offset + (event.micros - offset) / size * size;
        if start > event.micros {
            start -= size;
        }
        let group = self.rules.group_by.iter().map(|field| event.value(field)).collect();
        vec![(start + size, start, event.currency.clone(), group)]
    }

    fn is_late(&self, key: &ModelKey, n: usize) -> bool {
        self.rules.mode != ModelMode::Complete && key.0 <= self.late_watermark(n) * 1_000
    }

    fn is_closed(&self, key: &ModelKey, n: usize) -> bool {
        self.rules.mode != ModelMode::Complete && key.0 <= self.watermark(n) * 1_000
    }

    /// Whether the watermark of the batch run last has closed the window.
    pub(crate) fn is_final(&self, key: &ModelKey) -> bool {
        !self.batches.is_empty() && self.is_closed(key, self.last())
    }

    /// Every (batch, key, event) that was counted.
    fn counted(&self) -> Vec<(usize, ModelKey, &ModelEvent)> {
        let mut counted = Vec::new();
        for (n, batch) in self.batches.iter().enumerate() {
            for event in &batch.events {
                let keys = self.keys_of(event).into_iter();
                counted.extend(keys.filter(|key| !self.is_late(key, n)).map(|key| (n, key, event)));
            }
        }
        counted
    }

    /// Everything counted so far, window by window, whether open or closed.
    fn all_rows(&self) -> Vec<ModelRow> {
        sum_up(self.counted().into_iter().map(|(_, key, event)| (key, event.money)))
    }

    /// Keys that the last batch added to.
    pub(crate) fn touched(&self) -> Vec<ModelKey> {
        let counted = self.counted().into_iter().filter(|(n, ..)| *n == self.last());
        sum_up(counted.map(|(_, key, event)| (key, event.money)))
            .into_iter()
            .map(|(key, ..)| key)
            .collect()
    }

    /// The rows that the last batch writes.
    pub(crate) fn emitted(&self) -> Vec<ModelRow> {
        let n = self.last();
        let touched = self.touched();
        let mut rows = self.all_rows();
        rows.retain(|(key, ..)| match self.rules.mode {
            ModelMode::Append => self.is_closed(key, n) && key.0 > self.late_watermark(n) * 1_000,
            ModelMode::Update => touched.contains(key),
            ModelMode::Complete => true,
        });
        rows
    }

    /// The output table as it stands.
    pub(crate) fn table(&self) -> Vec<ModelRow> {
        let mut rows = self.all_rows();
        rows.retain(|(key, ..)| self.rules.mode != ModelMode::Append || self.is_final(key));
        rows
    }

    /// The windows that are open.
    pub(crate) fn open(&self) -> Vec<ModelRow> {
        let mut rows = self.all_rows();
        rows.retain(|(key, ..)| !self.is_final(key));
        rows
    }

    /// The ledger entries of the last batch.
    pub(crate) fn dropped(&self) -> Vec<ModelDrop> {
        let n = self.last();
        let newest = self.newest_before(n);
        let mut dropped = Vec::new();
        for event in &self.batches[n].events {
            for key in self.keys_of(event).into_iter().filter(|key| self.is_late(key, n)) {
                let behind = newest.map_or(0, |newest| (newest - event.micros).max(0) / 1_000);
                dropped.push((event.seq, key, event.money, behind));
            }
        }
        dropped
    }

    /// How many events the last batch counted in, and how many of them missed a window.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let n = self.last();
        let events = &self.batches[n].events;
        let misses =
            |event: &&ModelEvent| self.keys_of(event).iter().any(|key| self.is_late(key, n));
        (events.len(), events.iter().filter(misses).count())
    }

    /// Oldest, newest and mean event time of the last batch.
    pub(crate) fn times(&self) -> Option<(i64, i64, i64)> {
        let times = || self.batches[self.last()].events.iter().map(|event| event.micros);
        let sum: i128 = times().map(i128::from).sum();
        let mean = sum.div_euclid(i128::try_from(times().count().max(1)).unwrap());
        Some((times().min()?, times().max()?, i64::try_from(mean).unwrap()))
    }

    /// What a plain recount of these raw events says, without any event-time rule.
    pub(crate) fn recount(&self, raw: &[ModelEvent]) -> Vec<ModelRow> {
        let matching = raw.iter().filter(|event| self.matches(event));
        sum_up(
            matching
                .flat_map(|event| self.keys_of(event).into_iter().map(|key| (key, event.money))),
        )
    }
}

/// Adds up money under equal keys; ordered by key.
pub(crate) fn sum_up(items: impl Iterator<Item = (ModelKey, i64)>) -> Vec<ModelRow> {
    add_rows(items.map(|(key, money)| (key, 1, i128::from(money))))
}

/// Adds up rows of equal keys; ordered by key.
pub(crate) fn add_rows(rows: impl Iterator<Item = ModelRow>) -> Vec<ModelRow> {
    let mut sums: Vec<ModelRow> = Vec::new();
    for (key, orders, money) in rows {
        match sums.iter_mut().find(|(known, ..)| *known == key) {
            Some((_, known_orders, known_money)) => {
                *known_orders += orders;
                *known_money += money;
            }
            None => sums.push((key, orders, money)),
        }
    }
    sums.sort();
    sums
}
