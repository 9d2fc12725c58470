//! ALL SQL: the only folder that knows sqlx, and the only one with SQL in it.
//!
//! Functions that take a connection compose into the transaction of their caller; methods of
//! [`Database`] are whole steps. No transaction ever leaves this folder, but for the prepared
//! commit of a micro-batch, the log of a replay and a snapshot of output rows, whose owners are tasks
//! that nobody cuts off.
//!
//! Invariants:
//! * `seq` order is commit order ([`append`](Database::append)).
//! * One commit per query and batch id, and only by the leader ([`checkpoint`](Database::checkpoint_commit),
//!   [`lease`](Database::lease_acquire)).
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
mod changes;
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
mod health;
mod idle;
mod lateness;
mod lease;
mod ledger_sql;
mod log_batch;
mod log_tail;
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
mod run_requests;
mod standings;
mod values;
mod window_snapshot;
mod windows;

pub use api_keys::{KeyCursor, LiveKey, LiveKeys, Rotated, SecretHash, StoredKey};
pub use append::{AppendMemory, AppendRequest, Appended, FutureGuard, LetNext, Release};
pub use as_of::AsOf;
pub use audit::{AuditAction, AuditEntry, AuditFact};
pub use bookings::{Booked, Booking, BookingWindow, BookingWindows};
pub use changes::BatchSpan;
pub use connect::{Database, PoolGauges, PoolSizes};
pub use corrections::{Correction, CorrectionSelection};
pub use dropped_events::{DroppedEvent, DroppedSelection};
pub use error::DatabaseError;
pub use findings::Finding;
pub use gauges::{QueryGaugeFigures, QueryGauges};
pub use health::ServerFault;
pub use idle::{IdleClosing, Silence};
pub use lateness::{
    Delays, LATENESS_BUCKETS_MS, Lateness, LatenessBy, LatenessSelection, LatenessSource,
    NewestOfSource, SourceLateness,
};
pub use lease::{LeaseEpoch, LeaseTaken};
pub use progress::{BatchDurations, CommittedProgress, ProgressCursor, ProgressEntry};
pub use quarantine::{QuarantineCursor, Quarantined, Resolution};
pub use queries::{QueryPut, QueryVersion, StoredQuery};
pub use query_status::QueryFigures;
pub use receipts::{Closing, ClosingRecord, LateRule, QueryReceipt, Receipt, ReceiptOutcome};
pub use recount::{ReconciliationSnapshot, Recount, RecountRange};
pub use replay_log::{ReplayBatch, ReplayCuts, ReplayLog};
pub use run_requests::{RunReply, RunRequest};
pub use standings::{Revision, Standing, StandingsReader};
pub use window_snapshot::{WindowSnapshot, WindowSource};
pub use windows::{WindowRow, WindowSelection};
