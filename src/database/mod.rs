//! ALL SQL: the only folder that knows sqlx, and the only one with SQL in it.
//!
//! Functions that take a connection compose into the transaction of their caller; methods of
//! [`Database`] are whole steps. No transaction ever leaves this folder, but for the prepared
//! commit of a micro-batch and the log of a replay, whose owners are tasks that nobody cuts off.
//!
//! Invariants:
//! * `seq` order is commit order ([`append`](Database::append)).
//! * One commit per query and batch id ([`checkpoint`](Database::checkpoint_prepare)).
//! * Reports read everything in one snapshot ([`recount`](Database::reconciliation_snapshot),
//!   [`receipts`](Database::receipt)).
//!
//! Absent on purpose: a clock. Times come from Postgres or as parameters.

mod api_keys;
mod append;
mod append_copy;
mod append_decisions;
mod append_fast;
mod append_rows;
mod as_of;
mod audit;
mod bookings;
mod checkpoint;
mod connect;
mod copy_format;
mod corrections;
#[cfg(feature = "defects")]
mod defects;
mod dropped_events;
mod duplicates;
mod error;
mod event_ids;
mod findings;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod gauges;
mod idle;
mod lateness;
mod ledger_sql;
mod log_batch;
mod output_rows;
mod partitions;
mod poison;
mod progress;
mod quarantine;
mod queries;
mod query_removal;
mod query_status;
mod raw_log;
mod receipt_facts;
mod receipts;
mod recount;
mod recount_lines;
mod recount_sql;
mod replay_log;
mod values;
mod window_bounds;
mod windows;

pub use api_keys::{KeyCursor, LiveKey, LiveKeys, Rotated, SecretHash, StoredKey};
pub use append::{AppendMemory, AppendRequest, Appended, FutureGuard, Release};
pub use as_of::AsOf;
pub use audit::{AuditAction, AuditEntry, AuditFact};
pub use bookings::{Booked, Booking, BookingWindow, BookingWindows};
pub use checkpoint::PreparedCommit;
pub use connect::{Database, PoolGauges, PoolSizes};
pub use corrections::{Correction, CorrectionSelection};
pub use dropped_events::{DroppedEvent, DroppedSelection};
pub use error::DatabaseError;
pub use findings::Finding;
pub use gauges::QueryGauges;
pub use idle::{IdleClosing, Silence};
pub use lateness::{
    Delays, LATENESS_BUCKETS_MS, Lateness, LatenessBy, LatenessSelection, LatenessSource,
    NewestOfSource, SourceLateness,
};
pub use progress::{BatchDurations, CommittedProgress, ProgressCursor, ProgressEntry};
pub use quarantine::{QuarantineCursor, Quarantined, Resolution};
pub use queries::{QueryPut, QueryVersion, StoredQuery};
pub use query_status::QueryFigures;
pub use receipts::{Closing, ClosingRecord, LateRule, QueryReceipt, Receipt, ReceiptOutcome};
pub use recount::{ReconciliationSnapshot, Recount, RecountRange};
pub use replay_log::{ReplayBatch, ReplayCuts, ReplayLog};
pub use windows::{WindowRow, WindowSelection};
