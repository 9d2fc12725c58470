//! Whether the service is alive, and whether it is ready.

use std::collections::BTreeSet;

use axum::extract::State;
use serde::Serialize;
use tracing::warn;
use utoipa::ToSchema;

use super::ailments::Ailment;
use super::json::Json;
use super::params::NoParams;
use super::problem::Problem;
use super::problem_docs::{ListProblems, ReadyProblems};
use super::problem_kind::ProblemKind;
use super::{App, Phase};
use crate::domain::Fault;

/// Is it alive?
///
/// Answers as long as the service can answer anything; it says nothing of the database.
#[utoipa::path(get, path = "/livez", tag = "Service",
    responses(
        (status = 200, description = "It is", body = Health, example = json!({ "status": "alive" })),
        ListProblems))]
pub(super) async fn livez(_: NoParams) -> Json<Health> {
    Json(Health { status: "alive" })
}

/// Is it ready?
///
/// Whether the service takes requests, and its database answers, takes writes, has room and has the tables
/// of this version. `degraded`: it does its work, but what it promises could be broken by a crash, or it
/// will not do it for long.
#[utoipa::path(get, path = "/readyz", tag = "Service",
    responses(
        (status = 200, description = "It is", body = Ready, examples(
            ("ready" = (value = json!({ "status": "ready", "degraded": [] }))),
            ("degraded" = (value = json!({ "status": "degraded", "degraded": [{
                "code": "fsync_off",
                "detail": "`fsync` is off, so a crash could lose answered events; turn it on",
            }] }))))),
        ReadyProblems))]
pub(super) async fn readyz(State(app): State<App>, _: NoParams) -> Result<Json<Ready>, Problem> {
    match app.readiness.phase() {
        Phase::Starting => return Err(Problem::of(ProblemKind::NotReady)),
        Phase::Stopping => return Err(Problem::of(ProblemKind::Stopping)),
        Phase::Ready => {}
    }
    let ailments = app.ailments().await.map_err(|error| {
        // Whatever kept the database from answering: nothing can be done without it.
        warn!(error = %error.chain(), "The database does not say how it is");
        Problem::of(ProblemKind::DatabaseAway)
    });
    ready(&ailments?).map(Json)
}

fn ready(ailments: &BTreeSet<Ailment>) -> Result<Ready, Problem> {
    let facts: Vec<_> = ailments.iter().map(|ailment| ailment.facts()).collect();
    let hindrances = facts.iter().filter(|facts| !facts.is_ready);
    let faults: Vec<Fault> =
        hindrances.map(|facts| Fault::new("", facts.code, facts.detail)).collect();
    if !faults.is_empty() {
        return Err(Problem::with_faults(ProblemKind::NotReady, faults));
    }
    let status = if facts.is_empty() { "ready" } else { "degraded" };
    let told = facts.iter().map(|facts| Degradation { code: facts.code, detail: facts.detail });
    Ok(Ready { status, degraded: told.collect() })
}

/// Whether the service lives.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Health {
    /// `alive`.
    status: &'static str,
}

/// How the service is.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Ready {
    /// `ready`, or `degraded` when something should be looked after.
    status: &'static str,
    /// What should be.
    degraded: Vec<Degradation>,
}

/// Something that should be looked after.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Degradation {
    /// A stable word for programs: `fsync_off`, `full_page_writes_off`, `synchronous_commit_off` or
    /// `disk_nearly_full`.
    code: &'static str,
    /// What is wrong and what to do.
    detail: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_keeps_it_from_its_work_makes_it_unready_and_the_rest_is_told() {
        for ailment in Ailment::all() {
            let facts = ailment.facts();
            match ready(&BTreeSet::from([ailment])) {
                Ok(told) => {
                    assert!(facts.is_ready, "{ailment:?}");
                    assert_eq!((told.status, told.degraded[0].code), ("degraded", facts.code));
                }
                Err(problem) => {
                    assert!(!facts.is_ready, "{ailment:?}");
                    assert_eq!(problem.errors()[0].code, facts.code);
                }
            }
        }
        assert_eq!(ready(&BTreeSet::new()).expect("ready").status, "ready");
        let all = ready(&Ailment::all().collect()).expect_err("not ready");
        let codes: Vec<_> = all.errors().iter().map(|fault| fault.code).collect();
        assert_eq!(codes, ["read_only", "not_migrated", "disk_full"]);
    }
}
