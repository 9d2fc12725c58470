//! POST → DURABLE.
mod group_commit;
pub use group_commit::{Intake, IntakeError, IntakeSettings};
