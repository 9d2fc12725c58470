//! The quarantine: events that claim to come from the future, and what somebody decides on them.

use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::authorize::LetIn;
use super::body::JsonBody;
use super::event_body::EventBody;
use super::figures::moment_text;
use super::json::Json;
use super::paging::{Page, PageParams};
use super::params::{NamedEvent, NoParams, Params};
use super::problem::Problem;
use super::problem_docs::{DecisionProblems, ListProblems};
use super::problem_kind::ProblemKind;
use super::progress::CursorMoment;
use super::{App, event_examples};
use crate::database::{Appended, QuarantineCursor, Quarantined, Release, Resolution};
use crate::domain::{EventId, EventTime, InvalidText, KeyId};
use crate::intake::{self, Action, Decision};

/// List the quarantine.
///
/// Events that are waiting for somebody's decision, the oldest first: their times are further ahead of
/// the database's clock than `max_future_skew` allows. They count nowhere and move no watermark.
#[utoipa::path(get, path = "/v1/quarantine", tag = "Quarantine", params(PageParams),
    responses(
        (status = 200, description = "A page of events", body = QuarantineAnswer,
            example = json!(event_examples::quarantine())),
        ListProblems))]
pub(super) async fn list_quarantine(
    State(app): State<App>,
    mut params: Params,
) -> Result<Response, Problem> {
    let page: Page<EntryCursor> = params.page();
    let link = params.finish()?;
    let after = page.after.clone().map(QuarantineCursor::from);
    let mut read = app.database.quarantine(after.as_ref(), page.read_limit()).await?;
    let next_cursor = page.cut(&mut read, EntryCursor::of);
    let quarantine = read.into_iter().map(QuarantinedBody::from).collect();
    let body = QuarantineAnswer { quarantine, next_cursor };
    Ok(link.answer(body.next_cursor.as_deref(), &body))
}

/// Decide on an event in quarantine.
///
/// `release` appends it to the log, at the time it came with or at a corrected one, whatever the limit
/// says; from then on it counts like any other event. `reject`: it never counts. Either way a retry of
/// the same event is a duplicate. A decision is final.
#[utoipa::path(post, path = "/v1/quarantine/{event_id}", tag = "Quarantine", params(NamedEvent),
    request_body(content = DecisionSchema, content_type = "application/json", examples(
        ("release" = (value = json!(event_examples::release()))),
        ("reject" = (value = json!(event_examples::reject()))))),
    responses(
        (status = 200, description = "The event with the decision", body = QuarantinedBody,
            example = json!(event_examples::released())),
        DecisionProblems))]
pub(super) async fn decide(
    State(app): State<App>,
    LetIn(caller): LetIn,
    named: NamedEvent,
    _: NoParams,
    body: JsonBody,
) -> Result<Json<QuarantinedBody>, Problem> {
    let event_id = named.or(ProblemKind::NotInQuarantine)?;
    let decision = intake::decision(&body.0)
        .map_err(|error| Problem::of_object(ProblemKind::InvalidDecision, error))?;
    let is_done = app.carry_out(&event_id, decision, caller.key_id()).await?;
    let entry = app.database.quarantined(&event_id).await?;
    match entry {
        Some(entry) if is_done => Ok(Json(entry.into())),
        Some(Quarantined { resolution: Some(resolution), .. }) => {
            Err(already_resolved(&event_id, &resolution))
        }
        Some(_) | None => Err(Problem::of(ProblemKind::NotInQuarantine)),
    }
}

impl App {
    /// Does what was decided; says whether the event was waiting.
    async fn carry_out(
        &self,
        event_id: &EventId,
        decision: Decision,
        key_id: Option<&KeyId>,
    ) -> Result<bool, Problem> {
        let Decision { action, note } = decision;
        match action {
            Action::Release { event_time } => {
                let (event_id, key_id) = (event_id.clone(), key_id.cloned());
                let release = Release { event_id, event_time, note, key_id };
                Ok(matches!(self.intake.release(release).await?, Appended::Accepted(_)))
            }
            Action::Reject => Ok(self.database.quarantine_reject(event_id, &note, key_id).await?),
        }
    }
}

