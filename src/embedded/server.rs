//! Runs the server programs: makes a cluster, starts the server on it, waits until it is ready, stops it.

use std::fs::{self, DirBuilder};
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::data_folder::Log;
use super::postmaster::Postmaster;
use super::{DataFolder, EmbeddedError, Owner, Programs};

/// The pause between two looks at something that is waited for.
pub(super) const POLL: Duration = Duration::from_millis(5);
/// How many looks each of the two ways to stop gets: 10 seconds.
pub(super) const STOP_POLLS: u32 = 2_000;
/// How many looks a start gets: 30 seconds.
const READY_POLLS: u32 = 6_000;

/// The superuser of the cluster, the only one; the socket folder lets in nobody but the owner, hence no password.
const SUPERUSER: &str = "postgres";
/// The database of the service.
const DATABASE: &str = "tillmark";
/// Part of the socket's name. Set, because `PGPORT` would otherwise decide.
const PORT: &str = "5432";

/// On the command line, so that they win over the data folder's own files.
const SERVER_SETTINGS: [&str; 13] = [
    "listen_addresses=",
    "port=5432",
    "unix_socket_permissions=0700",
    "fsync=on",
    "synchronous_commit=on",
    "full_page_writes=on",
    "max_connections=100",
    // Room for the pages of the log and of the ids that are being written; what is not used stays free.
    "shared_buffers=512MB",
    // Half a second of the fastest ingest: appends do not wait for each other's log pages to be written.
    "wal_buffers=32MB",
    "timezone=UTC",
    "log_timezone=UTC",
    "logging_collector=off",
    "cluster_name=tillmark",
];

/// Everything that a start, and a start again, needs to know.
#[derive(Debug)]
pub(super) struct Server {
    program: PathBuf,
    cluster: PathBuf,
    socket_folder: PathBuf,
    log: Log,
    owner: Owner,
}

impl Server {
    pub(super) fn new(
        programs: &Programs,
        folder: &DataFolder,
        socket: &SocketFolder,
        owner: &Owner,
    ) -> Self {
        Self {
            program: programs.path("postgres"),
            cluster: folder.cluster(),
            socket_folder: socket.path.clone(),
            log: folder.log(),
            owner: owner.clone(),
        }
    }

    /// Starts the server and waits until it takes connections. The server ends with the calling thread.
    pub(super) fn start(&self) -> Result<Child, EmbeddedError> {
        let log_start = self.log.bytes();
        let mut command = command(&self.program, &self.cluster, &self.owner, &self.log)?;
        command.arg("-D").arg(&self.cluster).arg("-k").arg(&self.socket_folder);
        for setting in SERVER_SETTINGS {
            command.args(["-c", setting]);
        }
        let mut child = command.spawn().map_err(EmbeddedError::io("run", &self.program))?;
        match self.wait_until_ready(&mut child, log_start) {
            Ok(()) => Ok(child),
            Err(error) => {
                // The first error is the one to tell.
                let _ = stop(&mut child);
                Err(error)
            }
        }
    }

    fn wait_until_ready(&self, child: &mut Child, log_start: u64) -> Result<(), EmbeddedError> {
        let pid = child.id().cast_signed();
        for _ in 0..READY_POLLS {
            if let Some(status) =
                child.try_wait().map_err(EmbeddedError::io("wait for", &self.program))?
            {
                let log = self.log.path().to_owned();
                return Err(EmbeddedError::EndedEarly {
                    status,
                    log,
                    log_tail: self.log.tail_from(log_start),
                });
            }
            if Postmaster::read(&self.cluster) == Some(Postmaster { pid, ready: true }) {
                return Ok(());
            }
            sleep(POLL);
        }
        Err(EmbeddedError::NotReady {
            seconds: seconds(READY_POLLS),
            log: self.log.path().to_owned(),
            log_tail: self.log.tail_from(log_start),
        })
    }
}

/// Stops the server: first without new connections and with a checkpoint, then, when that takes too long, at once.
pub(super) fn stop(child: &mut Child) -> Result<(), EmbeddedError> {
    for signal in [Signal::INT, Signal::QUIT] {
        for n_polls in 0..STOP_POLLS {
            // Not waited for yet, so the process id is still its own.
            if matches!(child.try_wait(), Ok(Some(_))) {
                return Ok(());
            }
            if n_polls == 0 {
                let _ =
                    Pid::from_raw(child.id().cast_signed()).map(|pid| kill_process(pid, signal));
            }
            sleep(POLL);
        }
    }
    // Its own children notice and end too.
    let _ = child.kill();
    let _ = child.wait();
    Err(EmbeddedError::StopTimedOut { seconds: seconds(STOP_POLLS) * 2 })
}

fn seconds(polls: u32) -> u64 {
    (POLL * polls).as_secs()
}

