//! The HTTP API: parses, calls, answers. The only folder that knows axum and utoipa.
//!
//! A request passes, from the outside in: its connection (`serve`, `connections`), its id and the writing of
//! problems (`request_id`), the log line and its trace (`access_log`), what browsers are told (`browsers`, where
//! it is set), a deadline, past which its work goes on without it (`detach`), a look at its key (`authorize`), then
//! the handler of its address, one file per resource.
//!
//! Invariants:
//! * Every 4xx and 5xx is `application/problem+json`, whoever made it, with the request's id.
//! * A client that goes away cancels nothing: the work goes on in a task of its own.
//! * What an address asks of a key stands in one table (`scopes`); what is not in it is for `admin`.
//! * No query parameter and no field of a body is ignored.
//! * Money is written by [`Money`](crate::domain::Money), never through a float.
//!
//! Absent on purpose: SQL, event-time rules, transactions.

mod access_log;
mod ailments;
mod audit;
mod authorize;
mod body;
mod booking_body;
mod browsers;
mod checks;
mod coding;
mod connections;
mod correction_examples;
mod corrections;
mod counted_body;
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
mod exposition;
mod figure_columns;
mod figures;
mod finance_examples;
mod folds;
mod format;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod health;
mod heartbeats;
mod json;
mod kept;
mod key_body;
mod key_examples;
mod keys;
mod lateness;
mod lateness_body;
mod local;
mod machine;
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
mod query_metrics;
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
mod stream;
mod stream_changes;
#[cfg(test)]
mod tests;
mod trace;
mod traffic;
mod validators;
mod window_answer;
mod window_table;
mod windows;

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRef;
use checks::Checks;
use connections::Connections;
use kept::Kept;
use problem::Problem;
use problem_kind::ProblemKind;
use stream_changes::{Changes, ChangesKey};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio_util::task::TaskTracker;
use traffic::Traffic;
use validators::Source;
use window_answer::RenderedPage;

pub use local::LocalClient;
pub use machine::{DataDisk, connections_within_limits};
pub use readiness::{Phase, Readiness};
pub use report_text::{Depth, ReportText};
pub use router::{openapi, openapi_json, router};
pub use serve::serve;
pub use settings::HttpSettings;

use crate::access::Keyring;
use crate::database::Database;
use crate::domain::Origin;
use crate::intake::Intake;
use crate::pipeline::Pipeline;
use crate::reading::{Followers, Standings};

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
    /// Pages of other origins that may ask.
    pub origins: Vec<Origin>,
    /// Where the data is, if it is on this machine.
    pub data_disk: DataDisk,
    /// Whether the service takes requests; app and [`serve`] say so.
    pub readiness: Readiness,
    /// Requests at work, whether or not their client still waits.
    pub work: TaskTracker,
    connections: Connections,
    traffic: Traffic,
    checks: Checks,
    reports: Arc<Semaphore>,
    standings: Standings,
    followers: Followers,
    pages: Kept<Source, RenderedPage>,
    changes: Kept<ChangesKey, Changes>,
    streams: Arc<Semaphore>,
}

/// The most bytes of pages that are kept while they are asked for.
const PAGES_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// The most bytes of changes that are kept for all who follow the same query.
const CHANGES_BYTES_MAX: u64 = 4 * 1024 * 1024;

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
        (origins, data_disk): (Vec<Origin>, DataDisk),
    ) -> Self {
        let (readiness, work) = (Readiness::starting(), TaskTracker::new());
        let (traffic, checks) = (Traffic::default(), Checks::default());
        let reports = Arc::new(Semaphore::new(settings.reports_max));
        let standings = Standings::new(database.clone());
        let followers = Followers::new(standings.clone());
        Self(Arc::new(Parts {
            database,
            intake,
            pipeline,
            keyring,
            settings,
            origins,
            data_disk,
            readiness,
            work,
            connections: Connections::new(settings.connections_max),
            traffic,
            checks,
            reports,
            standings,
            followers,
            pages: Kept::new(PAGES_BYTES_MAX),
            changes: Kept::new(CHANGES_BYTES_MAX),
            streams: Arc::new(Semaphore::new(settings.streams_max)),
        }))
    }

    /// A place among the reports made at a time, to be held while one is made. Nobody waits for one:
    /// a queue of reports would outlast their deadlines.
    fn report_place(&self) -> Result<SemaphorePermit<'_>, Problem> {
        self.reports.try_acquire().map_err(|_| Problem::of(ProblemKind::Busy))
    }

    /// A place among the streams at a time, to be held as long as one lasts.
    fn stream_place(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let place = Arc::clone(&self.streams).try_acquire_owned();
        place.map_err(|_| Problem::of(ProblemKind::Busy))
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
