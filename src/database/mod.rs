//! ALL SQL: the only folder that knows sqlx, and the only one with SQL in it.
//!
//! Functions that take a connection compose into the transaction of their caller; methods of
//! [`Database`] are whole steps. No transaction ever leaves this folder, but for the prepared
//! commit of a micro-batch, whose owner is a long-lived task.
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
mod append_decisions;
mod append_fast;
mod append_rows;
mod checkpoint;
mod connect;
mod copy_format;
#[cfg(feature = "defects")]
mod defects;
mod dropped_events;
mod duplicates;
mod error;
mod gauges;
mod idle;
mod log_batch;
mod partitions;
mod poison;
mod progress;
mod quarantine;
mod queries;
mod query_status;
mod raw_log;
mod receipt_facts;
mod receipts;
mod recount;
mod recount_sql;
mod values;
mod windows;

pub use api_keys::{KeyCursor, LiveKey, LiveKeys, Rotated, SecretHash, StoredKey};
pub use append::{AppendRequest, Appended, FutureGuard, Release};
pub use checkpoint::PreparedCommit;
pub use connect::{Database, PoolGauges, PoolSizes};
pub use dropped_events::{DroppedEvent, DroppedSelection};
pub use error::DatabaseError;
pub use gauges::QueryGauges;
pub use idle::Silence;
pub use partitions::LogRoom;
pub use progress::{BatchDurations, CommittedProgress, ProgressCursor, ProgressEntry};
pub use quarantine::{QuarantineCursor, Quarantined, Resolution};
pub use queries::{QueryPut, QueryVersion, StoredQuery};
pub use query_status::QueryFigures;
pub use receipts::{Closing, ClosingRecord, LateRule, QueryReceipt, Receipt, ReceiptOutcome};
pub use recount::{ReconciliationSnapshot, Recount, RecountRange};
pub use windows::{WindowRow, WindowSelection};
