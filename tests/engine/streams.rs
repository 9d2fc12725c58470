//! Random streams: a rule, and what happens to its log. The same seed, or the same bytes, give the same stream.

mod choices;
mod records;
mod rules;

pub(crate) use choices::Choices;

use crate::model::{ModelRecord, ModelRules, ModelSettings};

/// What happens next.
#[derive(Debug)]
pub(crate) enum Action {
    /// Records arrive at the end of the log.
    Arrive(Vec<ModelRecord>),
    /// One micro-batch reads at most so many records; without any waiting, it is one without data.
    Batch(usize),
    /// The same, and the process dies before it has committed.
    Crash(usize),
    /// The process starts again, with these settings from now on.
    Restart(ModelSettings),
}

#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) rules: ModelRules,
    /// The settings at first.
    pub(crate) settings: ModelSettings,
    pub(crate) actions: Vec<Action>,
}

impl Stream {
    pub(crate) fn from_seed(seed: u64) -> Self {
        Self::drawn(&mut Choices::Seeded(Box::new(fastrand::Rng::with_seed(seed))))
    }

    pub(crate) fn drawn(rng: &mut Choices) -> Self {
        let rules = rules::random_rules(rng);
        let settings = rules::random_settings(rng, rules.windows);
        let log = records::random_log(rng, &rules);
        let actions = random_actions(rng, log, &rules, settings);
        Self { rules, settings, actions }
    }
}

/// Cuts the log into arrivals, batches, crashes and restarts. What still waits in the end, the test
/// reads.
fn random_actions(
    rng: &mut Choices,
    mut log: Vec<ModelRecord>,
    rules: &ModelRules,
    mut settings: ModelSettings,
) -> Vec<Action> {
    let mut actions = Vec::new();
    let restarts_often = rng.bool();
    let (arrival_max, batch_max) = (pick(rng, &[4, 12, 30]), pick(rng, &[1, 4, 12, 30]));
    while !log.is_empty() {
        let arriving = rng.usize(1..=arrival_max).min(log.len());
        actions.push(Action::Arrive(log.drain(..arriving).collect()));
        for _ in 0..rng.usize(..4) {
            if one_in(rng, 16) {
                actions.push(Action::Crash(rng.usize(1..=batch_max)));
            }
            actions.push(Action::Batch(rng.usize(1..=batch_max)));
            if one_in(rng, if restarts_often { 3 } else { 20 }) {
                if one_in(rng, 3) {
                    settings = rules::random_settings(rng, rules.windows);
                }
                actions.push(Action::Restart(settings));
            }
        }
    }
    actions
}

fn pick<T: Clone>(rng: &mut Choices, items: &[T]) -> T {
    items[rng.usize(..items.len())].clone()
}

fn one_in(rng: &mut Choices, n: u32) -> bool {
    rng.u32(..n) == 0
}
