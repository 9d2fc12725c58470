//! What the random streams were examples of. They are worth little when what they are for never
//! comes up in them.

mod duplicates;
mod heartbeats;
mod lateness;
mod sessions;

use std::collections::BTreeMap;

use crate::model::{
    Accounts, ModelDrop, ModelEvent, ModelOutcome, ModelRecord, ModelRemembered, ModelRow,
    ModelRules, ModelSettings,
};

/// How often each thing worth testing happened.
#[derive(Default)]
pub(crate) struct Seen(BTreeMap<&'static str, u64>);

/// One batch, before and after, as the engine and the model agree on it.
pub(crate) struct Scene<'run> {
    pub(crate) rules: &'run ModelRules,
    pub(crate) settings: ModelSettings,
    /// The log before the batch.
    pub(crate) before: &'run [ModelRecord],
    pub(crate) read: &'run [ModelRecord],
    pub(crate) outcome: &'run ModelOutcome,
    pub(crate) open_before: &'run [ModelRow],
    pub(crate) open: &'run [ModelRow],
    pub(crate) table: &'run [ModelRow],
    pub(crate) remembered_before: &'run [ModelRemembered],
    /// Of this batch and all before.
    pub(crate) ledger: &'run [ModelDrop],
    pub(crate) accounts: &'run Accounts,
}

impl Scene<'_> {
    /// The events read that pass the filter.
    fn events(&self) -> impl Iterator<Item = &ModelEvent> {
        self.read.iter().filter_map(ModelRecord::event).filter(|event| self.rules.matches(event))
    }

    fn events_before(&self) -> impl Iterator<Item = &ModelEvent> {
        self.before.iter().filter_map(ModelRecord::event).filter(|event| self.rules.matches(event))
    }

    /// How many entries the ledger has of this event.
    fn times_dropped(&self, event: &ModelEvent) -> usize {
        self.ledger.iter().filter(|entry| entry.seq == event.seq).count()
    }

    /// The watermarks that judged and closed, in microseconds.
    fn watermarks(&self) -> (i64, i64) {
        let watermarks = self.outcome.watermarks;
        (watermarks.late * 1_000, watermarks.current * 1_000)
    }
}

impl Seen {
    pub(crate) fn note(&mut self, what: &'static str, happened: bool) {
        *self.0.entry(what).or_default() += u64::from(happened);
    }

    /// Notes what this batch was an example of.
    pub(crate) fn note_all(&mut self, scene: &Scene<'_>) {
        lateness::note(self, scene);
        sessions::note(self, scene);
        duplicates::note(self, scene);
        heartbeats::note(self, scene);
    }

    pub(crate) fn plus(mut self, other: Self) -> Self {
        for (what, times) in other.0 {
            *self.0.entry(what).or_default() += times;
        }
        self
    }

    pub(crate) fn assert_nothing_is_missing(&self) {
        for (what, times) in &self.0 {
            println!("{times:>9} {what}");
        }
        for (what, times) in &self.0 {
            assert!(*times >= 30, "{what}: only {times} times in all streams");
        }
    }
}
