//! Heartbeats: a source's word that nothing older will come from it.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::authorize::LetIn;
use super::body::JsonBody;
use super::json::Json;
use super::params::NoParams;
use super::problem::Problem;
use super::problem_docs::HeartbeatProblems;
use super::problem_kind::ProblemKind;
use super::rate_limit::RateLimit;
use super::{App, HttpSettings, event_examples};
use crate::database::Appended;
use crate::domain::{EventTime, Fault, Heartbeat, Seq, Span};
use crate::intake;

/// Send a heartbeat.
///
/// A till without orders says that it has nothing older than `event_time`. Once it is in the log, it
/// moves the watermarks of all queries as an event of that time would, and counts nowhere.
#[utoipa::path(post, path = "/v1/heartbeats", tag = "Ingest",
    request_body(content = PostedHeartbeat, content_type = "application/json",
        example = json!(event_examples::heartbeat())),
    responses(
        (status = 202, description = "It is in the log, and queries will read it",
            body = HeartbeatAnswer, example = json!(event_examples::heartbeat_stored())),
        HeartbeatProblems))]
pub(super) async fn post_heartbeat(
    State(app): State<App>,
    LetIn(caller): LetIn,
    _: NoParams,
    body: JsonBody,
) -> Result<Response, Problem> {
    let heartbeat = intake::heartbeat(&body.0)
        .map_err(|error| Problem::of_object(ProblemKind::InvalidHeartbeat, error));
    let rate_limit = RateLimit::take(&caller, heartbeat.iter().count())?;
    let answer = async { store(&app, heartbeat?).await.map(IntoResponse::into_response) };
    rate_limit.told_in(answer.await)
}

async fn store(
    app: &App,
    heartbeat: Heartbeat,
) -> Result<(StatusCode, Json<HeartbeatAnswer>), Problem> {
    match app.intake.heartbeat(heartbeat.clone()).await? {
        Appended::Accepted(seq) => {
            Ok((StatusCode::ACCEPTED, Json(HeartbeatAnswer::of(&heartbeat, seq))))
        }
        // The others are no answers for a heartbeat.
        Appended::Quarantined
        | Appended::Duplicate(_)
        | Appended::Conflict { .. }
        | Appended::RejectedBefore
        | Appended::NotStored
        | Appended::NotInQuarantine => Err(from_the_future(heartbeat.event_time, &app.settings)),
    }
}

fn from_the_future(event_time: EventTime, settings: &HttpSettings) -> Problem {
    let skew = settings.max_future_skew.unwrap_or(Span::ZERO);
    let detail =
        format!("`event_time` `{event_time}` is more than {skew} ahead of the database's clock");
    let sentence = format!(
        "{detail}; {skew} is the limit (`max_future_skew` of `GET /v1/limits`). Nothing was stored."
    );
    Problem::new(ProblemKind::HeartbeatFromTheFuture, sentence).and_faults(vec![Fault::new(
        "/event_time",
        "out_of_range",
        detail,
    )])
}

/// What a source says. A field that is not here is refused.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Heartbeat)]
pub(super) struct PostedHeartbeat {
    /// Who says so, such as a till.
    #[schema(min_length = 1, max_length = 200, example = "till-7")]
    source: String,
    /// Up to when it has nothing more to say: RFC 3339 with `Z` or an offset.
    #[schema(format = DateTime, example = "2026-10-01T12:40:00Z")]
    event_time: String,
}

/// A heartbeat at its place in the log.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct HeartbeatAnswer {
    /// Who sent it.
    #[schema(example = "till-7")]
    source: String,
    /// Up to when the source has nothing more to say.
    #[schema(format = DateTime, example = "2026-10-01T12:40:00Z")]
    event_time: String,
    /// Its position in the raw log.
    #[schema(example = 10)]
    seq: i64,
}

impl HeartbeatAnswer {
    fn of(heartbeat: &Heartbeat, seq: Seq) -> Self {
        Self {
            source: heartbeat.source.to_string(),
            event_time: heartbeat.event_time.to_string(),
            seq: seq.get(),
        }
    }
}
