//! The service as its users see it: the real binary on a real Postgres, over HTTP.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(
    unreachable_pub,
    dead_code,
    unused_imports,
    reason = "the support module is shared by several test binaries"
)]

#[path = "../support/mod.rs"]
mod support;

mod append_faults;
mod bad_fields;
mod bad_inputs;
mod bench;
mod body_memory;
mod bookings;
mod browsers;
mod busy;
mod cheap_reads;
mod corrections;
mod crash;
mod delay_advice;
mod demo;
mod disconnect;
mod draining;
mod folded_views;
mod following;
mod formats;
mod health;
mod heartbeats;
mod hostile;
mod idle_closing;
mod import;
mod key_scopes;
mod key_stores;
mod keys;
mod large_posts;
mod lateness;
mod leaks;
mod local_days;
mod log_lines;
mod log_tail;
mod metrics;
mod outage;
mod poison;
mod posting;
mod private_postgres;
mod quarantine;
mod queries;
mod reading;
mod receipts;
mod reconciliation;
mod replicas;
mod report_ranges;
mod reports;
mod row_formats;
mod starting;
mod steering;
mod store_faults;
mod takeover;
mod worked_example;
