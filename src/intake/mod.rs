//! From a posted body to events that are ready to be stored.
//!
//! [`json_items`] takes a body apart. What is wrong inside one item is not looked at yet; what makes
//! the body unreadable costs all of it.
//!
//! Absent on purpose: a clock (event times are the tills'), a database, HTTP and its status codes.

mod faults;
mod raw_json;
mod wire;

pub use wire::{BodyError, BodyLimits, Item, json_items};
