//! The engine through its public door, `tillmark::engine::step`: tables of its boundaries, a naive
//! model beside seeded random streams, and the answers recorded from Apache Spark.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod batches;
mod bounded_state;
mod builders;
mod database;
mod duplicates;
mod groups;
mod heartbeats;
mod lateness;
mod model;
mod model_test;
mod output_modes;
mod seen;
mod sessions;
mod sliding;
mod spark_replay;
mod streams;
mod translation;
mod watermarks;
mod worked_examples;
