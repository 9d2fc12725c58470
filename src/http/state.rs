//! What every handler can reach.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::database::Database;
use crate::domain::{Currency, Span};
use crate::intake::{BodyLimits, EventDefaults, Intake};
use crate::pipeline::Pipeline;

/// Bounds and defaults of the API.
#[derive(Debug, Clone, Copy)]
pub struct HttpSettings {
    /// The most bytes of a request's body.
    pub body_bytes_max: usize,
    /// The most events of one request.
    pub events_max: usize,
    /// The most bytes of one event's JSON.
    pub event_bytes_max: usize,
    /// How long a request's header may take.
    pub header_timeout: Span,
    /// How long a request's body may take.
    pub body_timeout: Span,
    /// How long an answer may take.
    pub request_timeout: Span,
    /// Currency of events that name none.
    pub currency: Currency,
}

impl HttpSettings {
    /// The bounds that the intake holds bodies against.
    pub(super) const fn body_limits(&self) -> BodyLimits {
        BodyLimits { events_max: self.events_max, event_bytes_max: self.event_bytes_max }
    }

    /// What is filled in where an event says nothing.
    pub(super) const fn event_defaults(&self) -> EventDefaults {
        EventDefaults { currency: self.currency }
    }
}

/// The parts of the service that handlers use. Cheap to clone.
#[derive(Debug, Clone)]
pub struct AppState {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    database: Database,
    intake: Intake,
    pipeline: Pipeline,
    settings: HttpSettings,
    ready: AtomicBool,
}

impl AppState {
    /// A state that is not ready yet.
    pub fn new(
        database: Database,
        intake: Intake,
        pipeline: Pipeline,
        settings: HttpSettings,
    ) -> Self {
        let ready = AtomicBool::new(false);
        Self { shared: Arc::new(Shared { database, intake, pipeline, settings, ready }) }
    }

    /// Says whether requests are welcome: after the start, and until the end is asked for.
    pub fn set_ready(&self, ready: bool) {
        self.shared.ready.store(ready, Ordering::Relaxed);
    }

    pub(super) fn is_ready(&self) -> bool {
        self.shared.ready.load(Ordering::Relaxed)
    }

    pub(super) fn database(&self) -> &Database {
        &self.shared.database
    }

    pub(super) fn intake(&self) -> &Intake {
        &self.shared.intake
    }

    pub(super) fn pipeline(&self) -> &Pipeline {
        &self.shared.pipeline
    }

    pub(super) fn settings(&self) -> &HttpSettings {
        &self.shared.settings
    }
}
