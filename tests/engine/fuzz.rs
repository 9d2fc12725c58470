//! The engine beside the naive model, over streams that libFuzzer makes up. A target of `fuzz/`, not of `cargo test`.
#![no_main]
#![allow(dead_code, unused_imports, reason = "the tests use more of what they share with this")]

mod builders;
mod database;
mod model;
mod model_test;
mod seen;
mod streams;
mod translation;

use streams::{Choices, Stream};

libfuzzer_sys::fuzz_target!(|bytes: Vec<u8>| {
    let stream = Stream::drawn(&mut Choices::Chosen(bytes.into_iter()));
    model_test::Run::new(stream).finish(&mut seen::Seen::default());
});
