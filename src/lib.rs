//! Tillmark.
pub mod database;
pub mod domain;
pub mod embedded;
pub mod engine;
