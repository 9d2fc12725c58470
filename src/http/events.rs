//! Posting events.

use axum::extract::State;
use axum::response::Response;
use utoipa::IntoParams;

use super::App;
use super::body::JsonBody;
use super::event_answer::{IngestAnswer, Ingested};
use super::event_body::EventsBody;
use super::params::Params;
use super::problem::Problem;
use super::problem_docs::IngestProblems;
use super::{HttpSettings, examples};
use crate::domain::IdentifiedEvent;
use crate::intake::{self, BodyLimits, EventDefaults, InvalidItem};

/// How a post is to be taken.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct PostParams {
    /// `true`: store either every event or, when any of them is rejected or in conflict, none.
    #[param(value_type = Option<bool>, default = false)]
    atomic: bool,
    /// `all`: list every item in `results`, the plainly accepted ones too.
    #[param(value_type = Option<String>, pattern = "^all$", example = "all")]
    results: Option<&'static str>,
}

impl PostParams {
    fn read(mut params: Params) -> Result<Self, Problem> {
        let atomic = params.flag("atomic").unwrap_or(false);
        let results = params.word("results", &["all"]);
        params.finish()?;
        Ok(Self { atomic, results })
    }
}

/// Post events.
///
/// Answers once every good event of the body is on disk. All good events are stored in one atomic
/// step, or the answer is an error. A retry with the same ids is always safe: what is stored
/// already is a `duplicate`, which is a success.
///
/// An event without `event_id` gets a hash of its content for an id, so two genuine sales that are
/// equal in everything count once: tills should send ids.
#[utoipa::path(post, path = "/v1/events", tag = "Ingest", params(PostParams),
    request_body(content = EventsBody, content_type = "application/json", examples(
        ("one event" = (value = json!(examples::event("1001", "placed", "09:05:00", "20.00")))),
        ("an array" = (value = json!(examples::events()))),
        ("an object" = (value = json!({ "events": examples::events() }))))),
    responses(
        (status = 200, description = "Every event is accepted or a duplicate", body = IngestAnswer,
            example = json!(examples::ingest_accepted())),
        (status = 207, description = "Some events are stored; `results` says which are not, and why",
            body = IngestAnswer, example = json!(examples::ingest_mixed())),
        IngestProblems))]
pub(super) async fn post_events(
    State(app): State<App>,
    params: Params,
    body: JsonBody,
) -> Result<Response, Problem> {
    let PostParams { atomic, results } = PostParams::read(params)?;
    let (bytes, items) = (body.0.len(), check(&body, &app.settings)?);
    let is_refused = atomic && items.iter().any(Result::is_err);
    let good = items.iter().flatten().filter(|_| !is_refused).cloned().collect();
    let appended = app.intake.append(good, bytes, atomic).await?;
    Ingested::of(items, appended).answer(atomic, results.is_some())
}

/// Takes the body apart and checks every item.
fn check(
    body: &JsonBody,
    settings: &HttpSettings,
) -> Result<Vec<Result<IdentifiedEvent, InvalidItem>>, Problem> {
    let limits =
        BodyLimits { events_max: settings.events_max, event_bytes_max: settings.event_bytes_max };
    let defaults = EventDefaults { currency: settings.currency };
    let items = intake::json_items(&body.0, &limits)?;
    Ok(items.iter().map(|item| intake::event(item, &defaults, &limits)).collect())
}
