//! What goes wrong, as `application/problem+json` (RFC 9457).
//!
//! The text of a 5xx is constant; its cause goes to the log, once, here.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value};
use tracing::error;
use utoipa::ToSchema;

use crate::database::DatabaseError;
use crate::domain::Fault;
use crate::intake::IntakeError;
use crate::pipeline::RunError;

/// Every kind of problem, with the path of its explanation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProblemKind {
    BadRequest,
    NotJson,
    NotFound,
    MethodNotAllowed,
    BodyTimeout,
    Conflict,
    AnotherQuery,
    QueryPaused,
    TooLarge,
    UnsupportedMediaType,
    Invalid,
    Internal,
    Unavailable,
    QueueFull,
    OutcomeUnknown,
    DeadlineExceeded,
}

/// Status, name, title and explanation of each kind, in one place.
const KINDS: [(ProblemKind, StatusCode, &str, &str, &str); 16] = [
    (
        ProblemKind::BadRequest,
        StatusCode::BAD_REQUEST,
        "bad-request",
        "The request cannot be understood",
        "A parameter is unknown, repeated or malformed. `errors` says which, and what would be right.",
    ),
    (
        ProblemKind::NotJson,
        StatusCode::BAD_REQUEST,
        "not-json",
        "The body is not JSON",
        "The body as a whole cannot be read; nothing of it was stored. `detail` says where it goes wrong.",
    ),
    (
        ProblemKind::NotFound,
        StatusCode::NOT_FOUND,
        "not-found",
        "There is nothing here",
        "No resource has this address. GET /v1/queries lists the queries; /docs shows every address.",
    ),
    (
        ProblemKind::MethodNotAllowed,
        StatusCode::METHOD_NOT_ALLOWED,
        "method-not-allowed",
        "This address does not take this method",
        "The `Allow` header lists the methods that the address takes.",
    ),
    (
        ProblemKind::BodyTimeout,
        StatusCode::REQUEST_TIMEOUT,
        "body-timeout",
        "The body took too long",
        "The body did not arrive in time; nothing of it was stored. Send it again, in smaller parts on a slow line.",
    ),
    (
        ProblemKind::Conflict,
        StatusCode::CONFLICT,
        "conflict",
        "The ids of these events are taken by other content",
        "Each event's id is in the raw log already with other content. The first stays; both hashes are kept for audit.",
    ),
    (
        ProblemKind::AnotherQuery,
        StatusCode::CONFLICT,
        "another-query",
        "This change would make it another query",
        "Window, keys, filter and output mode of a query stay as they are. Create another query under another name.",
    ),
    (
        ProblemKind::QueryPaused,
        StatusCode::CONFLICT,
        "query-paused",
        "The query is paused",
        "POST …/resume first.",
    ),
    (
        ProblemKind::TooLarge,
        StatusCode::PAYLOAD_TOO_LARGE,
        "too-large",
        "The request is too large",
        "GET /v1/limits says how large a request may be. Send the events in several requests.",
    ),
    (
        ProblemKind::UnsupportedMediaType,
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "unsupported-media-type",
        "The body is of a kind that is not read here",
        "Send JSON with `content-type: application/json`.",
    ),
    (
        ProblemKind::Invalid,
        StatusCode::UNPROCESSABLE_ENTITY,
        "invalid",
        "The content is not valid",
        "`errors`, or `results` for events, says for each fault where it is, what is wrong and what would be right.",
    ),
    (
        ProblemKind::Internal,
        StatusCode::INTERNAL_SERVER_ERROR,
        "internal",
        "Something went wrong inside",
        "The cause is in the log under the request's id. Nothing is answered as stored that is not.",
    ),
    (
        ProblemKind::Unavailable,
        StatusCode::SERVICE_UNAVAILABLE,
        "unavailable",
        "The service cannot answer now",
        "The database is away, or the service is starting or stopping. Try again after `Retry-After` seconds.",
    ),
    (
        ProblemKind::QueueFull,
        StatusCode::SERVICE_UNAVAILABLE,
        "queue-full",
        "Too many events are waiting to be stored",
        "Nothing of this request was stored. Try again after `Retry-After` seconds with the same ids.",
    ),
    (
        ProblemKind::OutcomeUnknown,
        StatusCode::SERVICE_UNAVAILABLE,
        "outcome-unknown",
        "Whether the events are stored is not known",
        "Post the same events with the same ids again: what is stored already is answered as a duplicate.",
    ),
    (
        ProblemKind::DeadlineExceeded,
        StatusCode::SERVICE_UNAVAILABLE,
        "deadline-exceeded",
        "The answer took too long",
        "What the request started may still come to its end. A retry with the same ids is safe; a run of a query goes on by itself.",
    ),
];

const RETRY_AFTER_SECONDS: &str = "2";

impl ProblemKind {
    fn row(self) -> (StatusCode, &'static str, &'static str, &'static str) {
        KINDS
            .iter()
            .find(|row| row.0 == self)
            .map_or((StatusCode::INTERNAL_SERVER_ERROR, "internal", "", ""), |row| {
                (row.1, row.2, row.3, row.4)
            })
    }

    /// The kind whose explanation stands at `/problems/{name}`: its title and explanation.
    pub(super) fn explained(name: &str) -> Option<(StatusCode, &'static str, &'static str)> {
        KINDS.iter().find(|row| row.2 == name).map(|row| (row.1, row.3, row.4))
    }
}

