//! Tillmark.
pub mod domain;
pub mod engine;
