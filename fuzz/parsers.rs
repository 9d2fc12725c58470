//! The function of `src/fuzzing.rs` that has this binary's name, over bytes that libFuzzer makes up.
#![no_main]

use std::sync::LazyLock;

static TARGET: LazyLock<fn(&[u8])> =
    LazyLock::new(|| tillmark::fuzzing::target(env!("CARGO_BIN_NAME")));

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| TARGET(bytes));
