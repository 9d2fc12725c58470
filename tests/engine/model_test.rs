//! The engine beside the naive model, over many random streams.
//!
//! `TILLMARK_MODEL_STREAMS` says how many, `TILLMARK_MODEL_SEED` where to start; a stream that
//! fails prints its seed.

use std::collections::BTreeMap;
use std::ops::Range;

use tillmark::domain::{EventTime, LoggedEvent};
use tillmark::engine::{Outcome, Rules, State, Watermarks, step};

use crate::database::Database;
use crate::model::{Model, ModelEvent, ModelMode, add_rows, sum_up};
use crate::streams::{Action, Stream};
use crate::translation::{batch_of, dropped, key, logged, rows, rules, windows};

const STREAMS: u64 = 2_000;

#[test]
fn over_random_streams_the_engine_agrees_with_the_model_and_everything_adds_up() {
    let first = setting("TILLMARK_MODEL_SEED").unwrap_or(0);
    let streams = setting("TILLMARK_MODEL_STREAMS").unwrap_or(STREAMS);
    let mut seen = Seen::default();
    for seed in first..first + streams {
        let named = NamesSeedOnFailure(seed);
        Run::new(Stream::from_seed(seed)).finish(&mut seen);
        drop(named);
    }
    if streams >= STREAMS {
        seen.assert_nothing_is_missing();
    }
}

#[allow(clippy::disallowed_methods, reason = "a test has no settings of its own to go through")]
fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect(name))
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
struct Run {
    stream: Stream,
    rules: Rules,
    delay_millis: i64,
    state: State,
    database: Database,
    model: Model,
    /// Everything that has arrived.
    log: Vec<ModelEvent>,
    /// How much of it has been read.
    position: usize,
    /// Batches reported.
    batches: usize,
}

impl Run {
    fn new(stream: Stream) -> Self {
        Self {
            rules: rules(&stream.rules, stream.delay_millis),
            delay_millis: stream.delay_millis,
            state: State::default(),
            database: Database::default(),
            model: Model::new(stream.rules.clone()),
            log: Vec::new(),
            position: 0,
            batches: 0,
            stream,
        }
    }

    fn finish(mut self, seen: &mut Seen) {
        for action in std::mem::take(&mut self.stream.actions) {
            match action {
                Action::Arrive(events) => self.log.extend(events),
                Action::Batch(events_max) => self.batch(events_max, seen),
                Action::Restart(delay_millis) => self.restart(delay_millis, seen),
            }
        }
        assert_eq!(self.position, self.log.len(), "something still waits");
        assert!(!self.state.owes_batch_without_data(self.rules.output_mode));
        self.assert_everything_adds_up();
    }

    fn restart(&mut self, delay_millis: i64, seen: &mut Seen) {
        seen.note("restart with a watermark owed", self.model.owes());
        seen.note("restart with another delay", delay_millis != self.delay_millis);
        self.state = self.database.restore();
        self.delay_millis = delay_millis;
        self.rules = rules(&self.stream.rules, delay_millis);
    }

    fn batch(&mut self, events_max: usize, seen: &mut Seen) {
        let read = self.position..self.log.len().min(self.position + events_max);
        self.position = read.end;
        let events: Vec<LoggedEvent> = self.log[read.clone()].iter().map(logged).collect();
        let before = self.state.clone();
        let outcome = step(&self.rules, &mut self.state, &batch_of(&self.rules, &events));
        let reports = self.model.reports(&self.log[read.clone()]);
        assert_eq!(outcome.is_some(), reports, "after {} batches", self.batches);
        let Some(outcome) = outcome else {
            seen.note("nothing matches", !events.is_empty());
            assert_eq!(self.state, before);
            return;
        };
        self.model.run(&self.log[read.clone()], self.delay_millis);
        self.database.commit(self.rules.output_mode, &outcome);
        self.assert_agreement(&outcome);
        self.assert_everything_adds_up();
        self.note(&outcome, &read, seen);
        self.batches += 1;
    }