/// One fault of a request, as problems list it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct ErrorBody {
    /// JSON pointer inside the body or item; `?name` for a parameter.
    #[schema(example = "/amount")]
    pub(super) pointer: String,
    /// A stable word for programs.
    #[schema(example = "missing")]
    pub(super) code: &'static str,
    /// What is wrong and what would be right.
    #[schema(example = "is required")]
    pub(super) detail: String,
}

impl From<Fault> for ErrorBody {
    fn from(fault: Fault) -> Self {
        Self { pointer: fault.pointer, code: fault.code, detail: fault.detail }
    }
}

/// The members of a problem (RFC 9457).
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(super) struct ProblemBody {
    /// Where the kind of problem is explained.
    #[serde(rename = "type")]
    kind: String,
    /// The kind, in words.
    title: &'static str,
    /// The HTTP status.
    status: u16,
    /// This occurrence, in words.
    detail: String,
    /// The request's id, as in `x-request-id`.
    request_id: String,
    /// Each fault at its place; may be empty.
    errors: Vec<ErrorBody>,
    /// Counts and `results` where the events of a post are refused.
    #[serde(flatten)]
    #[schema(value_type = Object, additional_properties)]
    members: Map<String, Value>,
}

/// A problem on its way to the client.
#[derive(Debug, Clone)]
pub(super) struct Problem {
    kind: ProblemKind,
    detail: String,
    errors: Vec<ErrorBody>,
    members: Map<String, Value>,
}

impl Problem {
    /// A problem with a sentence about this occurrence.
    pub(super) fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), errors: Vec::new(), members: Map::new() }
    }

    /// The same problem with its faults.
    pub(super) fn with_errors(
        mut self,
        errors: impl IntoIterator<Item = impl Into<ErrorBody>>,
    ) -> Self {
        self.errors = errors.into_iter().map(Into::into).collect();
        self
    }

    /// The same problem with further members.
    pub(super) fn with_members(mut self, members: Map<String, Value>) -> Self {
        self.members = members;
        self
    }

    /// The problem of a query that does not exist.
    pub(super) fn no_such_query(name: &str) -> Self {
        Self::new(ProblemKind::NotFound, format!("There is no query `{name}`."))
    }

    /// A problem of the service itself: the cause is logged, the text is constant.
    pub(super) fn from_cause(kind: ProblemKind, cause: &str) -> Self {
        error!(error = %cause, problem = kind.row().1, "A request failed");
        Self::new(kind, kind.row().3)
    }
}

/// A stand-in for the request's id, which the outermost layer fills in.
#[derive(Debug, Clone)]
pub(super) struct PendingProblem(Problem);

impl PendingProblem {
    /// The answer, for the request with this id.
    pub(super) fn into_response_for(self, request_id: &str) -> Response {
        let Problem { kind, detail, errors, members } = self.0;
        let (status, name, title, _) = kind.row();
        let body = ProblemBody {
            kind: format!("/problems/{name}"),
            title,
            status: status.as_u16(),
            detail,
            request_id: request_id.to_owned(),
            errors,
            members,
        };
        let mut response = (status, Json(body)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_SECONDS));
        }
        response
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.kind.row().0.into_response();
        response.extensions_mut().insert(PendingProblem(self));
        response
    }
}

impl From<DatabaseError> for Problem {
    fn from(error: DatabaseError) -> Self {
        match &error {
            DatabaseError::NoSuchQuery(name) => Self::no_such_query(name.as_str()),
            _ if error.is_outage() => Self::from_cause(ProblemKind::Unavailable, &error.chain()),
            _ => Self::from_cause(ProblemKind::Internal, &error.chain()),
        }
    }
}

impl From<IntakeError> for Problem {
    fn from(error: IntakeError) -> Self {
        let kind = match error {
            IntakeError::QueueFull => ProblemKind::QueueFull,
            IntakeError::Stopping => ProblemKind::Unavailable,
            IntakeError::Unknown(_) => ProblemKind::OutcomeUnknown,
            IntakeError::Refused(_) => ProblemKind::Internal,
        };
        Self::new(kind, kind.row().3)
    }
}

impl From<RunError> for Problem {
    fn from(error: RunError) -> Self {
        match error {
            RunError::NoSuchQuery(name) => Self::no_such_query(name.as_str()),
            RunError::Paused => {
                Self::new(ProblemKind::QueryPaused, "The query is paused; resume it first.")
            }
            RunError::Busy => {
                Self::new(ProblemKind::Unavailable, "Too many runs of this query are waiting.")
            }
            RunError::Stopping => Self::new(ProblemKind::Unavailable, "The service is stopping."),
            RunError::Failed(cause) => Self::from_cause(ProblemKind::Unavailable, &cause),
        }
    }
}

/// An example of the first kind of problem with this status, for the OpenAPI document.
pub(super) fn example(status: u16) -> Option<Value> {
    let (_, status, name, title, explanation) =
        KINDS.iter().find(|row| row.1.as_u16() == status)?;
    let body = ProblemBody {
        kind: format!("/problems/{name}"),
        title,
        status: status.as_u16(),
        detail: (*explanation).to_owned(),
        request_id: "6f9619ff-8b86-4d01-b42d-00cf4fc964ff".to_owned(),
        errors: Vec::new(),
        members: Map::new(),
    };
    serde_json::to_value(body).ok()
}
