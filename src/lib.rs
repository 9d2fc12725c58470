//! Tillmark.
pub mod database;
pub mod domain;
pub mod embedded;
pub mod engine;
pub mod finance;
pub mod http;
pub mod intake;
pub mod pipeline;
