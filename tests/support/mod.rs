//! What the tests run against: a real Postgres, started once per test binary, one database per
//! test, and the real `tillmark` binary as a process of its own, spoken to over HTTP.

pub mod client;
pub mod exposition;
pub mod fault_proxy;
pub mod faulted_log;
pub mod faulted_store;
pub mod open_files;
pub mod postgres;
pub mod service;
pub mod tcp_way;

pub use client::{Answer, a_sale, gunzip, gzip, unzstd, zstd};
pub use exposition::Scrape;
pub use fault_proxy::Fault;
pub use faulted_store::FaultedStore;
pub use postgres::TestDatabase;
pub use service::TestService;