fn already_resolved(event_id: &EventId, resolution: &Resolution) -> Problem {
    let done = if resolution.released.is_some() { "released" } else { "rejected" };
    let place = resolution.released.map_or(String::new(), |(seq, _)| format!(" as seq {seq}"));
    let detail = format!(
        "Event `{event_id}` was {done} at {}{place}, with the note `{}`.",
        moment_text(resolution.resolved_at),
        resolution.note,
    );
    Problem::new(ProblemKind::AlreadyResolved, detail)
}

/// Where a page of the quarantine ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryCursor {
    #[serde(rename = "t")]
    received_at: CursorMoment,
    #[serde(rename = "e")]
    event_id: CursorEvent,
}

impl EntryCursor {
    fn of(entry: &Quarantined) -> Self {
        Self {
            received_at: CursorMoment(entry.received_at),
            event_id: CursorEvent(entry.event.event_id.clone()),
        }
    }
}

impl From<EntryCursor> for QuarantineCursor {
    fn from(cursor: EntryCursor) -> Self {
        Self { received_at: cursor.received_at.0, event_id: cursor.event_id.0 }
    }
}

/// An event's id in a cursor.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
struct CursorEvent(EventId);

impl TryFrom<String> for CursorEvent {
    type Error = InvalidText;

    fn try_from(id: String) -> Result<Self, InvalidText> {
        EventId::try_from(id).map(Self)
    }
}

impl From<CursorEvent> for String {
    fn from(id: CursorEvent) -> Self {
        id.0.to_string()
    }
}

/// A page of the quarantine.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct QuarantineAnswer {
    /// The events that wait, the oldest first.
    quarantine: Vec<QuarantinedBody>,
    /// What to ask the next page with; null at the end.
    next_cursor: Option<String>,
}

/// An event that is, or was, in quarantine.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Quarantined)]
pub(super) struct QuarantinedBody {
    /// The event as it was posted.
    event: EventBody,
    /// When it was received, by the database's clock.
    #[schema(format = DateTime)]
    received_at: String,
    /// Why it is here.
    reason: String,
    /// What somebody decided; null while it waits.
    resolution: Option<ResolutionBody>,
}

impl From<Quarantined> for QuarantinedBody {
    fn from(entry: Quarantined) -> Self {
        Self {
            event: entry.event.into(),
            received_at: moment_text(entry.received_at),
            reason: entry.reason,
            resolution: entry.resolution.map(ResolutionBody::from),
        }
    }
}

/// What somebody decided on an event in quarantine.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Resolution)]
struct ResolutionBody {
    /// `release` or `reject`.
    #[schema(example = "release")]
    action: String,
    /// When, by the database's clock.
    #[schema(format = DateTime)]
    resolved_at: String,
    /// Why, in their own words.
    note: String,
    /// The time that a released event counts at; null when it was rejected.
    #[schema(format = DateTime)]
    event_time: Option<String>,
    /// Where a released event stands in the raw log; null when it was rejected.
    seq: Option<i64>,
}

impl From<Resolution> for ResolutionBody {
    fn from(resolution: Resolution) -> Self {
        Self {
            action: resolution.action,
            resolved_at: moment_text(resolution.resolved_at),
            note: resolution.note,
            event_time: resolution.released.map(|(_, time): (_, EventTime)| time.to_string()),
            seq: resolution.released.map(|(seq, _)| seq.get()),
        }
    }
}

/// What is to become of an event in quarantine. A field that is not here is refused.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Decision)]
pub(super) struct DecisionSchema {
    /// `release` or `reject`.
    #[schema(pattern = "^(release|reject)$", example = "release")]
    action: String,
    /// The time at which a released event counts, when that is not the one it came with.
    #[schema(format = DateTime, example = "2026-10-01T09:05:00Z")]
    event_time: Option<String>,
    /// Why.
    #[schema(min_length = 1, max_length = 1000, example = "the clock of till 7 was a day ahead")]
    note: String,
}
