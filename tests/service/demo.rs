//! `tillmark demo`: what it shows, and that it leaves nothing behind.

use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A folder for temporary files that Postgres may enter, whoever runs it.
fn temporary_folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    folder
}

fn demo(temporary: &TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tillmark"));
    command.arg("demo").env("TMPDIR", temporary.path());
    command
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().next().is_none()
}

#[test]
fn the_demo_shows_its_own_example_whatever_is_set_and_leaves_nothing_behind() {
    let temporary = temporary_folder();
    let output = demo(&temporary)
        .env("TILLMARK_CURRENCY", "JPY")
        .env("TILLMARK_REQUEST_EVENTS_MAX", "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(text.contains("Final hour 2026-10-01T09:00:00Z: 3 orders, 68.50 USD"), "{text}");
    assert!(text.ends_with("Unexplained windows: 0; everything adds up.\n"), "{text}");
    assert!(is_empty(temporary.path()));
}

#[test]
fn a_demo_that_is_interrupted_leaves_nothing_behind() {
    let temporary = temporary_folder();
    let mut process = demo(&temporary).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().starts_with("The worked example"));
    let socket = socket_folder(temporary.path());
    assert!(socket.exists());

    let id = Pid::from_raw(process.id().cast_signed()).unwrap();
    kill_process(id, Signal::INT).unwrap();

    assert!(process.wait().unwrap().success());
    assert!(is_empty(temporary.path()));
    assert!(!socket.exists());
}

#[test]
fn a_demo_that_fails_leaves_nothing_behind() {
    let temporary = temporary_folder();
    let output = demo(&temporary).env("PG_BIN_DIR", "/nowhere").output().unwrap();
    assert_eq!(output.status.code(), Some(64), "{output:?}");
    assert!(is_empty(temporary.path()));
}

/// The folder of the socket, as the address for psql names it.
fn socket_folder(temporary: &Path) -> PathBuf {
    let folder = fs::read_dir(temporary).unwrap().next().unwrap().unwrap().path();
    let address = fs::read_to_string(folder.join("postgres.url")).unwrap();
    let (_, host) = address.split_once("host=").unwrap();
    PathBuf::from(host.split('&').next().unwrap())
}
