//! `POST /v1/events`: a truthful answer for every event.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::body::JsonBody;
use super::params::Params;
use super::problem::{ErrorBody, Problem, ProblemKind};
use super::schemas::EventsSchema;
use super::state::AppState;
use crate::database::Appended;
use crate::domain::IdentifiedEvent;
use crate::intake::{self, BodyError, InvalidItem, Item};

/// What became of one event that was not plainly accepted, or of every one with `results=all`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EventResult)]
pub(super) struct ResultBody {
    /// Its place in the request, from 0.
    index: usize,
    /// Its id, where one could be read.
    event_id: Option<String>,
    /// `accepted`, `duplicate`, `conflict` or `rejected`.
    #[schema(example = "duplicate")]
    status: &'static str,
    /// Where it stands in the raw log; of a duplicate or conflict, where the first stands.
    seq: Option<i64>,
    /// What it means, where the status does not say all.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    /// Each fault of a rejected event, the pointer inside the event.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<ErrorBody>,
}

/// The answer to a post: how many of each, and the events that need a look.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = EventsAnswer)]
pub(super) struct EventsBody {
    /// In the raw log now, durable.
    accepted: usize,
    /// There before with the same content: a retry, and a success.
    duplicates: usize,
    /// There before with other content: refused, the first stays.
    conflicts: usize,
    /// Stored and not counted yet.
    quarantined: usize,
    /// Invalid, not stored.
    rejected: usize,
    /// Every event that is not plainly accepted, in the order posted.
    results: Vec<ResultBody>,
}

/// Posts events. Answers once all of them are durable.
///
/// The body is one event, an array, or `{"events": […]}`. One request is one atomic step for its
/// good events: all of them are stored, or the answer is an error. Retry with the same ids.
#[utoipa::path(post, path = "/v1/events", tag = "events",
    params(
        ("atomic" = Option<bool>, Query, description = "`true`: any rejected or conflicting event stores nothing"),
        ("results" = Option<String>, Query, description = "`all`: list every event, accepted ones too")),
    request_body(content = EventsSchema, content_type = "application/json", example = json!({"events": [
        {"event_id": "1001-placed", "order_id": 1001, "status": "placed", "amount": "20.00", "event_time": "2026-10-01T09:05:00Z"}]})),
    responses(
        (status = 200, description = "Every event is accepted or a duplicate", body = EventsBody,
            example = json!({"accepted": 1, "duplicates": 0, "conflicts": 0, "quarantined": 0, "rejected": 0, "results": []})),
        (status = 207, description = "A mixture; the good events are stored", body = EventsBody,
            example = json!({"accepted": 1, "duplicates": 0, "conflicts": 0, "quarantined": 0, "rejected": 1, "results": [
                {"index": 1, "event_id": null, "status": "rejected", "seq": null,
                 "errors": [{"pointer": "/amount", "code": "missing", "detail": "is required"}]}]})),
        (status = 400, description = "The body is not JSON, or a parameter is unknown"),
        (status = 408, description = "The body took too long"),
        (status = 409, description = "Every event is in conflict"),
        (status = 413, description = "Too many bytes or events"),
        (status = 415, description = "Not `application/json`"),
        (status = 422, description = "Every event is rejected, or one is with `atomic=true`"),
        (status = 503, description = "The queue is full or the outcome is unknown; retry with the same ids")))]
pub(super) async fn post_events(
    State(state): State<AppState>,
    params: Params,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    let options = Options::of(params)?;
    let settings = state.settings();
    let items = intake::json_items(&body, &settings.body_limits())?;
    let checked = check(&items, settings);
    let store_nothing = options.atomic && checked.iter().any(Result::is_err);
    let good: Vec<IdentifiedEvent> =
        if store_nothing { Vec::new() } else { checked.iter().flatten().cloned().collect() };
    let appended = state.intake().append(good, body.len(), options.atomic).await?;
    Ok(answer(checked, appended, options))
}

#[derive(Debug, Clone, Copy)]
struct Options {
    atomic: bool,
    all_results: bool,
}

