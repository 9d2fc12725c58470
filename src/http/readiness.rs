//! Whether the service takes requests.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;
use tracing::{info, warn};

use super::ailments::Ailment;

/// Where the service stands in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It is coming up.
    Starting,
    /// It takes requests.
    Ready,
    /// It finishes what it has begun and takes nothing new.
    Stopping,
}

/// The phase, for everybody who asks. Cheap to clone; all clones say the same.
#[derive(Debug, Clone)]
pub struct Readiness {
    phase: Arc<watch::Sender<Phase>>,
    /// What the log knows of already.
    ailments: Arc<Mutex<BTreeSet<Ailment>>>,
}

impl Readiness {
    /// A service that is coming up.
    pub fn starting() -> Self {
        Self { phase: Arc::new(watch::Sender::new(Phase::Starting)), ailments: Arc::default() }
    }

    /// The phase now.
    pub fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Comes back when the service stops.
    pub async fn stopping(&self) {
        // All senders gone means that as well.
        let _ = self.phase.subscribe().wait_for(|phase| *phase == Phase::Stopping).await;
    }

    /// Goes on to `phase`.
    pub fn enter(&self, phase: Phase) {
        self.phase.send_replace(phase);
    }

    /// Says in the log what ails the service now and did not before, and what does no more.
    pub(super) fn note(&self, now: &BTreeSet<Ailment>) {
        let mut known = self.ailments.lock().unwrap_or_else(PoisonError::into_inner);
        for ailment in now.difference(&known) {
            let facts = ailment.facts();
            warn!(health.code = facts.code, "DEGRADED: {}", facts.detail);
        }
        for ailment in known.difference(now) {
            info!(health.code = ailment.facts().code, "No longer degraded");
        }
        known.clone_from(now);
    }
}
