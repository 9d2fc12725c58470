//! CHEAP READS: where queries stand, looked up once for all who ask at the same time.
//!
//! Invariants:
//! * Whoever asks is told what was committed before they asked, on every replica: a look that had
//!   begun already is not theirs. So nothing has to be told to anybody when something changes.
//! * However many ask, one look is under way at a time, by one small statement on one connection.
//!
//! Absent on purpose: what is read of a query's output, and anything kept for a time.

mod followers;
mod standings;

pub use followers::Followers;
pub use standings::Standings;
