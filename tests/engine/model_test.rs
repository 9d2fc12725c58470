//! The engine beside the naive model, over many random streams.
//!
//! `TILLMARK_MODEL_STREAMS` says how many, `TILLMARK_MODEL_SEED` where to start; a stream that
//! fails prints its seed.

use tillmark::engine::{Outcome, Rules, State, step};

use crate::database::Database;
use crate::model::{
    Accounts, Model, ModelDrop, ModelMode, ModelOutcome, ModelRecord, ModelRow, ModelSettings,
    Recount, Told,
};
use crate::seen::{Scene, Seen};
use crate::streams::{Action, Stream};
use crate::translation::{batch_of, outcome, remembered, rules, windows};

const STREAMS: u64 = 20_000;

#[test]
fn over_random_streams_the_engine_agrees_with_the_model_and_everything_adds_up() {
    let first = setting("TILLMARK_MODEL_SEED").unwrap_or(0);
    let streams = setting("TILLMARK_MODEL_STREAMS").unwrap_or(STREAMS);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let seen = std::thread::scope(|scope| {
        let run = |worker| {
            let seeds = (first..first + streams).skip(worker).step_by(threads);
            scope.spawn(move || run_streams(seeds))
        };
        let workers: Vec<_> = (0..threads).map(run).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).fold(Seen::default(), Seen::plus)
    });
    if streams >= STREAMS {
        seen.assert_nothing_is_missing();
    }
}

#[allow(clippy::disallowed_methods, reason = "a test has no settings of its own to go through")]
pub(crate) fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect(name))
}

fn run_streams(seeds: impl Iterator<Item = u64>) -> Seen {
    let mut seen = Seen::default();
    for seed in seeds {
        let named = NamesSeedOnFailure(seed);
        Run::new(Stream::from_seed(seed)).finish(&mut seen);
        drop(named);
    }
    seen
}

struct NamesSeedOnFailure(u64);

impl Drop for NamesSeedOnFailure {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let again = "TILLMARK_MODEL_STREAMS=1 TILLMARK_MODEL_SEED";
            eprintln!("the stream that failed: {again}={}", self.0);
        }
    }
}

/// One stream on its way through the engine and the model.
pub(crate) struct Run {
    stream: Stream,
    rules: Rules,
    settings: ModelSettings,
    state: State,
    database: Database,
    /// The ledger of dropped events.
    ledger: Vec<ModelDrop>,
    model: Model,
    /// Everything that has arrived.
    log: Vec<ModelRecord>,
    recount: Recount,
    /// How much of it has been read.
    position: usize,
}

impl Run {
    pub(crate) fn new(stream: Stream) -> Self {
        Self {
            rules: rules(&stream.rules, stream.settings),
            settings: stream.settings,
            state: State::default(),
            database: Database::default(),
            ledger: Vec::new(),
            model: Model::new(stream.rules.clone()),
            log: Vec::new(),
            recount: Recount::of(&stream.rules, &[]),
            position: 0,
            stream,
        }
    }

    pub(crate) fn finish(mut self, seen: &mut Seen) {
        for action in std::mem::take(&mut self.stream.actions) {
            match action {
                Action::Arrive(records) => {
                    self.log.extend(records);
                    self.recount = Recount::of(&self.stream.rules, &self.log);
                }
                Action::Batch(records_max) => self.batch(records_max, seen),
                Action::Crash(records_max) => self.crash(records_max, seen),
                Action::Restart(settings) => self.restart(settings, seen),
            }
        }
        while self.position < self.log.len() || self.model.owes() {
            self.batch(12, seen);
        }
        assert!(!self.state.owes_batch_without_data(self.rules.output_mode));
        assert_eq!(self.assert_everything_adds_up().waiting, []);
    }

    /// The records of the next batch.
    fn next(&self, records_max: usize) -> std::ops::Range<usize> {
        self.position..self.log.len().min(self.position + records_max)
    }

    fn crash(&mut self, records_max: usize, seen: &mut Seen) {
        let batch = batch_of(&self.rules, &self.log[self.next(records_max)]);
        let outcome = step(&self.rules, &mut self.state, &batch);
        self.state = self.database.restore();
        seen.note("a crash before the commit", outcome.is_some());
    }

