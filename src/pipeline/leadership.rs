//! Keeps the lease: takes it when nobody has it, renews it, and ends the term when it is lost.
//!
//! Whether a lease has run out is Postgres's to say, and what is committed under one that is over is
//! refused there. What is timed here only decides when to stop trying.

use std::sync::Arc;
use std::time::Duration;

use tracing::{debug, info, warn};

use super::handle::Shared;
use super::term::{LOOK_EVERY, Term};
use crate::clock::Stopwatch;
use crate::database::{Database, DatabaseError, LeaseTaken};

/// How long a call about the lease may take, whatever its length.
const CALL_MAX: Duration = Duration::from_secs(5);

/// The one task that keeps the lease of this process.
pub(super) struct Keeper {
    shared: Arc<Shared>,
    /// Replaced after every failure, so that no call waits for a connection that is cut off.
    database: Database,
    /// Since the lease was taken or renewed.
    held: Stopwatch,
    /// Whether the last renewal failed.
    has_failed: bool,
    /// Whether the database has not answered since the term began, and new connections were made.
    was_cut_off: bool,
}

impl Keeper {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let database = shared.database.clone();
        Self { shared, database, held: Stopwatch::start(), has_failed: false, was_cut_off: false }
    }

    /// Takes and keeps the lease until the service stops.
    pub(super) async fn keep(mut self) {
        let stop = self.shared.stop.clone();
        let keep = async {
            while !self.shared.stop.is_cancelled() {
                let term = self.shared.term.borrow().clone();
                match term {
                    Some(term) => self.renew_in_time(&term).await,
                    None => {
                        tokio::time::sleep(LOOK_EVERY).await;
                        self.take().await;
                    }
                }
            }
        };
        stop.run_until_cancelled(keep).await;
    }

    /// Takes the lease if it is free, and begins to run the queries.
    pub(super) async fn take(&mut self) {
        let (held, length) = (Stopwatch::start(), self.shared.lease);
        let database = self.database.clone();
        let taken = match self.in_time(CALL_MAX, database.lease_acquire(length)).await {
            Ok(Some(taken)) => taken,
            Ok(None) => return,
            // Readiness says that the database is away.
            Err(error) => return debug!(error, "Could not ask for the lease"),
        };
        self.lead(taken, held, database);
    }

    /// Begins to run the queries.
    fn lead(&mut self, taken: LeaseTaken, held: Stopwatch, database: Database) {
        (self.held, self.has_failed, self.was_cut_off) = (held, false, false);
        info!(
            lease.epoch = taken.epoch.get(),
            sessions.n_ended = taken.sessions_ended,
            "This replica runs the queries now",
        );
        fault_point!("recovery.lease_taken");
        self.shared.begin_term(taken.epoch, database);
    }

    /// Waits until the lease is to be renewed, and renews it; ends the term where that cannot be.
    async fn renew_in_time(&mut self, term: &Term) {
        let length = self.shared.lease.to_duration();
        let pause = if self.has_failed { LOOK_EVERY } else { length / 4 };
        if term.ended.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
            // A runner was told that it commits under an epoch that is over, or the service stops.
            if !self.shared.stop.is_cancelled() {
                self.step_down(term, "another replica has taken it");
            }
            return;
        }
        let left = length.saturating_sub(self.held.elapsed()).max(LOOK_EVERY);
        let wait_max = CALL_MAX.min(length / 2).min(left);
        let held = Stopwatch::start();
        let database = self.database.clone();
        match self.in_time(wait_max, database.lease_renew(term.epoch, self.shared.lease)).await {
            Ok(true) if self.was_cut_off => self.begin_anew(term, database).await,
            Ok(true) => (self.held, self.has_failed) = (held, false),
            Ok(false) => self.step_down(term, "another replica has taken it"),
            Err(error) if self.held.elapsed() >= length => self.step_down(term, &error),
            Err(error) => {
                if !self.has_failed {
                    warn!(error, "Could not renew the lease; trying again");
                }
                self.has_failed = true;
            }
        }
    }

    /// Begins another term: what the runners wait for may be connections on which nobody will ever answer.
    async fn begin_anew(&mut self, term: &Term, database: Database) {
        warn!("The database did not answer for a while; the queries begin anew on new connections");
        self.shared.end_term(term);
        let (held, length) = (Stopwatch::start(), self.shared.lease);
        match self.in_time(CALL_MAX, database.lease_retake(term.epoch, length)).await {
            Ok(Some(taken)) => self.lead(taken, held, database),
            Ok(None) => {}
            Err(error) => debug!(error, "Could not take the lease again"),
        }
    }

    /// The answer to a call, or why there is none.
    async fn in_time<T>(
        &mut self,
        wait_max: Duration,
        call: impl Future<Output = Result<T, DatabaseError>>,
    ) -> Result<T, String> {
        let error = match tokio::time::timeout(wait_max, call).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => {
                self.was_cut_off |= !error.is_of_the_server();
                error.chain()
            }
            Err(_) => {
                self.was_cut_off = true;
                format!("the database did not answer within {wait_max:?}")
            }
        };
        self.database = self.database.reconnected();
        Err(error)
    }

    fn step_down(&self, term: &Term, reason: &str) {
        warn!(
            lease.epoch = term.epoch.get(),
            reason, "This replica has lost the lease and runs no queries any more",
        );
        self.shared.end_term(term);
    }
}
