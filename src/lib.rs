//! Tillmark.
pub mod domain;
pub mod intake;
