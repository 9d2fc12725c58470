//! Whether the service takes requests.

use std::sync::Arc;

use tokio::sync::watch;

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
pub struct Readiness(Arc<watch::Sender<Phase>>);

impl Readiness {
    /// A service that is coming up.
    pub fn starting() -> Self {
        Self(Arc::new(watch::Sender::new(Phase::Starting)))
    }

    /// The phase now.
    pub fn phase(&self) -> Phase {
        *self.0.borrow()
    }

    /// Comes back when the service stops.
    pub async fn stopping(&self) {
        // All senders gone means that as well.
        let _ = self.0.subscribe().wait_for(|phase| *phase == Phase::Stopping).await;
    }

    /// Goes on to `phase`.
    pub fn enter(&self, phase: Phase) {
        self.0.send_replace(phase);
    }
}