impl Options {
    fn of(mut params: Params) -> Result<Self, Problem> {
        let atomic = params.flag("atomic").unwrap_or(false);
        let all_results = params.word("results", &["all"]).is_some();
        params.finish()?;
        Ok(Self { atomic, all_results })
    }
}

fn check(
    items: &[Item<'_>],
    settings: &super::HttpSettings,
) -> Vec<Result<IdentifiedEvent, InvalidItem>> {
    let (defaults, limits) = (settings.event_defaults(), settings.body_limits());
    items.iter().map(|item| intake::event(item, &defaults, &limits)).collect()
}

impl From<BodyError> for Problem {
    fn from(error: BodyError) -> Self {
        let kind = match &error {
            BodyError::TooManyEvents { .. } => ProblemKind::TooLarge,
            BodyError::NotAnEventList { .. }
            | BodyError::EventsNotAnArray
            | BodyError::DuplicateEvents
            | BodyError::UnknownMember { .. } => ProblemKind::Invalid,
            BodyError::NotUtf8 { .. }
            | BodyError::ByteOrderMark
            | BodyError::NotJson { .. }
            | BodyError::TooDeep { .. } => ProblemKind::NotJson,
        };
        Self::new(kind, format!("{error}."))
    }
}

/// Puts the verdicts of checks and raw log together, in the order posted.
fn answer(
    checked: Vec<Result<IdentifiedEvent, InvalidItem>>,
    appended: Vec<Appended>,
    options: Options,
) -> Response {
    let total = checked.len();
    let mut body = EventsBody::default();
    let mut appended = appended.into_iter();
    for (index, item) in checked.into_iter().enumerate() {
        let result = match item {
            Ok(good) => stored_result(index, &good, appended.next().unwrap_or(Appended::NotStored)),
            Err(invalid) => rejected_result(index, invalid),
        };
        body.add(result, options.all_results);
    }
    let refused = body.conflicts + body.rejected;
    if total > 0 && body.conflicts == total {
        refusal(ProblemKind::Conflict, "Every event is in conflict; none was stored.", body)
    } else if total > 0 && (body.rejected == total || (options.atomic && refused > 0)) {
        refusal(ProblemKind::Invalid, "No event was stored; `results` says why.", body)
    } else if refused > 0 {
        (StatusCode::MULTI_STATUS, Json(body)).into_response()
    } else {
        Json(body).into_response()
    }
}

impl EventsBody {
    fn add(&mut self, result: ResultBody, all_results: bool) {
        let count = match result.status {
            "accepted" => &mut self.accepted,
            "duplicate" => &mut self.duplicates,
            "conflict" => &mut self.conflicts,
            _ => &mut self.rejected,
        };
        *count += 1;
        if all_results || result.status != "accepted" {
            self.results.push(result);
        }
    }
}

fn stored_result(index: usize, good: &IdentifiedEvent, appended: Appended) -> ResultBody {
    let (status, seq, detail) = match appended {
        Appended::Accepted(seq) => ("accepted", Some(seq.get()), None),
        Appended::Duplicate(seq) => ("duplicate", Some(seq.get()), None),
        Appended::Conflict { first_seq, first_content_hash } => {
            let detail = format!(
                "its id is taken by other content; the first has sha256:{first_content_hash}, this one sha256:{}",
                good.content_hash
            );
            ("conflict", Some(first_seq.get()), Some(detail))
        }
        Appended::NotStored => (
            "rejected",
            None,
            Some("not stored: `atomic=true`, and another event is not good".to_owned()),
        ),
    };
    let event_id = Some(good.event.event_id.to_string());
    ResultBody { index, event_id, status, seq, detail, errors: Vec::new() }
}

fn rejected_result(index: usize, invalid: InvalidItem) -> ResultBody {
    let errors = invalid.faults.into_iter().map(ErrorBody::from).collect();
    ResultBody {
        index,
        event_id: invalid.event_id,
        status: "rejected",
        seq: None,
        detail: None,
        errors,
    }
}

fn refusal(kind: ProblemKind, detail: &str, body: EventsBody) -> Response {
    let members = match serde_json::to_value(body) {
        Ok(Value::Object(members)) => members,
        Ok(_) | Err(_) => Map::new(),
    };
    Problem::new(kind, detail).with_members(members).into_response()
}
