//! What becomes of each event of an append. Pure: it decides from what the transaction has read
//! under the append lock.

use std::collections::HashMap;

use super::append::{AppendRequest, Appended, Release};
use super::quarantine::Quarantined;
use crate::domain::{ContentHash, EventId, EventTime, Heartbeat, IdentifiedEvent, Seq};

/// An id that is taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) content_hash: ContentHash,
    pub(super) stands: Stands,
}

/// Where the event of a taken id stands.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stands {
    /// In the raw log.
    Logged(Seq),
    /// In quarantine.
    Waiting,
    /// Nowhere: an operator rejected it.
    Rejected,
    /// The n-th new event of this append.
    Fresh(usize),
    /// The n-th event of this append that is set aside.
    Aside(usize),
    /// Nowhere: it came earlier in the same all-or-nothing request.
    Undone,
}

impl Stands {
    /// Where the event of a taken id stands, from its position and whether somebody decided on it in
    /// quarantine.
    pub(super) fn of(seq: Option<i64>, is_resolved: bool) -> Self {
        match seq {
            Some(seq) => Self::Logged(Seq::new(seq)),
            None if is_resolved => Self::Rejected,
            None => Self::Waiting,
        }
    }

    /// Its position in the log, if it has one; `seqs` are those of the new events.
    fn seq(self, seqs: &[Seq]) -> Option<Seq> {
        match self {
            Self::Logged(seq) => Some(seq),
            Self::Fresh(index) => Some(seqs[index]),
            Self::Waiting | Self::Aside(_) | Self::Rejected | Self::Undone => None,
        }
    }
}

/// An answer that does not know the new `seq`s yet.
#[derive(Debug, Clone, Copy)]
enum Decision {
    Accepted(usize),
    Duplicate(Stands),
    Conflict(Known),
    /// The n-th event of this append that is set aside.
    Quarantined(usize),
    Heartbeat(usize),
    /// A heartbeat from the future.
    TooFarAhead,
    Released(usize),
    NotStored,
    NotInQuarantine,
}

/// The decisions on one request.
#[derive(Debug)]
pub(super) struct Decided(Vec<Decision>);

impl Decision {
    /// What it becomes when the new events of its request, from these numbers on, are not stored
    /// after all.
    fn undone(self, events_from: usize, aside_from: usize) -> Self {
        let is_undone = |stands| match stands {
            Stands::Fresh(index) => index >= events_from,
            Stands::Aside(index) => index >= aside_from,
            Stands::Logged(_) | Stands::Waiting | Stands::Rejected | Stands::Undone => false,
        };
        match self {
            Self::Accepted(index) if is_undone(Stands::Fresh(index)) => Self::NotStored,
            Self::Quarantined(index) if is_undone(Stands::Aside(index)) => Self::NotStored,
            Self::Duplicate(stands) if is_undone(stands) => Self::NotStored,
            Self::Conflict(known) if is_undone(known.stands) => {
                Self::Conflict(Known { stands: Stands::Undone, ..known })
            }
            stays => stays,
        }
    }
}

impl Decided {
    /// Whether no two events of the append contradict each other.
    pub(super) fn is_free_of_conflicts(&self) -> bool {
        !self.0.iter().any(|decision| matches!(decision, Decision::Conflict(_)))
    }

