//! The HTTP API: parses, calls, answers. The only folder that knows axum and utoipa.
//!
//! A request passes, from the outside in: its id and the writing of problems
//! (`request_id`), the log line (`access_log`), a task of its own with a deadline (`detach`) that first
//! looks at its key (`authorize`), then the handler of its address, one file per resource.
//!
//! Invariants:
//! * Every 4xx and 5xx is `application/problem+json`, whoever made it, with the request's id.
//! * A client that goes away cancels nothing: the work goes on in its own task.
//! * What an address asks of a key stands in one table (`scopes`); what is not in it is for `admin`.
//! * No query parameter and no field of a body is ignored.
//! * Money is written by [`Money`](crate::domain::Money), never through a float.
//!
//! Absent on purpose: SQL, event-time rules, transactions.

mod access_log;
mod audit;
mod authorize;
mod body;
mod booking_body;
mod correction_examples;
mod corrections;
mod decompression;
mod delay_advice;
mod delay_advice_body;
mod detach;
mod dropped_events;
mod dropped_table;
mod event_answer;
mod event_body;
mod event_examples;
mod events;
mod examples;
mod figures;
mod finance_examples;
mod folds;
mod format;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod heartbeats;
mod json;
mod key_body;
mod key_examples;
mod keys;
mod lateness;
mod lateness_body;
mod local;
mod media_type;
mod metrics;
mod paging;
mod params;
mod posted_body;
mod problem;
mod problem_docs;
mod problem_kind;
mod progress;
mod progress_body;
mod progress_table;
mod quarantine;
mod queries;
mod query_body;
mod rate_limit;
mod readiness;
mod receipt_words;
mod receipts;
mod reconciliation;
mod reconciliation_body;
mod reconciliation_table;
mod report_text;
mod request_id;
mod router;
mod row_examples;
mod row_stream;
mod scopes;
mod secured;
mod serve;
mod service;
mod settings;
mod stores;
#[cfg(test)]
mod tests;
mod traffic;
mod window_answer;
mod window_table;
mod windows;

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRef;
use problem::Problem;
use problem_kind::ProblemKind;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::task::TaskTracker;
use traffic::Traffic;

pub use local::LocalClient;
pub use readiness::{Phase, Readiness};
pub use report_text::{Depth, ReportText};
pub use router::{openapi, openapi_json, router};
pub use serve::serve;
pub use settings::HttpSettings;

use crate::access::Keyring;
use crate::database::Database;
use crate::intake::Intake;
use crate::pipeline::Pipeline;

/// What the handlers work with. Cheap to clone: every request does so several times.
#[derive(Debug, Clone)]
pub struct App(Arc<Parts>);

/// The parts of an [`App`].
#[derive(Debug)]
pub struct Parts {
    /// For everything that is read.
    pub database: Database,
    /// For everything that is stored.
    pub intake: Intake,
    /// For everything that runs.
    pub pipeline: Pipeline,
    /// Who may come in.
    pub keyring: Keyring,
    /// Limits.
    pub settings: HttpSettings,
    /// Whether the service takes requests; app and [`serve`] say so.
    pub readiness: Readiness,
    /// Requests at work, whether or not their client still waits.
    pub work: TaskTracker,
    traffic: Traffic,
    reports: Semaphore,
}

impl Deref for App {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl FromRef<App> for HttpSettings {
    fn from_ref(app: &App) -> Self {
        app.settings
    }
}

impl App {
    /// A service that is coming up.
    pub fn new(
        database: Database,
        intake: Intake,
        pipeline: Pipeline,
        keyring: Keyring,
        settings: HttpSettings,
    ) -> Self {
        let (readiness, work) = (Readiness::starting(), TaskTracker::new());
        let (traffic, reports) = (Traffic::default(), Semaphore::new(settings.reports_max));
        Self(Arc::new(Parts {
            database,
            intake,
            pipeline,
            keyring,
            settings,
            readiness,
            work,
            traffic,
            reports,
        }))
    }

    /// A place among the reports made at a time, to be held while one is made. Nobody waits for one:
    /// a queue of reports would outlast their deadlines.
    fn report_place(&self) -> Result<SemaphorePermit<'_>, Problem> {
        self.reports.try_acquire().map_err(|_| Problem::of(ProblemKind::Busy))
    }

    /// Makes the runners match the queries after a change.
    ///
    /// A failure is only logged: the change is stored, and the runners are matched again soon.
    async fn sync_runners(&self) {
        if let Err(error) = self.pipeline.sync().await {
            tracing::warn!(error = %error.chain(), "The runners will see the change later");
        }
    }
}
