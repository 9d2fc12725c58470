//! A run of the raw log, cut down to what one query needs of it.
//!
//! What events say in the fields that a query filters and groups by repeats itself over and over,
//! so each distinct combination is kept once, as a profile, and judged once per batch.

use crate::domain::{Amount, Currency, DuplicateKey, EventTime, Seq, Span};

/// The values of one currency and of [`Rules::fields`](super::Rules::fields), in their order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Profile {
    /// The implicit group key.
    pub currency: Currency,
    /// A value for each field; nothing where an event has none.
    pub values: Vec<Option<String>>,
}

/// A profile of the batch that handed it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProfileId(pub(super) u32);

impl ProfileId {
    /// Its place among the batch's profiles.
    pub fn index(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// One record of the raw log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Where it stands.
    pub seq: Seq,
    /// The time it speaks of.
    pub event_time: EventTime,
    /// What it says.
    pub content: Content,
}

/// What a record says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Something happened to an order.
    Event {
        /// The money.
        amount: Amount,
        /// Everything that the query filters and groups by.
        profile: ProfileId,
        /// What the duplicates rule compares; nothing where the query has no such rule.
        duplicate_key: Option<DuplicateKey>,
    },
    /// A source says that nothing older than this will come.
    Heartbeat,
    /// Nothing was received for `quiet`; counts as a heartbeat for queries that want to close
    /// their windows after so long.
    IdleHeartbeat {
        /// The time on the wall without any record of a source.
        quiet: Span,
    },
}

/// The next run of the raw log, in `seq` order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    records: Vec<Record>,
    profiles: Vec<Profile>,
}

impl Batch {
    /// Adds a profile that records may then have.
    pub fn add_profile(&mut self, profile: Profile) -> ProfileId {
        let id = ProfileId(u32::try_from(self.profiles.len()).unwrap_or(u32::MAX));
        self.profiles.push(profile);
        id
    }

    /// Adds the next record.
    pub fn push(&mut self, record: Record) {
        self.records.push(record);
    }

    /// The records, in `seq` order.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// The profiles, in the order in which they were added.
    pub fn profiles(&self) -> &[Profile] {
        &self.profiles
    }

    /// Whether nothing was read: then only a watermark still owed can be applied.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Where the last record stands.
    pub fn last_seq(&self) -> Option<Seq> {
        self.records.last().map(|record| record.seq)
    }
}