    /// The events of `request` that are in conflict with one that is stored, here or before: where
    /// that one stands, and what it says.
    pub(super) fn conflicts<'append>(
        &self,
        request: &'append AppendRequest,
        seqs: &[Seq],
    ) -> Vec<(&'append IdentifiedEvent, Option<Seq>, ContentHash)> {
        let events = self.0.iter().zip(request.events());
        let stored = events.filter_map(|(decision, event)| match decision {
            Decision::Conflict(known) if !matches!(known.stands, Stands::Undone) => {
                Some((event, known.stands.seq(seqs), known.content_hash))
            }
            _ => None,
        });
        stored.collect()
    }

    /// The answers, once `seqs` are drawn: for the events first, then heartbeats, then releases.
    pub(super) fn with_seqs(self, fresh: &Fresh<'_>, seqs: &[Seq]) -> Vec<Appended> {
        let heartbeats_from = fresh.events.len();
        let releases_from = heartbeats_from + fresh.heartbeats.len();
        let answer = |decision| match decision {
            Decision::Accepted(index) => Appended::Accepted(seqs[index]),
            Decision::Heartbeat(index) => Appended::Accepted(seqs[heartbeats_from + index]),
            Decision::Released(index) => Appended::Accepted(seqs[releases_from + index]),
            Decision::Duplicate(Stands::Logged(seq)) => Appended::Duplicate(seq),
            Decision::Duplicate(Stands::Fresh(index)) => Appended::Duplicate(seqs[index]),
            Decision::Duplicate(Stands::Waiting | Stands::Aside(_)) | Decision::Quarantined(_) => {
                Appended::Quarantined
            }
            Decision::TooFarAhead => Appended::Quarantined,
            Decision::Duplicate(Stands::Rejected) => Appended::RejectedBefore,
            Decision::NotStored | Decision::Duplicate(Stands::Undone) => Appended::NotStored,
            Decision::Conflict(Known { content_hash, stands }) => Appended::Conflict {
                first_content_hash: content_hash,
                in_same_request: matches!(stands, Stands::Undone),
                first_seq: stands.seq(seqs),
            },
            Decision::NotInQuarantine => Appended::NotInQuarantine,
        };
        self.0.into_iter().map(answer).collect()
    }
}

/// What an append has to write.
#[derive(Debug, Default)]
pub(super) struct Fresh<'append> {
    /// Events for the log.
    pub(super) events: Vec<&'append IdentifiedEvent>,
    /// Events for the quarantine.
    pub(super) aside: Vec<&'append IdentifiedEvent>,
    pub(super) heartbeats: Vec<&'append Heartbeat>,
    /// Events that leave the quarantine for the log.
    pub(super) releases: Vec<(&'append Release, &'append Quarantined)>,
}

impl Fresh<'_> {
    /// How many records the log gets.
    pub(super) fn records(&self) -> usize {
        self.events.len() + self.heartbeats.len() + self.releases.len()
    }
}

/// Decides, in order, what is new.
pub(super) struct Decisions<'append> {
    known: HashMap<String, Known>,
    taken: HashMap<&'append EventId, Known>,
    in_quarantine: HashMap<&'append EventId, &'append Quarantined>,
    newest_accepted: EventTime,
    fresh: Fresh<'append>,
}

impl<'append> Decisions<'append> {
    pub(super) fn start(
        known: HashMap<String, Known>,
        in_quarantine: &'append [Quarantined],
        newest_accepted: EventTime,
    ) -> Self {
        let in_quarantine = in_quarantine.iter().map(|one| (&one.event.event_id, one)).collect();
        Self {
            known,
            taken: HashMap::new(),
            in_quarantine,
            newest_accepted,
            fresh: Fresh::default(),
        }
    }

