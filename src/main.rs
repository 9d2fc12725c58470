//! The `tillmark` binary: reads the settings and starts what they name.

use std::process::ExitCode;

use tillmark::app;
use tillmark::config::{Command, CommandLine, Refusal};
use tillmark::{demo, http};

/// Wrong settings (`EX_USAGE`).
const EXIT_USAGE: u8 = 64;
/// No database to work with (`EX_UNAVAILABLE`).
const EXIT_UNAVAILABLE: u8 = 69;

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
    let ended = match command {
        Command::Serve(settings) => app::serve(&settings),
        Command::Demo(settings) => demo::play(&settings),
        Command::Openapi => {
            println!("{}", http::openapi_json());
            Ok(())
        }
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let setting = error.is_setting();
            eprintln!("tillmark: {}", in_one_line(&anyhow::Error::from(error)));
            ExitCode::from(if setting { EXIT_USAGE } else { EXIT_UNAVAILABLE })
        }
    }
}

/// The error and its causes, without a cause that the text before it repeats, as sqlx does.
fn in_one_line(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |line, cause| match line {
        line if line.is_empty() => cause,
        line if line.ends_with(&cause) => line,
        line => format!("{line}: {cause}"),
    })
}
