//! Starts that cannot be: the exit code, and the sentence that says what to do.

use std::net::TcpListener;
use std::process::Command;

/// The exit code of a start with these settings, and what it wrote to standard error.
fn start(environment: &[(&str, &str)]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tillmark"))
        .env("TILLMARK_LISTEN", "127.0.0.1:0")
        .env_remove("DATABASE_URL")
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_setting_that_cannot_be_used_is_named_and_the_exit_code_is_64() {
    let empty = tempfile::tempdir().unwrap();
    let empty = empty.path().to_str().unwrap();
    let foreign = tempfile::tempdir().unwrap();
    std::fs::write(foreign.path().join("holiday.jpg"), "").unwrap();
    let foreign = foreign.path().to_str().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    for (settings, said) in [
        (
            [("TILLMARK_DATA_DIR", empty), ("PG_BIN_DIR", "/nowhere")],
            "PG_BIN_DIR is /nowhere, which does not hold working `postgres` and `initdb` programs".to_owned(),
        ),
        (
            [("TILLMARK_DATA_DIR", foreign), ("DATABASE_URL", "")],
            format!("{foreign} is not empty and was not made by Tillmark: TILLMARK_DATA_DIR must name an empty folder, or one that does not exist yet"),
        ),
        (
            [("TILLMARK_DATA_DIR", "/dev/null/data"), ("DATABASE_URL", "")],
            "TILLMARK_DATA_DIR".to_owned(),
        ),
        (
            [("DATABASE_URL", "nonsense"), ("TILLMARK_LOG", "off")],
            "DATABASE_URL is no address such as postgres://user:password@host/database. Correct it, or \
             leave it unset for a private Postgres.\n"
                .to_owned(),
        ),
        (
            [("TILLMARK_LISTEN", &*taken), ("DATABASE_URL", "")],
            format!("{taken} is taken by another program; choose another with TILLMARK_LISTEN or --listen\n"),
        ),
    ] {
        let (code, text) = start(&settings);
        assert_eq!(code, Some(64), "{settings:?}: {text}");
        assert!(text.starts_with("tillmark: ") && text.contains(&said), "{settings:?}: {text}");
    }
}
