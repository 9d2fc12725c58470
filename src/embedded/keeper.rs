//! The thread that owns the server: starts it, starts it again when it ends unasked, and stops it.
//!
//! A thread of its own, because the parent-death signal is tied to the thread that starts the child, and a worker
//! thread of a runtime may end long before the service does.

use std::process::Child;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle, sleep};
use std::time::Duration;

use super::EmbeddedError;
use super::server::{Server, stop};

/// How often the keeper looks whether the server still runs.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The longest pause between two starts of a server that does not stay up.
const RESTART_PAUSE_MAX: Duration = Duration::from_secs(5);
/// How often the first start is tried when processes of a killed server are still ending.
const FIRST_STARTS_MAX: u32 = 50;

/// The handle on the thread.
#[derive(Debug)]
pub(super) struct Keeper {
    /// Nothing is ever sent: the thread stops the server when this is dropped.
    stop_on_drop: Sender<()>,
    thread: JoinHandle<Result<(), EmbeddedError>>,
}

impl Keeper {
    /// Starts the server on a new thread and returns once it is ready.
    pub(super) fn start(server: Server) -> Result<Self, EmbeddedError> {
        let (stop_on_drop, stop_asked) = channel();
        let (report, first_start) = channel();
        let thread = Builder::new()
            .name("postgres-keeper".to_owned())
            .spawn(move || match first_child(&server) {
                Ok(child) => {
                    // Nobody listens if the caller panicked; then `stop_asked` is closed too.
                    let _ = report.send(Ok(()));
                    keep(&server, child, &stop_asked)
                }
                Err(error) => {
                    let _ = report.send(Err(error));
                    Ok(())
                }
            })
            .map_err(|source| EmbeddedError::Thread { source })?;
        first_start.recv().map_err(|_| EmbeddedError::KeeperGone)??;
        Ok(Self { stop_on_drop, thread })
    }

    /// Stops the server and waits until it is gone.
    pub(super) fn stop(self) -> Result<(), EmbeddedError> {
        drop(self.stop_on_drop);
        self.thread.join().map_err(|_| EmbeddedError::KeeperGone)?
    }
}

/// The processes of a server that was killed may need a moment to notice; until then Postgres refuses to start.
fn first_child(server: &Server) -> Result<Child, EmbeddedError> {
    for _ in 1..FIRST_STARTS_MAX {
        match server.start() {
            Err(EmbeddedError::EndedEarly { log_tail, .. })
                if log_tail.contains("still in use") =>
            {
                sleep(LOOK_EVERY)
            }
            other => return other,
        }
    }
    server.start()
}

fn keep(server: &Server, mut child: Child, stop_asked: &Receiver<()>) -> Result<(), EmbeddedError> {
    loop {
        if !waits(stop_asked, LOOK_EVERY) {
            return stop(&mut child);
        }
        if let Ok(Some(status)) = child.try_wait() {
            tracing::warn!(postgres.status = %status, "The private Postgres ended with {status}; starting it again");
            match start_again(server, stop_asked) {
                Some(new) => child = new,
                None => return Ok(()),
            }
        }
    }
}

/// Tries until the server runs; `None` if the stop was asked for first.
fn start_again(server: &Server, stop_asked: &Receiver<()>) -> Option<Child> {
    let mut pause = LOOK_EVERY;
    loop {
        match server.start() {
            Ok(child) => {
                tracing::info!("The private Postgres takes connections again");
                return Some(child);
            }
            Err(error) => {
                tracing::error!(error = %error, "The private Postgres did not start again: {error}");
            }
        }
        if !waits(stop_asked, pause) {
            return None;
        }
        pause = RESTART_PAUSE_MAX.min(pause * 2);
    }
}

/// Waits for `pause`; `false` at once when the stop is asked for.
fn waits(stop_asked: &Receiver<()>, pause: Duration) -> bool {
    stop_asked.recv_timeout(pause) == Err(RecvTimeoutError::Timeout)
}
