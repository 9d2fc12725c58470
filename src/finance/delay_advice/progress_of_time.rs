//! Which record moved event time where, and when that record was received.

use crate::domain::{EventTime, Span};
use crate::engine::{Batch, Content, Rules};

/// How far event time has come, and the records of the last micro-batch that moved it.
///
/// The windows that a micro-batch closes are those that the batch before it has passed, so no older
/// record is ever asked for.
#[derive(Debug, Default)]
pub(super) struct ProgressOfTime {
    newest_ms: Option<i64>,
    moved_by: Vec<Mover>,
}

/// A record that was newer than all before it.
#[derive(Debug, Clone, Copy)]
struct Mover {
    time_ms: i64,
    received_at: EventTime,
}

/// What a micro-batch heard of time.
#[derive(Debug)]
pub(super) struct Heard(Vec<Mover>);

impl ProgressOfTime {
    /// The records of `batch` that move event time on; nothing when it holds none for the query.
    pub(super) fn heard_in(
        &self,
        rules: &Rules,
        batch: &Batch,
        received_at: &[EventTime],
    ) -> Option<Heard> {
        let passes: Vec<bool> = batch.profiles().iter().map(|one| rules.passes(one)).collect();
        let (mut newest, mut movers, mut is_for_query) = (self.newest_ms, Vec::new(), false);
        for (record, received_at) in batch.records().iter().zip(received_at) {
            let counts = match &record.content {
                Content::Event { profile, .. } => {
                    passes.get(profile.index()).copied().unwrap_or_default()
                }
                Content::Heartbeat => true,
                Content::IdleHeartbeat { quiet } => rules.heeds_silence(*quiet),
            };
            is_for_query |= counts;
            let time_ms = record.event_time.as_micros().div_euclid(1_000);
            if counts && newest.is_none_or(|newest| newest < time_ms) {
                newest = Some(time_ms);
                movers.push(Mover { time_ms, received_at: *received_at });
            }
        }
        is_for_query.then_some(Heard(movers))
    }

    /// Goes on to what a batch heard, once it has been taken.
    pub(super) fn go_on(&mut self, Heard(movers): Heard) {
        self.newest_ms = movers.last().map(|last| last.time_ms).or(self.newest_ms);
        self.moved_by = movers;
    }

    /// When the record was received that moved a watermark of this delay to `end` or past it.
    pub(super) fn reached(&self, end: EventTime, delay: Span) -> Option<EventTime> {
        let closes = |mover: &Mover| {
            let watermark_ms = mover.time_ms.saturating_sub(delay.as_millis());
            end.as_micros() <= watermark_ms.saturating_mul(1_000)
        };
        let first = self.moved_by.partition_point(|mover| !closes(mover));
        self.moved_by.get(first).map(|mover| mover.received_at)
    }
}
