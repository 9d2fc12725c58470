//! Tillmark keeps every order event that till apps post and answers two questions: *is this hour
//! finished?* and *why does finance get another number?*
//!
//! ```text
//! POST → http/ → intake/ validate → group_commit ──► raw log (Postgres)
//!                                                         │  read after position
//!                               rows + state + dropped + position + progress, ONE transaction
//!                                    ▲                    ▼
//!                                database/ ◄── pipeline ──► engine::step (pure: state + batch → outcome)
//! GET  ← http/ ← database/ (rows, progress, ledger) ;  finance/ ← database::recount (plain SQL)
//! ```
//!
//! | module | role | never |
//! |---|---|---|
//! | [`domain`] | the words: values that cannot be wrong once made | any other module, I/O, a clock |
//! | [`intake`] | POST → durable | HTTP; its checks know no database |
//! | [`engine`] | the event-time rules, pure | I/O, async, a clock, logging |
//! | [`pipeline`] | the loop: read → step → commit | HTTP, SQL |
//! | [`database`] | all SQL | HTTP, a clock |
//! | [`finance`] | what must add up | the engine, in the reconciliation |
//! | [`reading`] | where queries stand, looked up once for all who ask | HTTP, SQL, anything kept for a time |
//! | [`access`] | who may come in: keys, and how much each may post | HTTP, SQL |
//! | [`http`] | routes, statuses, problems | SQL, rules |
//! | [`import`] | files → the raw log, by the checks of [`intake`] | HTTP, SQL, rules of its own |
//! | [`mod@bench`] | made-up events → a running service, measured | rules, SQL, another machine |
//! | [`report`] | the reports on the command line | HTTP, SQL, rules of its own |
//! | [`table`] | rows as CSV, in one dialect | what the rows mean |
//! | [`faults`] | the points at which tests have the service die; nothing that ships has them | everything else |
//! | [`embedded`] | the private Postgres | SQL, async |
//!
//! Who may import whom is kept by `cargo test --test architecture`.

#[macro_use]
pub mod faults;

pub mod access;
pub mod app;
pub mod bench;
pub mod clock;
pub mod commands;
pub mod config;
pub mod database;
pub mod demo;
pub mod domain;
pub mod embedded;
pub mod engine;
pub mod finance;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod http;
pub mod import;
pub mod intake;
pub mod pipeline;
pub mod reading;
pub mod report;
pub mod table;
pub mod telemetry;
