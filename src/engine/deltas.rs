//! What one micro-batch adds to each window, before it is merged into the state.

use std::collections::BTreeMap;

use crate::domain::{
    Currency, Event, EventField, EventTime, GroupKey, LoggedEvent, Span, Totals, Watermark, Window,
    WindowKey,
};

use super::outcome::{Dropped, DroppedReason};
use super::window::windows_of;
use super::{Rules, State};
use crate::domain::OutputMode;

/// Group-by values that borrow from the batch, so that counting an event copies no text.
type BorrowedGroup<'batch> = (Currency, Vec<Option<&'batch str>>);

/// The totals that a batch adds, and the events that it drops.
#[derive(Debug, Default)]
pub(super) struct Deltas<'batch> {
    added: BTreeMap<Window, BTreeMap<BorrowedGroup<'batch>, Totals>>,
    /// Events and the windows that they missed.
    pub(super) dropped: Vec<Dropped>,
    /// Events that missed at least one window.
    pub(super) late_events: u64,
}

impl<'batch> Deltas<'batch> {
    /// Counts `events`, which passed the filter, into their windows; late ones into the ledger.
    pub(super) fn of(rules: &Rules, state: &State, events: &[&'batch LoggedEvent]) -> Self {
        let mut deltas = Self::default();
        let judge = Judge::new(rules, state);
        for logged in events {
            let mut missed_a_window = false;
            for window in windows_of(rules.window, logged.event.event_time) {
                if judge.is_late(window) {
                    missed_a_window = true;
                    deltas.dropped.push(judge.late_entry(rules, logged, window));
                } else {
                    deltas.count(rules, &logged.event, window);
                }
            }
            deltas.late_events = deltas.late_events.saturating_add(u64::from(missed_a_window));
        }
        deltas
    }

    fn count(&mut self, rules: &Rules, event: &'batch Event, window: Window) {
        let group = (event.currency, group_of(&rules.group_by, event));
        self.added.entry(window).or_default().entry(group).or_default().count(event.amount);
    }

    /// The additions, by window, then group.
    pub(super) fn into_additions(self) -> impl Iterator<Item = (WindowKey, Totals)> {
        self.added.into_iter().flat_map(|(window, groups)| {
            groups.into_iter().map(move |((currency, group), totals)| {
                (WindowKey { window, currency, group: owned(&group) }, totals)
            })
        })
    }
}

/// Decides what is late; with the watermark of the batch before.
struct Judge {
    /// Nothing in complete mode, where nothing is late.
    late_watermark: Option<Watermark>,
    newest_event_time: Option<EventTime>,
}

impl Judge {
    fn new(rules: &Rules, state: &State) -> Self {
        let judges = rules.output_mode != OutputMode::Complete;
        Self {
            late_watermark: judges.then_some(state.watermark()),
            newest_event_time: state.newest_event_time(),
        }
    }

    fn is_late(&self, window: Window) -> bool {
        self.late_watermark.is_some_and(|watermark| window.is_closed_at(watermark))
    }

    fn late_entry(&self, rules: &Rules, logged: &LoggedEvent, window: Window) -> Dropped {
        let event = &logged.event;
        let group = owned(&group_of(&rules.group_by, event));
        let late_by =
            self.newest_event_time.map_or(Span::ZERO, |newest| newest.since(event.event_time));
        Dropped {
            seq: logged.seq,
            key: WindowKey { window, currency: event.currency, group },
            amount: event.amount,
            reason: DroppedReason::Late,
            late_by,
        }
    }
}

fn group_of<'batch>(fields: &[EventField], event: &'batch Event) -> Vec<Option<&'batch str>> {
    fields.iter().map(|field| field.value_in(event)).collect()
}

fn owned(group: &[Option<&str>]) -> GroupKey {
    GroupKey(group.iter().map(|value| value.map(str::to_owned)).collect())
}
