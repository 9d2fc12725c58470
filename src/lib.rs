//! Tillmark.
pub mod app;
pub mod clock;
pub mod config;
pub mod database;
pub mod demo;
pub mod domain;
pub mod embedded;
pub mod engine;
pub mod finance;
pub mod http;
pub mod intake;
pub mod pipeline;
pub mod telemetry;