    fn restart(&mut self, settings: ModelSettings, seen: &mut Seen) {
        let (before, open) = (self.settings, !self.database.state.is_empty());
        let has_new_delay = settings.delay_millis != before.delay_millis;
        let remembers = !self.database.remembered.is_empty();
        seen.note("restart with a watermark owed", self.model.owes());
        seen.note("restart with another delay", has_new_delay);
        seen.note("restart with another delay and keys remembered", has_new_delay && remembers);
        seen.note("restart with sessions open", open && self.stream.rules.windows.are_sessions());
        seen.note("restart with another idle timeout", {
            settings.idle_timeout_millis != before.idle_timeout_millis
        });
        self.state = self.database.restore();
        self.settings = settings;
        self.rules = rules(&self.stream.rules, settings);
    }

    fn batch(&mut self, records_max: usize, seen: &mut Seen) {
        let read = self.next(records_max);
        let (open_before, remembered_before) = (self.model.open(), self.model.remembered());
        let batch = batch_of(&self.rules, &self.log[read.clone()]);
        let outcome = step(&self.rules, &mut self.state, &batch);
        let expected = self.model.run(&self.log[read.clone()], self.settings);
        self.position = read.end;
        assert_eq!(outcome.is_some(), expected.is_some(), "whether there is a batch to report");
        if let (Some(outcome), Some(expected)) = (outcome, expected) {
            self.database.commit(self.rules.output_mode, &outcome);
            self.assert_agreement(&outcome, &expected, &open_before);
            let accounts = self.assert_everything_adds_up();
            seen.note_all(&Scene {
                rules: &self.stream.rules,
                settings: self.settings,
                before: &self.log[..read.start],
                read: &self.log[read],
                outcome: &expected,
                open_before: &open_before,
                open: &self.model.open(),
                table: &self.model.table(),
                remembered_before: &remembered_before,
                ledger: &self.ledger,
                accounts: &accounts,
            });
        } else {
            seen.note("nothing matches", !read.is_empty());
        }
        assert_eq!(self.state, self.database.restore(), "memory and what was committed");
    }

    fn assert_agreement(
        &mut self,
        engine: &Outcome,
        expected: &ModelOutcome,
        open_before: &[ModelRow],
    ) {
        let mut told = outcome(engine);
        assert!(told.dropped.is_sorted_by_key(|entry| entry.seq), "the ledger's order");
        told.dropped.sort();
        // Sessions that came and went within the batch were never in state.
        told.state_merged.retain(|key| open_before.iter().any(|row| row.0 == *key));
        assert_eq!(told, *expected);

        assert_eq!(windows(&self.database.table), self.model.table(), "the output table");
        assert_eq!(windows(&self.database.state), self.model.open(), "the open windows");
        let kept: Vec<_> = self.database.remembered.iter().map(remembered).collect();
        assert!(kept.is_sorted_by_key(|(expires_at, _)| *expires_at));
        let mut kept = kept;
        kept.sort();
        assert_eq!(kept, self.model.remembered(), "the remembered keys");
        assert_eq!(self.state.remembered_keys(), u64::try_from(kept.len()).unwrap());
        self.ledger.extend(told.dropped);
        self.assert_the_last_boundary_is_right(engine);
    }

    /// A report takes every window that ends by `complete_through` for final, and no other.
    fn assert_the_last_boundary_is_right(&self, engine: &Outcome) {
        let through = self.rules.window.complete_through(engine.watermarks.current);
        let is_through =
            |row: &ModelRow| through.is_some_and(|through| row.0.0 <= through.as_micros());
        assert!(self.model.closed().iter().all(is_through), "closed beyond {through:?}");
        if self.stream.rules.closes() {
            assert!(!self.model.open().iter().any(is_through), "open before {through:?}");
        }
    }

    /// For every line: recount = stream + late + open + waiting − repeats.
    fn assert_everything_adds_up(&self) -> Accounts {
        let writes_when_final = self.stream.rules.mode == ModelMode::Append;
        let accounts = self.recount.accounts(&Told {
            table: windows(&self.database.table),
            open: if writes_when_final { windows(&self.database.state) } else { vec![] },
            ledger: &self.ledger,
            position: self.position,
        });
        assert_eq!(accounts.explained(), accounts.recount, "{accounts:#?}");
        accounts
    }
}
