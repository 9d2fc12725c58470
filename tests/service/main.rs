//! The service as its users see it: the real binary on a real Postgres, over HTTP.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod worked_example;
