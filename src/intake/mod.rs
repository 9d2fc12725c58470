//! From a posted body to events that are ready to be stored.
//!
//! [`events`] takes a body apart into items, checks each and gives it its identity; [`heartbeat`] and
//! [`decision`] read the bodies of single objects by the same rules. All are pure: what they answer
//! depends on their arguments alone.
//!
//! Invariants:
//! * What is wrong inside one item costs that item only; what makes the body unreadable costs all.
//! * All faults of an item are told at once (of a hostile one, the first forty; when the items of
//!   a body have more than 40,000 together, of the later ones the first).
//! * A body costs no more memory than a few times its size, whatever stands in it.
//! * Amounts and numbers are read from their text, never through a float.
//! * An event hashes the same however it was written, and no two different events hash the same.
//! * No posted byte can cause a panic, and the work is linear in the body.
//!
//! Absent on purpose: a clock (event times are the tills'), a database, HTTP and its status codes.

mod attributes;
mod cloud_event;
mod columns;
mod commit_figures;
mod decision;
mod faults;
mod fields;
mod group_commit;
mod heartbeat;
mod identity;
mod raw_json;
mod small_object;
mod validate;
mod values;
mod wire;

#[cfg(test)]
mod tests;

pub use columns::{Columns, InvalidHeader};
pub use commit_figures::CommitFigures;
pub use decision::{Action, Decision, decision};
pub use group_commit::{Intake, IntakeError, IntakeSettings, QueueDepth};
pub use heartbeat::heartbeat;
pub use small_object::InvalidObject;
pub use validate::{CheckedItem, EventDefaults, InvalidItem, events};
pub use wire::{BodyError, BodyFormat, BodyLimits, UnreadableLine};