    pub(super) fn into_fresh(self) -> Fresh<'append> {
        self.fresh
    }

    pub(super) fn decide(&mut self, request: &'append AppendRequest) -> Decided {
        Decided(match request {
            AppendRequest::Events { events, all_or_nothing } => {
                self.decide_events(events, *all_or_nothing)
            }
            AppendRequest::Heartbeat(heartbeat) => vec![self.decide_heartbeat(heartbeat)],
            AppendRequest::Release(release) => vec![self.decide_release(release)],
        })
    }

    fn decide_heartbeat(&mut self, heartbeat: &'append Heartbeat) -> Decision {
        if heartbeat.event_time > self.newest_accepted {
            return Decision::TooFarAhead;
        }
        self.fresh.heartbeats.push(heartbeat);
        Decision::Heartbeat(self.fresh.heartbeats.len() - 1)
    }

    fn decide_release(&mut self, release: &'append Release) -> Decision {
        let Some(event) = self.in_quarantine.remove(&release.event_id) else {
            return Decision::NotInQuarantine;
        };
        self.fresh.releases.push((release, event));
        Decision::Released(self.fresh.releases.len() - 1)
    }

    fn decide_events(
        &mut self,
        events: &'append [IdentifiedEvent],
        all_or_nothing: bool,
    ) -> Vec<Decision> {
        let (events_before, aside_before) = (self.fresh.events.len(), self.fresh.aside.len());
        let mut decided: Vec<Decision> =
            events.iter().map(|event| self.decide_event(event)).collect();
        let in_conflict = decided.iter().any(|decision| matches!(decision, Decision::Conflict(_)));
        if all_or_nothing && in_conflict {
            let undone = self.fresh.events.drain(events_before..);
            for event in undone.chain(self.fresh.aside.drain(aside_before..)) {
                self.taken.remove(&event.event.event_id);
            }
            for decision in &mut decided {
                *decision = decision.undone(events_before, aside_before);
            }
        }
        decided
    }

    fn decide_event(&mut self, identified: &'append IdentifiedEvent) -> Decision {
        let event_id = &identified.event.event_id;
        let known = self.known.get(event_id.as_str()).or_else(|| self.taken.get(event_id));
        match known.copied() {
            Some(known) if known.content_hash == identified.content_hash => {
                Decision::Duplicate(known.stands)
            }
            Some(known) => Decision::Conflict(known),
            None if identified.event.event_time > self.newest_accepted => {
                let index = self.fresh.aside.len();
                self.take(identified, Stands::Aside(index));
                self.fresh.aside.push(identified);
                Decision::Quarantined(index)
            }
            None => {
                let index = self.fresh.events.len();
                self.take(identified, Stands::Fresh(index));
                self.fresh.events.push(identified);
                Decision::Accepted(index)
            }
        }
    }

    fn take(&mut self, identified: &'append IdentifiedEvent, stands: Stands) {
        let known = Known { content_hash: identified.content_hash, stands };
        self.taken.insert(&identified.event.event_id, known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Attributes, Event};

    fn request(all_or_nothing: bool, events: &[(&str, u8)]) -> AppendRequest {
        let events = events.iter().map(|(id, content)| IdentifiedEvent {
            event: Event {
                event_id: id.parse().expect("an id"),
                order_id: "1".parse().expect("an id"),
                status: "placed".parse().expect("a status"),
                amount: "1.00".parse().expect("an amount"),
                currency: "USD".parse().expect("ISO 4217"),
                event_time: "2026-10-01T09:05:00Z".parse().expect("a time"),
                store_id: None,
                till_id: None,
                customer_id: None,
                item_count: None,
                attributes: Attributes::default(),
            },
            content_hash: ContentHash([*content; 32]),
        });
        AppendRequest::Events { events: events.collect(), all_or_nothing }
    }

    #[test]
    fn a_request_that_stores_nothing_keeps_its_answers_about_what_another_stores() {
        let (plain, atomic) = (
            request(false, &[("a", 1), ("b", 1)]),
            request(true, &[("a", 1), ("b", 2), ("c", 1), ("c", 1), ("c", 2)]),
        );
        let again = request(false, &[("c", 3)]);
        let mut decisions = Decisions::start(HashMap::new(), &[], EventTime::LATEST);
        let decided = [&plain, &atomic, &again].map(|request| decisions.decide(request));
        let seqs: Vec<Seq> = (1..=3).map(Seq::new).collect();
        let fresh = decisions.into_fresh();
        assert_eq!(fresh.records(), seqs.len());
        let [_, atomic, again] = decided.map(|decided| decided.with_seqs(&fresh, &seqs));
        let conflict = |first_seq: Option<i64>| Appended::Conflict {
            first_seq: first_seq.map(Seq::new),
            in_same_request: first_seq.is_none(),
            first_content_hash: ContentHash([1; 32]),
        };
        assert_eq!(
            atomic,
            [
                Appended::Duplicate(Seq::new(1)),
                conflict(Some(2)),
                Appended::NotStored,
                Appended::NotStored,
                conflict(None),
            ]
        );
        assert_eq!(again, [Appended::Accepted(Seq::new(3))]);
    }
}
