//! Four deliberate mistakes, each noticed by the proofs that guard the product, and each by name.
//!
//! Needs the feature `defects`: `cargo test --features defects --test defects`.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(
    unreachable_pub,
    dead_code,
    unused_imports,
    reason = "the modules of the proofs are shared by several test binaries"
)]

#[path = "../engine/builders.rs"]
mod builders;
#[path = "../engine/database.rs"]
mod database;
#[path = "../engine/model/mod.rs"]
mod model;
#[path = "../engine/spark_replay.rs"]
mod spark_replay;
#[path = "../support/mod.rs"]
mod support;
#[path = "../engine/translation.rs"]
mod translation;

mod in_the_commit;
mod in_the_rules;
