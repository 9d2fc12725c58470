//! The one error type of HTTP: RFC 9457 problems.
//!
//! A handler answers with a [`Problem`]; the outermost middleware writes it out, because only that
//! knows the id of the request. The text of a 5xx is constant; its cause goes to the log, once.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, header, response};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tracing::{error, warn};
use utoipa::ToSchema;

use super::event_answer::IngestAnswer;
use super::json::json_line;
use super::problem_kind::ProblemKind;
use crate::database::DatabaseError;
use crate::domain::{Fault, InvalidText};
use crate::finance::local_fit::DoesNotFold;
use crate::intake::{BodyError, IntakeError, InvalidObject};
use crate::pipeline::RunError;

/// Why a request is not answered as hoped.
#[derive(Debug, Clone)]
pub(super) struct Problem {
    kind: ProblemKind,
    detail: Option<String>,
    errors: Vec<Fault>,
    answer: Option<Arc<IngestAnswer>>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Problem {
    /// A problem of which there is no more to say than its kind's explanation.
    pub(super) fn of(kind: ProblemKind) -> Self {
        let (errors, headers) = (Vec::new(), Vec::new());
        Self { kind, detail: None, errors, answer: None, headers }
    }

    /// A problem with a sentence of its own; not for a 5xx, whose text is constant.
    pub(super) fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        Self { detail: Some(detail.into()), ..Self::of(kind) }
    }

    /// A problem that points at what is wrong.
    pub(super) fn with_faults(kind: ProblemKind, errors: Vec<Fault>) -> Self {
        Self::of(kind).and_faults(errors)
    }

    /// The same, pointing at what is wrong.
    pub(super) fn and_faults(self, errors: Vec<Fault>) -> Self {
        Self { errors, ..self }
    }

    /// The same with what became of posted events as further members.
    pub(super) fn with_answer(self, answer: IngestAnswer) -> Self {
        Self { answer: Some(Arc::new(answer)), ..self }
    }

    /// The same with a header in its answer.
    pub(super) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// There is no query of this name.
    pub(super) fn no_such_query(name: &str) -> Self {
        Self::new(ProblemKind::NoSuchQuery, format!("There is no query `{name}`."))
    }

    /// The query's name in the address cannot be one.
    pub(super) fn no_query_name(name: &str, fault: &InvalidText) -> Self {
        let detail = format!("There is no query `{name}`; a name {fault}.");
        Self::new(ProblemKind::NoSuchQuery, detail)
    }

    /// The body is not the object that it should be; its faults make a problem of `kind`.
    pub(super) fn of_object(kind: ProblemKind, error: InvalidObject) -> Self {
        match error {
            InvalidObject::Body(error) => error.into(),
            InvalidObject::Members(faults) => Self::with_faults(kind, faults),
        }
    }

    /// The faults it points at.
    #[cfg(test)]
    pub(super) fn errors(&self) -> &[Fault] {
        &self.errors
    }

