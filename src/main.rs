//! The `tillmark` binary: reads the settings and starts what they name.

use std::process::ExitCode;

use tikv_jemallocator::Jemalloc;
use tillmark::commands;
use tillmark::config::{CommandLine, Refusal};

/// Wrong settings (`EX_USAGE`).
const EXIT_USAGE: u8 = 64;

/// A tenth less work for a post and a fifth for a read than with the system's, which is slow for what one
/// thread allocates and another frees.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    let command = match CommandLine::read() {
        Ok(command) => command,
        Err(Refusal::Shown(text)) => {
            print!("{text}");
            return ExitCode::SUCCESS;
        }
        Err(Refusal::Wrong(text)) => {
            eprintln!("tillmark: {}", text.trim_end());
            return ExitCode::from(EXIT_USAGE);
        }
    };
    match commands::run(command) {
        Ok(exit_code) => ExitCode::from(exit_code),
        Err(failure) => {
            eprintln!("tillmark: {}", failure.text);
            ExitCode::from(failure.exit_code)
        }
    }
}
