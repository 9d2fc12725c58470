//! Tillmark.
pub mod database;
pub mod domain;
pub mod engine;
