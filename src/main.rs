//! The `tillmark` binary.
fn main() {}
