//! Tillmark.
pub mod domain;
