//! The engine beside the naive model of `tests/engine`, over streams that libFuzzer makes up.
#![no_main]
#![allow(dead_code, unused_imports, reason = "the tests use more of what they share with this")]

#[path = "../../tests/engine/builders.rs"]
mod builders;
#[path = "../../tests/engine/database.rs"]
mod database;
#[path = "../../tests/engine/model/mod.rs"]
mod model;
#[path = "../../tests/engine/model_test.rs"]
mod model_test;
#[path = "../../tests/engine/seen.rs"]
mod seen;
#[path = "../../tests/engine/streams.rs"]
mod streams;
#[path = "../../tests/engine/translation.rs"]
mod translation;

use streams::{Choices, Stream};

libfuzzer_sys::fuzz_target!(|bytes: Vec<u8>| {
    let stream = Stream::drawn(&mut Choices::Chosen(bytes.into_iter()));
    model_test::Run::new(stream).finish(&mut seen::Seen::default());
});
