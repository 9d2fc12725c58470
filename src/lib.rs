//! Tillmark.
pub mod domain;
pub mod embedded;
pub mod engine;
