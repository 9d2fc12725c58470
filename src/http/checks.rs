//! Checks of the queries in the background: what does not add up in the last day, and how large their
//! state is. Both read too much for every look at the metrics, so what is told is the last check's, with
//! its time. Nobody who asks for no metrics pays for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use tracing::warn;

use super::{App, Phase};
use crate::clock::Stopwatch;
use crate::database::{Database, DatabaseError, RecountRange};
use crate::domain::{QueryName, Span, WindowSpec};
use crate::finance::reconcile::{self, LineFilter};

/// A turn begins no further check after this time; the next turn goes on with the others.
const TURN_MAX: Duration = Duration::from_secs(1);

/// No check is made again before this time.
const RENEW_AFTER: Duration = Duration::from_secs(5);

/// What the last check of a query found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Check {
    /// Windows whose difference from a recount is not itemised, among those of the last day.
    pub(super) unexplained: usize,
    /// Bytes of its stored state.
    pub(super) state_bytes: i64,
    /// When, by the database's clock.
    pub(super) checked_at: DateTime<Utc>,
    since: Stopwatch,
}

/// The last check of each query. Cheap to clone; all clones say the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Checks {
    last: Arc<Mutex<BTreeMap<QueryName, Check>>>,
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl Checks {
    /// The last check of each query that was checked.
    pub(super) fn last(&self) -> BTreeMap<QueryName, Check> {
        self.lock().clone()
    }

    /// Begins to check those of `names` anew whose last check is no longer new, the oldest first; unless that
    /// is going on, or as many reports are made as may be. What was found of other queries is forgotten.
    pub(super) fn renew(&self, app: &App, names: BTreeSet<QueryName>) {
        let Ok(turn) = Arc::clone(&self.turn).try_lock_owned() else { return };
        let Ok(place) = Arc::clone(&app.reports).try_acquire_owned() else { return };
        let (checks, database, readiness) =
            (self.clone(), app.database.clone(), app.readiness.clone());
        tokio::spawn(async move {
            let (_turn, _place, watch) = (turn, place, Stopwatch::start());
            for name in checks.stalest_first(names) {
                if watch.elapsed() > TURN_MAX || readiness.phase() == Phase::Stopping {
                    break;
                }
                match check(&database, &name).await {
                    Ok(Some(found)) => drop(checks.lock().insert(name, found)),
                    // It has read nothing yet, or it is gone.
                    Ok(None) | Err(DatabaseError::NoSuchQuery(_)) => {}
                    Err(error) => {
                        warn!(query.name = %name, error = %error.chain(), "A check failed");
                        break;
                    }
                }
            }
        });
    }

    fn stalest_first(&self, names: BTreeSet<QueryName>) -> Vec<QueryName> {
        let mut last = self.lock();
        last.retain(|name, _| names.contains(name));
        let age = |name: &QueryName| last.get(name).map(|check| check.since.elapsed());
        let is_due = |name: &QueryName| age(name).is_none_or(|age| age >= RENEW_AFTER);
        let mut names: Vec<QueryName> = names.into_iter().filter(is_due).collect();
        names.sort_by_cached_key(|name| last.get(name).map(|check| check.checked_at));
        names
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<QueryName, Check>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reconciles the last day of a query, or its last window where that is longer.
async fn check(database: &Database, name: &QueryName) -> Result<Option<Check>, DatabaseError> {
    let query = database.query(name).await?;
    let Some(newest) = query.newest_event_time else { return Ok(None) };
    let window = match query.spec.window {
        WindowSpec::Tumbling { size, .. } | WindowSpec::Sliding { size, .. } => size,
        WindowSpec::Session { gap } => gap,
    };
    let range = RecountRange { from: Some(newest.minus(window.max(Span::DAY))), to: None };
    let snapshot = database.reconciliation_snapshot(name, range, None).await?;
    let unexplained = reconcile::compare(&snapshot, &LineFilter::default()).unexplained;
    let state_bytes = database.query_state_bytes(name).await?;
    let since = Stopwatch::start();
    Ok(Some(Check { unexplained, state_bytes, checked_at: snapshot.as_of, since }))
}