/// Makes a cluster with the service's database, under another name until it is whole.
pub(super) fn make_cluster(
    programs: &Programs,
    folder: &DataFolder,
    owner: &Owner,
) -> Result<(), EmbeddedError> {
    let cluster = folder.unfinished_cluster();
    match fs::remove_dir_all(&cluster) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(EmbeddedError::io("remove the unfinished", &cluster)(error));
        }
        _ => {}
    }
    let flags =
        ["-A", "trust", "-E", "UTF8", "--no-locale", "--data-checksums", "-U", SUPERUSER, "-D"];
    run("initdb", &flags, "", programs, folder, owner)?;
    let single_user = ["--single", "-c", "exit_on_error=on", SUPERUSER, "-D"];
    run(
        "postgres",
        &single_user,
        &format!("create database {DATABASE}\n"),
        programs,
        folder,
        owner,
    )?;
    folder.finish_cluster()
}

/// Runs one program on the unfinished cluster, whose path follows `arguments`, to its end.
fn run(
    program: &'static str,
    arguments: &[&str],
    input: &str,
    programs: &Programs,
    folder: &DataFolder,
    owner: &Owner,
) -> Result<(), EmbeddedError> {
    let log = folder.log();
    let log_start = log.bytes();
    let path = programs.path(program);
    let mut command = command(&path, folder.path(), owner, &log)?;
    command.args(arguments).arg(folder.unfinished_cluster()).stdin(Stdio::piped());
    let mut child = command.spawn().map_err(EmbeddedError::io("run", &path))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ended before it read its input says why in its status.
        let _ = stdin.write_all(input.as_bytes());
    }
    let status = child.wait().map_err(EmbeddedError::io("wait for", &path))?;
    if status.success() {
        return Ok(());
    }
    let data_dir = folder.path().to_owned();
    Err(EmbeddedError::MakeCluster {
        data_dir,
        program,
        status,
        log_tail: log.tail_from(log_start),
    })
}

/// A server program as it is always run: as its user, out of reach of the terminal's Ctrl-C, with no environment that
/// could change it, and not longer than the thread that starts it.
fn command(
    program: &Path,
    work_in: &Path,
    owner: &Owner,
    log: &Log,
) -> Result<Command, EmbeddedError> {
    let output = log.open()?;
    let errors = output.try_clone().map_err(EmbeddedError::io("open", log.path()))?;
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("LC_ALL", "C")
        .current_dir(work_in)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors);
    owner.run(&mut command);
    #[cfg(target_os = "linux")]
    end_with_parent(&mut command);
    Ok(command)
}

/// Has the kernel send the child a SIGINT when the thread that starts it dies, however it dies.
///
/// std runs the closure after it has changed the user, as it must be: a change of user clears the signal.
#[cfg(target_os = "linux")]
#[expect(
    unsafe_code,
    reason = "only between fork and exec can the child ask for its parent-death signal"
)]
fn end_with_parent(command: &mut Command) {
    let parent = rustix::process::getpid();
    let ask_for_signal = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::INT))?;
        // A parent that died before that sends no signal any more.
        if rustix::process::getppid() == Some(parent) {
            Ok(())
        } else {
            Err(ErrorKind::BrokenPipe.into())
        }
    };
    // SAFETY: the closure only makes two system calls; it does not allocate, lock, or touch memory shared with others.
    unsafe { command.pre_exec(ask_for_signal) };
}

/// The folder of the server's socket. Under `/tmp`, because a socket's path has at most 107 bytes; nobody but the
/// owner may enter it. Removed on drop.
#[derive(Debug)]
pub(super) struct SocketFolder {
    path: PathBuf,
}

impl SocketFolder {
    /// Makes the folder of this data folder, anew if one was left over.
    pub(super) fn make(folder: &DataFolder, owner: &Owner) -> Result<Self, EmbeddedError> {
        let name = format!("/tmp/tillmark-{:016x}", fnv_1a(folder.path().as_os_str().as_bytes()));
        for suffix in ["", "-2", "-3", "-4"] {
            let path = PathBuf::from(format!("{name}{suffix}"));
            let is_ours = |found: fs::Metadata| found.is_dir() && found.uid() == owner.uid();
            if path.symlink_metadata().is_ok_and(is_ours) {
                fs::remove_dir_all(&path)
                    .map_err(EmbeddedError::io("remove the leftover", &path))?;
            }
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    owner.give(&path)?;
                    return Ok(Self { path });
                }
                // Someone else may have taken the name: everybody can write here.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(EmbeddedError::io("make the folder", &path)(error)),
            }
        }
        Err(EmbeddedError::SocketFolderTaken { folder: PathBuf::from(name) })
    }
}

impl Drop for SocketFolder {
    fn drop(&mut self) {
        // What stays is taken over at the next start.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The address of the service's database, as libpq and sqlx both read it. The port is named, because `PGPORT` would
/// otherwise decide.
pub(super) fn url(socket: &SocketFolder) -> String {
    format!("postgres:///{DATABASE}?host={}&port={PORT}&user={SUPERUSER}", socket.path.display())
}

/// FNV-1a: a short name for a path, the same in every build.
fn fnv_1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv_1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv_1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn the_path_of_the_socket_fits_whatever_the_data_folder_is_called() {
        let longest = format!("/tmp/tillmark-{:016x}-4/.s.PGSQL.{PORT}.lock", u64::MAX);
        assert!(longest.len() < 100, "{longest}");
    }
}