    fn assert_agreement(&self, outcome: &Outcome) {
        let (n, model) = (self.batches, &self.model);
        let Watermarks { current, next, .. } = outcome.watermarks;
        let watermarks = [outcome.late_watermark, current, next];
        assert_eq!(
            watermarks.map(|watermark| watermark.as_millis()),
            [model.late_watermark(n), model.watermark(n), model.watermark(n + 1)],
            "watermarks of batch {n}"
        );
        let newest = outcome.newest_event_time.map(EventTime::as_micros);
        assert_eq!(newest, model.newest_before(n + 1), "newest event after batch {n}");
        let counts = (outcome.events_in, outcome.late_events);
        let (events_in, late_events) = model.counts();
        assert_eq!(counts, (count(events_in), count(late_events)), "events in and late, batch {n}");
        let times = outcome
            .event_time
            .map(|range| (range.min.as_micros(), range.max.as_micros(), range.avg.as_micros()));
        assert_eq!(times, model.times(), "event times of batch {n}");

        assert_eq!(rows(&outcome.rows), model.emitted(), "rows of batch {n}");
        assert_eq!(windows(&self.database.table), model.table(), "table after batch {n}");
        assert_eq!(dropped(&outcome.dropped), model.dropped(), "ledger entries of batch {n}");

        let open = model.open();
        assert_eq!(windows(&self.database.state), open, "open windows after batch {n}");
        assert_eq!(self.state, self.database.restore(), "memory and database after batch {n}");
        assert_eq!(outcome.windows_open, count(open.len()), "open after batch {n}");
        let touched = model.touched();
        assert_eq!(outcome.windows_updated, count(touched.len()), "updated by batch {n}");
        let stays = open.into_iter().filter(|(key, ..)| touched.contains(key));
        let changed = rows(&outcome.state_changed);
        assert_eq!(changed, stays.collect::<Vec<_>>(), "state changed by batch {n}");
        let removed: Vec<_> = outcome.state_removed.iter().map(key).collect();
        assert!(removed.is_sorted() && removed.iter().all(|key| model.is_final(key)), "batch {n}");
        self.assert_the_last_boundary_is_right(outcome);
    }

    /// A report takes every window that ends by `complete_through` for final, and no other.
    fn assert_the_last_boundary_is_right(&self, outcome: &Outcome) {
        let through = self.rules.window.complete_through(outcome.watermarks.current);
        let Some(through) = through.map(EventTime::as_micros) else { return };
        if self.stream.rules.mode != ModelMode::Complete {
            for (key, ..) in self.model.table() {
                assert_eq!(key.0 <= through, self.model.is_final(&key), "{key:?} by {through}");
            }
        }
    }

    /// For every window: recount = stream table + late + open + still waiting.
    fn assert_everything_adds_up(&self) {
        let mode = self.stream.rules.mode;
        let late = self.database.ledger.iter();
        let late = sum_up(late.map(|entry| (key(&entry.key), entry.amount.as_ten_thousandths())));
        let open = if mode == ModelMode::Append { windows(&self.database.state) } else { vec![] };
        let waiting = self.model.recount(&self.log[self.position..]);
        let table = windows(&self.database.table);
        let explained = table.into_iter().chain(late).chain(open).chain(waiting);
        let explained = add_rows(explained);
        assert_eq!(explained, self.model.recount(&self.log), "after {} batches", self.batches);
    }

    /// Notes what this batch was an example of.
    fn note(&self, outcome: &Outcome, read: &Range<usize>, seen: &mut Seen) {
        let (late, closing) =
            (outcome.late_watermark.as_event_time(), outcome.watermarks.current.as_event_time());
        let ends = |time: EventTime| {
            let events = self.log[read.clone()].iter().filter(|event| self.model.matches(event));
            let mut keys = events.flat_map(|event| self.model.keys_of(event));
            keys.any(|key| key.0 == time.as_micros())
        };
        let closes = self.stream.rules.mode != ModelMode::Complete;
        let mut table = self.database.table.iter();
        seen.note("late events", outcome.late_events > 0);
        seen.note("only late events", {
            outcome.late_events > 0 && outcome.late_events == outcome.events_in
        });
        seen.note("a window that ends at the late watermark", closes && ends(late));
        seen.note("a window that ends at the closing watermark", {
            closes && late < closing && ends(closing)
        });
        seen.note("its own batch closes the window", {
            let changed = outcome.state_changed.len();
            count(changed) < outcome.windows_updated
        });
        seen.note("data applies the watermark that was owed", {
            outcome.events_in > 0 && late < closing
        });
        seen.note("a batch without data", read.is_empty());
        seen.note("late in update mode", {
            self.stream.rules.mode == ModelMode::Update && outcome.late_events > 0
        });
        seen.note("before 1970", outcome.event_time.is_some_and(|t| t.min.as_micros() < 0));
        seen.note("more money than 64 bits hold", {
            table.any(|(_, totals)| i64::try_from(totals.revenue.as_ten_thousandths()).is_err())
        });
        seen.note("two currencies in one window", {
            let keys: Vec<_> = self.database.table.keys().collect();
            keys.windows(2)
                .any(|two| two[0].window == two[1].window && two[0].currency != two[1].currency)
        });
        seen.note("a group without a value", {
            self.database.table.keys().any(|key| key.group.0.contains(&None))
        });
    }
}

fn count(len: usize) -> u64 {
    len.try_into().unwrap()
}

/// How often each thing worth testing happened.
#[derive(Default)]
struct Seen(BTreeMap<&'static str, u64>);

impl Seen {
    fn note(&mut self, what: &'static str, happened: bool) {
        *self.0.entry(what).or_default() += u64::from(happened);
    }

    /// The streams are worth little when what they are for never comes up in them.
    fn assert_nothing_is_missing(&self) {
        for (what, times) in &self.0 {
            assert!(*times >= 30, "{what}: only {times} times in all streams");
        }
    }
}
