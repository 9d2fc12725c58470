//! THE LOOP: one runner per query, read → step → commit.

mod handle;

pub use handle::{Pipeline, RunError};
