//! Turns micro-batches of logged events into window rows, with exactly the event-time rules of
//! Apache Spark Structured Streaming. Pure: the outcome depends only on the arguments, so
//! replaying the raw log with the same cuts always gives the same rows.
//!
//! Invariants:
//! * The watermark never moves back.
//! * Lateness is judged with the watermark of the *previous* batch, windows close with the one of
//!   *this* batch: an event whose window this very batch closes still counts.
//! * A closed window is never changed again.
//! * Whatever the events say, nothing here panics: amounts and times are bounded by their types,
//!   and sums are wide enough for any log.
//!
//! Absent on purpose: clock, database, async, logging, maps without an order.
//! `cargo test --test architecture` keeps them out.
#![warn(clippy::arithmetic_side_effects)]

mod batch;
#[cfg(feature = "defects")]
mod defects;
mod duplicates;
mod event_time;
mod groups;
mod open_windows;
mod outcome;
mod reading;
mod rules;
mod state;
mod step;
mod tally;

pub use batch::{Batch, Content, Profile, ProfileId, Record};
pub use duplicates::Remembered;
pub use event_time::EventTimeRange;
pub use outcome::{Dropped, DroppedReason, Outcome, Row};
pub use rules::Rules;
pub use state::{State, Watermarks};
pub use step::step;
