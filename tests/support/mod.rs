//! What the tests run against: a real Postgres, started once per test binary, one database per
//! test, and the real `tillmark` binary as a process of its own, spoken to over HTTP.

pub mod client;
pub mod postgres;
pub mod service;

pub use client::{Answer, a_sale, gzip, zstd};
pub use postgres::TestDatabase;
pub use service::TestService;
