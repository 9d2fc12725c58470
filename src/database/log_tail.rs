//! The end of the raw log in the memory of the process that appended it. A query that follows the log
//! finds here what came since its last batch, and Postgres is spared one read per query and batch.
//!
//! Invariants:
//! * Only what is committed gets here, each append as the whole of the positions that it drew. So where
//!   two runs meet nothing stands between them, and what was read here is what the log says.
//! * What is not here is read from the log: heartbeats, releases, the appends of other processes, what is
//!   older, and everything after a failure ([`LogTail::forget`]).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::append::{AppendRequest, Appended};
use super::log_batch::Builder;
use crate::domain::{Event, IdentifiedEvent, Seq};
use crate::engine::{Batch, Rules};

/// The most memory that the events kept here may take. Queries that follow the log are a few appends
/// behind.
const BYTES_MAX: usize = 8 << 20;
/// What a request costs beside its events, and the append with it.
const REQUEST_BYTES: usize = 1_000;
/// What a text costs beside its bytes, in a map the nodes included.
const TEXT_BYTES: usize = 48;

/// The positions of one append, of which not each has an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    first: Seq,
    last: Seq,
}

impl Block {
    /// So many positions, at least one, from `first` on.
    pub(super) fn of(first: Seq, count: usize) -> Self {
        let further = u32::try_from(count.saturating_sub(1)).unwrap_or(u32::MAX);
        Self { first, last: first.plus(further) }
    }
}

/// The newest appends of this process.
#[derive(Debug, Default)]
pub(super) struct LogTail(Mutex<Runs>);

#[derive(Debug, Default)]
struct Runs {
    by_first: BTreeMap<Seq, Arc<Run>>,
    bytes: usize,
}

/// One append.
#[derive(Debug)]
struct Run {
    block: Block,
    requests: Vec<AppendRequest>,
    /// Position, request and place in it of each event that was stored, in the order of the log.
    places: Vec<(Seq, usize, usize)>,
    bytes: usize,
}

impl LogTail {
    /// Adds an append: what it was asked for, and what became of it.
    pub(super) fn extend(
        &self,
        block: Block,
        requests: Vec<AppendRequest>,
        appended: &[Vec<Appended>],
    ) {
        let run = Run::new(block, requests, appended);
        let mut runs = self.runs();
        let before = runs.by_first.range(..=block.last).next_back();
        if before.is_some_and(|(_, run)| run.block.last >= block.first) {
            // The database was put back to an earlier state, and draws positions again.
            *runs = Runs::default();
        }
        runs.bytes += run.bytes;
        runs.by_first.insert(block.first, Arc::new(run));
        while runs.bytes > BYTES_MAX {
            let Some((_, oldest)) = runs.by_first.pop_first() else { break };
            runs.bytes -= oldest.bytes;
        }
    }

    /// Forgets everything: something failed, and what the log says is to be read there.
    pub(super) fn forget(&self) {
        *self.runs() = Runs::default();
    }

    /// Up to `records_max` records after `position`, as [`raw_log_batch`](super::Database::raw_log_batch)
    /// reads them; nothing unless they are here without a gap, as many as wanted or up to `head`.
    pub(super) fn batch(
        &self,
        rules: &Rules,
        position: Seq,
        head: Seq,
        records_max: u32,
    ) -> Option<Batch> {
        // Postgres has its own way to write an amount as a text, which a key may be made of.
        if !rules.deduplicate.is_empty() || position >= head {
            return None;
        }
        let records_max = usize::try_from(records_max).unwrap_or(usize::MAX);
        let mut builder = Builder::of(rules);
        for run in self.runs_after(position, head, records_max)? {
            let read = run.places.partition_point(|(seq, ..)| *seq <= position);
            let wanted = records_max - builder.batch.records().len();
            for (seq, event) in run.events().skip(read).take(wanted) {
                builder.add_event(seq, event);
            }
        }
        Some(builder.batch)
    }

    /// The runs that a batch is made of.
    fn runs_after(&self, position: Seq, head: Seq, records_max: usize) -> Option<Vec<Arc<Run>>> {
        let runs = self.runs();
        let mut next = position.plus(1);
        let (mut found, mut records) = (Vec::new(), 0);
        loop {
            let (_, run) = runs.by_first.range(..=next).next_back()?;
            if run.block.last < next {
                return None;
            }
            records += run.places.len() - run.places.partition_point(|(seq, ..)| *seq < next);
            found.push(Arc::clone(run));
            next = run.block.last.plus(1);
            if run.block.last >= head || records >= records_max {
                return Some(found);
            }
        }
    }

    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Run {
    fn new(block: Block, requests: Vec<AppendRequest>, appended: &[Vec<Appended>]) -> Self {
        let (mut places, mut bytes) = (Vec::new(), REQUEST_BYTES * requests.len());
        for (request, (asked, became)) in requests.iter().zip(appended).enumerate() {
            for (event, (identified, became)) in asked.events().iter().zip(became).enumerate() {
                places.extend(became.accepted().map(|seq| (seq, request, event)));
                bytes += bytes_of(&identified.event);
            }
        }
        Self { block, requests, places, bytes }
    }

    fn events(&self) -> impl Iterator<Item = (Seq, &Event)> {
        self.places.iter().filter_map(|(seq, request, event)| {
            let identified = self.requests.get(*request)?.events().get(*event)?;
            Some((*seq, &identified.event))
        })
    }
}

/// About how much memory an event takes.
fn bytes_of(event: &Event) -> usize {
    let optional = |text: Option<&str>| text.map_or(0, |text| TEXT_BYTES + text.len());
    let attributes = event.attributes.as_map().iter();
    size_of::<IdentifiedEvent>()
        + 3 * TEXT_BYTES
        + event.event_id.as_str().len()
        + event.order_id.as_str().len()
        + event.status.as_str().len()
        + optional(event.store_id.as_ref().map(|id| id.as_str()))
        + optional(event.till_id.as_ref().map(|id| id.as_str()))
        + optional(event.customer_id.as_ref().map(|id| id.as_str()))
        + attributes.map(|(name, text)| 2 * TEXT_BYTES + name.len() + text.len()).sum::<usize>()
}
