//! Steps 1 to 4 of a micro-batch: filter, late, duplicate, aggregate.

use crate::domain::{
    Amount, DuplicateKey, EventTime, OutputMode, Seq, Span, Watermark, Window, WindowKey,
    WindowSpec,
};

use super::batch::{Content, Record};
use super::event_time::EventTimes;
use super::groups::Groups;
use super::outcome::{Dropped, DroppedReason};
use super::state::Newest;
use super::tally::{SessionTally, Tally};
use super::{Batch, Remembered, Rules, State};

/// What was read from a batch, judged, and not yet merged into the open windows.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) groups: Groups,
    /// Times and number of the events that passed the filter.
    pub(super) event_times: EventTimes,
    pub(super) heartbeat: Option<EventTime>,
    pub(super) idle_heartbeat: Option<EventTime>,
    pub(super) tally: Tally,
    pub(super) sessions: SessionTally,
    pub(super) dropped: Vec<Dropped>,
    pub(super) late_events: u64,
    pub(super) duplicates: u64,
    pub(super) remembered: Vec<Remembered>,
}

/// An event that passed the filter.
#[derive(Debug, Clone, Copy)]
struct Passing<'batch> {
    seq: Seq,
    time: EventTime,
    amount: Amount,
    group: u32,
    duplicate_key: Option<&'batch DuplicateKey>,
}

impl Reading {
    /// Reads `batch`. Of the state only the remembered keys change.
    pub(super) fn of(rules: &Rules, state: &mut State, batch: &Batch) -> Self {
        let mut reading = Self { groups: Groups::of(rules, batch), ..Self::default() };
        let judge = Judge::new(rules, state);
        for record in batch.records() {
            reading.read(rules, state, judge, record);
        }
        reading
    }

    /// Whether there was anything for this query.
    pub(super) fn is_empty(&self) -> bool {
        let times = [self.event_times.newest(), self.heartbeat, self.idle_heartbeat];
        times.iter().all(Option::is_none)
    }

    pub(super) fn newest(&self) -> Newest {
        Newest {
            event: self.event_times.newest(),
            heartbeat: self.heartbeat,
            idle_heartbeat: self.idle_heartbeat,
        }
    }

    fn read(&mut self, rules: &Rules, state: &mut State, judge: Judge, record: &Record) {
        let time = record.event_time;
        match &record.content {
            Content::Heartbeat => self.heartbeat = self.heartbeat.max(Some(time)),
            Content::IdleHeartbeat { quiet } => {
                if rules.heeds_silence(*quiet) {
                    self.idle_heartbeat = self.idle_heartbeat.max(Some(time));
                }
            }
            Content::Event { amount, profile, duplicate_key } => {
                let Some(group) = self.groups.number(*profile) else { return };
                let (seq, amount, duplicate_key) = (record.seq, *amount, duplicate_key.as_ref());
                let event = Passing { seq, time, amount, group, duplicate_key };
                self.event_times.add(time);
                self.judge_event(rules, state, judge, event);
            }
        }
    }

    fn judge_event(&mut self, rules: &Rules, state: &mut State, judge: Judge, event: Passing<'_>) {
        if let Some(key) = event.duplicate_key {
            if judge.is_late(event.time) {
                self.late_events = self.late_events.saturating_add(1);
                return self.drop_from_all(rules, judge, event, DroppedReason::Late);
            }
            let expires_at = event.time.plus(rules.watermark_delay);
            if !state.duplicates.remember(key, expires_at) {
                self.duplicates = self.duplicates.saturating_add(1);
                return self.drop_from_all(rules, judge, event, DroppedReason::Duplicate);
            }
            self.remembered.push(Remembered { expires_at, key: key.clone() });
        }
        let mut missed_a_window = false;
        for window in rules.window.windows_of(event.time) {
            if judge.is_late(window.end) {
                missed_a_window = true;
                self.drop_from(judge, event, window, DroppedReason::Late);
            } else if matches!(rules.window, WindowSpec::Session { .. }) {
                self.sessions.open(event.time, event.group, event.amount);
            } else {
                self.tally.count(window, event.group, event.amount);
            }
        }
        self.late_events = self.late_events.saturating_add(u64::from(missed_a_window));
    }

    fn drop_from_all(
        &mut self,
        rules: &Rules,
        judge: Judge,
        event: Passing<'_>,
        reason: DroppedReason,
    ) {
        for window in rules.window.windows_of(event.time) {
            self.drop_from(judge, event, window, reason);
        }
    }

    fn drop_from(
        &mut self,
        judge: Judge,
        event: Passing<'_>,
        window: Window,
        reason: DroppedReason,
    ) {
        let Some((currency, group)) = self.groups.get(event.group).cloned() else { return };
        self.dropped.push(Dropped {
            seq: event.seq,
            key: WindowKey { window, currency, group },
            amount: event.amount,
            reason,
            late_by: judge.how_late(event.time),
        });
    }
}

/// Decides what is late, with the watermark of the batch before.
#[derive(Debug, Clone, Copy)]
struct Judge {
    /// Nothing in complete mode, where nothing is late.
    late_watermark: Option<Watermark>,
    newest_event_time: Option<EventTime>,
}

impl Judge {
    fn new(rules: &Rules, state: &State) -> Self {
        let judges = rules.output_mode != OutputMode::Complete;
        let late_watermark = state.watermarks().current;
        // Only there so that `tests/defects` can show that a wrong watermark is noticed.
        #[cfg(feature = "defects")]
        let late_watermark = rules.defective_late_watermark(late_watermark, state.watermarks());
        Self {
            late_watermark: judges.then_some(late_watermark),
            newest_event_time: state.newest_event_time(),
        }
    }

    /// Whether what ends at `end` has ended by the late watermark.
    fn is_late(self, end: EventTime) -> bool {
        self.late_watermark.is_some_and(|watermark| end <= watermark.as_event_time())
    }

    fn how_late(self, time: EventTime) -> Span {
        self.newest_event_time.map_or(Span::ZERO, |newest| newest.since(time))
    }
}
