//! What a running server says about itself in `postmaster.pid`, and the end of one that was left over.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;

use rustix::process::{Pid, Signal, kill_process};

use super::server::{POLL, STOP_POLLS};
use super::{DataFolder, EmbeddedError};

/// The parts of `postmaster.pid` that matter here.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Postmaster {
    /// Its process id.
    pub(super) pid: i32,
    /// It takes connections.
    pub(super) ready: bool,
}

impl Postmaster {
    /// Reads the file in `cluster`; `None` if there is none or it is not written yet.
    pub(super) fn read(cluster: &Path) -> Option<Self> {
        Self::parse(&fs::read_to_string(pid_file(cluster)).ok()?)
    }

    /// The first line is the process id, the eighth the state, padded with blanks.
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let pid = lines.next()?.trim().parse().ok()?;
        let ready = lines.nth(6).is_some_and(|state| state.trim() == "ready");
        Some(Self { pid, ready })
    }
}

fn pid_file(cluster: &Path) -> PathBuf {
    cluster.join("postmaster.pid")
}

/// Stops a server that still runs on `folder` although no instance holds it: the service was killed where the kernel
/// does not pass that on. Its file goes too: a process id that is now someone else's would keep Postgres from starting.
pub(super) fn stop_leftover(folder: &DataFolder) -> Result<(), EmbeddedError> {
    let cluster = folder.cluster();
    let Some(Postmaster { pid, .. }) = Postmaster::read(&cluster) else { return Ok(()) };
    for signal in [Signal::INT, Signal::QUIT] {
        if !serves(pid, &cluster) {
            break;
        }
        // An error means that it is gone by now, or stays: the loop finds out.
        let _ = Pid::from_raw(pid).map(|pid| kill_process(pid, signal));
        for _ in 0..STOP_POLLS {
            if !serves(pid, &cluster) {
                break;
            }
            sleep(POLL);
        }
    }
    if serves(pid, &cluster) {
        return Err(EmbeddedError::LeftoverStays { pid, data_dir: folder.path().to_owned() });
    }
    match fs::remove_file(pid_file(&cluster)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(EmbeddedError::io("remove", &pid_file(&cluster))(error))
        }
        _ => Ok(()),
    }
}

/// Process `pid` is a Postgres on `cluster`: a server works in its data folder. Process ids are used again, so without
/// this the signal could go to anyone.
#[cfg(target_os = "linux")]
fn serves(pid: i32, cluster: &Path) -> bool {
    let link = |name: &str| fs::read_link(format!("/proc/{pid}/{name}"));
    // After an upgrade of the package the program is "postgres (deleted)".
    let is_postgres = link("exe").is_ok_and(|program| {
        program
            .file_name()
            .is_some_and(|name| name.to_string_lossy().split(' ').next() == Some("postgres"))
    });
    is_postgres && link("cwd").is_ok_and(|folder| folder == cluster)
}

/// Process `pid` is a Postgres that was started by this module on `cluster`.
#[cfg(not(target_os = "linux"))]
fn serves(pid: i32, cluster: &Path) -> bool {
    let output =
        std::process::Command::new("ps").args(["-o", "command=", "-p", &pid.to_string()]).output();
    output.is_ok_and(|output| {
        let command = String::from_utf8_lossy(&output.stdout).into_owned();
        command.contains("postgres") && command.contains(&format!("-D {}", cluster.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_ready_when_the_eighth_line_says_so() {
        let first_seven = "4711\n/data/pg\n1700000000\n5432\n/tmp/s\n\n  1234 5\n";
        for (case, text, expected) in [
            ("ready", format!("{first_seven}ready   \n"), Some((4711, true))),
            ("starting", format!("{first_seven}starting\n"), Some((4711, false))),
            ("no state yet", first_seven.to_owned(), Some((4711, false))),
            ("only the process id", "4711\n".to_owned(), Some((4711, false))),
            ("nothing yet", String::new(), None),
            (
                "a single-user server, whose id is negative",
                "-4711\n".to_owned(),
                Some((-4711, false)),
            ),
        ] {
            let postmaster = Postmaster::parse(&text).map(|found| (found.pid, found.ready));
            assert_eq!(postmaster, expected, "{case}");
        }
    }

    #[test]
    fn a_process_that_is_no_postgres_on_the_folder_is_not_taken_for_one() {
        let own_folder = std::env::current_dir().unwrap();
        assert!(!serves(std::process::id().cast_signed(), &own_folder));
    }
}
