//! The open windows of a query, and the merging of sessions.

use std::collections::BTreeMap;

use crate::domain::{EventTime, Totals, Watermark, Window, WindowKey};

use super::Row;
use super::groups::Group;

/// Windows with their totals so far.
#[derive(Debug, Clone, Default)]
pub(super) struct OpenWindows {
    /// Ordered by the windows' ends, so that the closed ones stand first.
    by_end: BTreeMap<WindowKey, Totals>,
    /// For each group the starts and ends of its sessions; empty for other kinds of windows.
    sessions: BTreeMap<Group, BTreeMap<EventTime, EventTime>>,
}

impl PartialEq for OpenWindows {
    /// The index of sessions follows from the windows.
    fn eq(&self, other: &Self) -> bool {
        self.by_end == other.by_end
    }
}

impl Eq for OpenWindows {}

impl OpenWindows {
    pub(super) fn restore(windows: impl IntoIterator<Item = Row>) -> Self {
        let by_end = windows.into_iter().map(|row| (row.key, row.totals)).collect();
        Self { by_end, sessions: BTreeMap::new() }
    }

    pub(super) fn len(&self) -> u64 {
        self.by_end.len().try_into().unwrap_or(u64::MAX)
    }

    /// The end of the window that closes first.
    pub(super) fn first_end(&self) -> Option<EventTime> {
        self.by_end.keys().next().map(|key| key.window.end)
    }

    /// Adds to one window and returns its new totals.
    pub(super) fn add(&mut self, key: WindowKey, totals: Totals) -> Totals {
        let entry = self.by_end.entry(key).or_default();
        *entry = entry.plus(totals);
        *entry
    }

    /// Adds a session, which becomes one with those of its group that it overlaps or touches.
    /// Returns what it came to, and the sessions that are gone for it.
    pub(super) fn merge_session(
        &mut self,
        window: Window,
        group: &Group,
        totals: Totals,
    ) -> (Row, Vec<WindowKey>) {
        self.index_sessions();
        let of_group = self.sessions.entry(group.clone()).or_default();
        let (mut merged, mut totals) = (window, totals);
        let touching: Vec<Window> = of_group
            .range(..=window.end)
            .rev()
            .map(|(&start, &end)| Window { start, end })
            .take_while(|session| session.end >= window.start)
            .collect();
        let mut gone = Vec::new();
        for session in touching {
            of_group.remove(&session.start);
            let key = key_of(session, group);
            totals = totals.plus(self.by_end.remove(&key).unwrap_or_default());
            merged.start = merged.start.min(session.start);
            merged.end = merged.end.max(session.end);
            gone.push(key);
        }
        of_group.insert(merged.start, merged.end);
        let key = key_of(merged, group);
        self.by_end.insert(key.clone(), totals);
        gone.retain(|other| *other != key);
        (Row { key, totals }, gone)
    }

    /// Takes out the windows that `watermark` closes, in order.
    pub(super) fn take_closed(&mut self, watermark: Watermark) -> Vec<Row> {
        let mut closed = Vec::new();
        while let Some(first) = self.by_end.first_entry() {
            if !first.key().window.is_closed_at(watermark) {
                break;
            }
            let (key, totals) = first.remove_entry();
            self.forget_session(&key);
            closed.push(Row { key, totals });
        }
        closed
    }

    /// All windows, in order.
    pub(super) fn rows(&self) -> Vec<Row> {
        self.by_end.iter().map(|(key, totals)| Row { key: key.clone(), totals: *totals }).collect()
    }

    /// Fills the index of sessions after a restart, when the windows came back without it.
    fn index_sessions(&mut self) {
        if !self.sessions.is_empty() {
            return;
        }
        for WindowKey { window, currency, group } in self.by_end.keys() {
            let of_group = self.sessions.entry((*currency, group.clone())).or_default();
            of_group.insert(window.start, window.end);
        }
    }

    fn forget_session(&mut self, key: &WindowKey) {
        // Nothing to look for where no session was ever merged.
        if self.sessions.is_empty() {
            return;
        }
        let group = (key.currency, key.group.clone());
        if let Some(of_group) = self.sessions.get_mut(&group) {
            of_group.remove(&key.window.start);
            if of_group.is_empty() {
                self.sessions.remove(&group);
            }
        }
    }
}

fn key_of(window: Window, (currency, group): &Group) -> WindowKey {
    WindowKey { window, currency: *currency, group: group.clone() }
}