    /// The answer as it is sent, `head` being what else was to be in it.
    pub(super) fn write(self, mut head: response::Parts, request_id: &str) -> Response {
        let (kind, facts) = (self.kind, self.kind.facts());
        let body = ProblemBody {
            problem_type: format!("/problems/{}", facts.name),
            title: facts.title,
            status: facts.status.as_u16(),
            detail: self.detail.unwrap_or_else(|| facts.explanation.to_owned()),
            request_id,
            errors: self.errors.into_iter().map(FaultBody::from).collect(),
            answer: self.answer.as_deref(),
        };
        head.status = facts.status;
        head.headers.remove(header::CONTENT_LENGTH);
        let content_type = HeaderValue::from_static("application/problem+json");
        head.headers.insert(header::CONTENT_TYPE, content_type);
        if let Some(seconds) = kind.retry_after_seconds() {
            head.headers.insert(header::RETRY_AFTER, u16::from(seconds).into());
        }
        head.headers.extend(self.headers);
        // Plain texts and numbers: writing them cannot fail.
        let json = json_line(&body).unwrap_or_default();
        Response::from_parts(head, Body::from(json))
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.kind.facts().status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<DatabaseError> for Problem {
    fn from(error: DatabaseError) -> Self {
        if let DatabaseError::NoSuchQuery(name) = &error {
            return Self::no_such_query(name.as_str());
        }
        if let DatabaseError::NotYet { .. } | DatabaseError::BeforeHistory { .. } = error {
            let fault = Fault::new("/as_of", "out_of_range", format!("`as_of`: {error}"));
            let problem = Self::new(ProblemKind::InvalidParameters, format!("{}.", fault.detail));
            return problem.and_faults(vec![fault]);
        }
        if let DatabaseError::TooManyWindows { max } = error {
            let detail = format!(
                "The report would have more than {max} windows; ask for parts of it, by `from` and `to`."
            );
            return Self::new(ProblemKind::TooManyWindows, detail);
        }
        if matches!(error, DatabaseError::ReadsBusy) {
            return Self::of(ProblemKind::Busy);
        }
        if error.is_too_slow() {
            warn!(error = %error.chain(), "A statement took too long");
            return Self::of(ProblemKind::DeadlineExceeded);
        }
        if error.is_outage() {
            warn!(error = %error.chain(), "The database is away");
            return Self::of(ProblemKind::DatabaseAway);
        }
        error!(error = %error.chain(), "The database failed");
        if let DatabaseError::Unreadable { what, .. } = error {
            let detail = format!(
                "A stored {what} cannot be read: it is not as the service wrote it. The log has it under \
                 this `request_id`, and the reconciliation of a query names damaged rows."
            );
            return Self::new(ProblemKind::Internal, detail);
        }
        Self::of(ProblemKind::Internal)
    }
}

impl From<DoesNotFold> for Problem {
    fn from(error: DoesNotFold) -> Self {
        let problem =
            Self::new(ProblemKind::DoesNotFold, format!("The windows do not fold: {error}."));
        problem.and_faults(vec![Fault::new("/granularity", "does_not_fold", error.to_string())])
    }
}

impl From<IntakeError> for Problem {
    fn from(error: IntakeError) -> Self {
        // The writer has logged its own failures already.
        match error {
            IntakeError::QueueFull => Self::of(ProblemKind::QueueFull),
            IntakeError::Stopping => Self::of(ProblemKind::Stopping),
            IntakeError::Unknown(_) => Self::of(ProblemKind::OutcomeUnknown),
            IntakeError::Refused(_) => Self::of(ProblemKind::Internal),
        }
    }
}

impl From<RunError> for Problem {
    fn from(error: RunError) -> Self {
        match error {
            RunError::NoSuchQuery(name) => DatabaseError::NoSuchQuery(name).into(),
            RunError::Paused => Self::of(ProblemKind::QueryPaused),
            RunError::Busy => Self::of(ProblemKind::RunsWaiting),
            RunError::Stopping => Self::of(ProblemKind::Stopping),
            RunError::Failed(cause) => {
                warn!(error = cause, "A micro-batch of an asked-for run failed");
                Self::of(ProblemKind::RunFailed)
            }
        }
    }
}

impl From<BodyError> for Problem {
    fn from(error: BodyError) -> Self {
        let kind = match error {
            BodyError::TooManyEvents { .. } => ProblemKind::TooLarge,
            BodyError::NotUtf8 { .. }
            | BodyError::ByteOrderMark
            | BodyError::NotJson { .. }
            | BodyError::TooDeep { .. } => ProblemKind::MalformedBody,
            BodyError::NotAnEventList { .. }
            | BodyError::NotACloudEvent { .. }
            | BodyError::NotACloudEventBatch { .. }
            | BodyError::EventsNotAnArray
            | BodyError::DuplicateEvents
            | BodyError::UnknownMember { .. } => ProblemKind::NotEvents,
        };
        Self::new(kind, format!("{error}."))
    }
}

/// An error answer (RFC 9457).
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(super) struct ProblemBody<'problem> {
    /// The kind of problem; the address answers with an explanation.
    #[serde(rename = "type")]
    #[schema(example = "/problems/no-such-query")]
    problem_type: String,
    /// The kind in a few words.
    title: &'static str,
    /// The HTTP status.
    status: u16,
    /// What is wrong this time.
    detail: String,
    /// The id of the request, as in the header `x-request-id` and in the log.
    request_id: &'problem str,
    /// The places at fault, where they can be told.
    errors: Vec<FaultBody>,
    /// Further members; those of `IngestAnswer` when events were posted.
    #[serde(flatten)]
    #[schema(value_type = std::collections::HashMap<String, serde_json::Value>)]
    answer: Option<&'problem IngestAnswer>,
}

/// One thing that is wrong, at its place.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Fault)]
pub(super) struct FaultBody {
    /// A JSON pointer into the body, the event or the rule; `/<name>` for a query parameter.
    #[schema(example = "/amount")]
    pointer: String,
    /// The kind of fault, a stable word for programs.
    #[schema(example = "missing")]
    code: &'static str,
    /// What is wrong and what would be right.
    detail: String,
}

impl From<Fault> for FaultBody {
    fn from(Fault { pointer, code, detail }: Fault) -> Self {
        Self { pointer, code, detail }
    }
}
