//! THE LOOP, on the replica that leads: one runner per query, each reading the raw log after its position, stepping the
//! engine, and committing rows, state, ledger, position and progress in one transaction.
//!
//! Invariants:
//! * A runner's state in memory is that of its last commit. After any error it is thrown away and
//!   loaded again, because the outcome of a commit may be unknown.
//! * Only the leader runs queries, and only under the epoch of its lease: a commit under one that is
//!   over is refused in the database, whatever this process believes.
//! * A query that fails says why, waits, and tries again; the others do not notice.
//! * The loop is woken by the commit of an append, not by looking; the look now and then is for
//!   what other replicas append.
//!
//! Absent on purpose: rules of event time (engine) and SQL (database).

mod batch;
mod figures;
mod handle;
mod leadership;
mod memory;
mod runner;
mod suspicion;
mod term;

pub use figures::{BatchFigures, LateMoney, QueryBatches};
pub use handle::{Pipeline, RunError};
