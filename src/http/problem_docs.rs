//! The error answers of each kind of address, described with an example for every problem.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use utoipa::IntoResponses;
use utoipa::openapi::example::ExampleBuilder;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response, ResponseBuilder};

use super::examples;
use super::problem_kind::ProblemKind;
use super::problem_kind::ProblemKind::{
    AlreadyResolved, AnotherQuery, BodyTimeout, Busy, DatabaseAway, DeadlineExceeded, DoesNotFold,
    EventConflict, HeartbeatFromTheFuture, Internal, InvalidBooking, InvalidDecision,
    InvalidEvents, InvalidHeartbeat, InvalidKey, InvalidParameters, InvalidQuery, InvalidRun,
    KeyNotRotated, MalformedBody, NoSuchEvent, NoSuchKey, NoSuchProblem, NoSuchQuery,
    NotAcceptable, NotEvents, NotInQuarantine, NotReady, OutcomeUnknown, QueryPaused, QueueFull,
    RateLimited, RunFailed, RunsWaiting, Stopping, TooLarge, TooManyWindows, UnsupportedMediaType,
    WindowNotFinal,
};

macro_rules! problem_sets {
    ($($(#[$doc:meta])* $name:ident: $($kind:ident),+;)*) => {$(
        $(#[$doc])*
        pub(super) struct $name;

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                responses_of(&[$($kind),+])
            }
        }
    )*};
}

problem_sets! {
    /// Of addresses that read.
    ListProblems: InvalidParameters, Internal, DatabaseAway, Busy, DeadlineExceeded;
    /// Of lists that come in several forms.
    FormatProblems: InvalidParameters, NoSuchQuery, NotAcceptable, Internal, DatabaseAway, Busy,
        DeadlineExceeded;
    /// Of the reconciliation.
    ReconciliationProblems: InvalidParameters, NoSuchQuery, NotAcceptable, TooManyWindows, Internal,
        DatabaseAway, Busy, DeadlineExceeded;
    /// Of windows, which may be folded.
    WindowProblems: InvalidParameters, NoSuchQuery, NotAcceptable, DoesNotFold, Internal, DatabaseAway,
        Busy, DeadlineExceeded;
    /// Of the query in the address.
    QueryProblems: InvalidParameters, NoSuchQuery, Internal, DatabaseAway, Busy, DeadlineExceeded;
    /// Of pausing, resuming and resetting a query.
    QueryCommandProblems: InvalidParameters, MalformedBody, NoSuchQuery, BodyTimeout, TooLarge,
        UnsupportedMediaType, Internal, DatabaseAway, Busy, DeadlineExceeded;
    /// Of creating and changing a query.
    QueryPutProblems: InvalidParameters, MalformedBody, NoSuchQuery, BodyTimeout, AnotherQuery,
        TooLarge, UnsupportedMediaType, InvalidQuery, Internal, DatabaseAway, Busy, DeadlineExceeded;
    /// Of running a query.
    QueryRunProblems: InvalidParameters, MalformedBody, NoSuchQuery, BodyTimeout, QueryPaused,
        TooLarge, UnsupportedMediaType, InvalidRun, Internal, DatabaseAway, DeadlineExceeded,
        RunsWaiting, RunFailed, Stopping;
    /// Of posting events.
    IngestProblems: InvalidParameters, MalformedBody, BodyTimeout, EventConflict, TooLarge,
        UnsupportedMediaType, NotEvents, InvalidEvents, RateLimited, Internal, QueueFull, OutcomeUnknown,
        DatabaseAway, DeadlineExceeded,
        Stopping;
    /// Of sending a heartbeat.
    HeartbeatProblems: InvalidParameters, MalformedBody, BodyTimeout, TooLarge, UnsupportedMediaType,
        InvalidHeartbeat, HeartbeatFromTheFuture, RateLimited, Internal, QueueFull, OutcomeUnknown,
        DatabaseAway, DeadlineExceeded,
        Stopping;
    /// Of deciding on an event in quarantine.
    DecisionProblems: InvalidParameters, MalformedBody, NotInQuarantine, BodyTimeout, AlreadyResolved,
        TooLarge, UnsupportedMediaType, InvalidDecision, Internal, QueueFull, OutcomeUnknown,
        DatabaseAway, DeadlineExceeded, Stopping;
    /// Of booking corrections.
    BookingProblems: InvalidParameters, MalformedBody, NoSuchQuery, BodyTimeout, WindowNotFinal, TooLarge,
        UnsupportedMediaType, InvalidBooking, Internal, DatabaseAway, Busy, DeadlineExceeded;
    /// Of the event in the address.
    EventProblems: InvalidParameters, NoSuchEvent, Internal, DatabaseAway, DeadlineExceeded;
    /// Of the metrics.
    MetricsProblems: InvalidParameters, Internal, DatabaseAway, DeadlineExceeded;
    /// Of making a key.
    NewKeyProblems: InvalidParameters, MalformedBody, BodyTimeout, TooLarge, UnsupportedMediaType,
        InvalidKey, Internal, DatabaseAway, DeadlineExceeded;
    /// Of the key in the address.
    KeyProblems: InvalidParameters, NoSuchKey, Internal, DatabaseAway, DeadlineExceeded;
    /// Of rotating a key.
    KeyRotateProblems: InvalidParameters, MalformedBody, NoSuchKey, BodyTimeout, KeyNotRotated, TooLarge,
        UnsupportedMediaType, Internal, DatabaseAway, DeadlineExceeded;
    /// Of being ready.
    ReadyProblems: InvalidParameters, Internal, NotReady, DatabaseAway, DeadlineExceeded, Stopping;
    /// Of explaining a problem.
    NamedProblemProblems: InvalidParameters, NoSuchProblem, Internal, DeadlineExceeded;
}

/// One answer per status, with an example per kind.
fn responses_of(kinds: &[ProblemKind]) -> BTreeMap<String, RefOr<Response>> {
    let mut by_status: BTreeMap<u16, Vec<ProblemKind>> = BTreeMap::new();
    for kind in kinds {
        by_status.entry(kind.facts().status.as_u16()).or_default().push(*kind);
    }
    let responses = by_status
        .into_iter()
        .map(|(status, kinds)| (status.to_string(), RefOr::T(response_of(&kinds))));
    responses.collect()
}

/// The answer of one status, with an example per kind.
pub(super) fn response_of(kinds: &[ProblemKind]) -> Response {
    let titles: Vec<&str> = kinds.iter().map(|kind| kind.facts().title).collect();
    let examples = kinds.iter().map(|kind| {
        let example = ExampleBuilder::new().value(Some(example_of(*kind))).build();
        (kind.facts().name, RefOr::T(example))
    });
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name("Problem")))
        .examples_from_iter(examples)
        .build();
    ResponseBuilder::new()
        .description(titles.join("; "))
        .content("application/problem+json", content)
        .build()
}

fn example_of(kind: ProblemKind) -> Value {
    let facts = kind.facts();
    let mut problem = json!({
        "type": format!("/problems/{}", facts.name),
        "title": facts.title,
        "status": facts.status.as_u16(),
        "detail": facts.explanation,
        "request_id": examples::REQUEST_ID,
        "errors": errors_of(kind),
    });
    if let (Some(problem), Some(members)) = (problem.as_object_mut(), members_of(kind)) {
        problem.extend(members);
    }
    problem
}

fn errors_of(kind: ProblemKind) -> Value {
    match kind {
        InvalidParameters => json!([{
            "pointer": "/limit", "code": "out_of_range",
            "detail": "`limit`: `0` is not a whole number from 1 to 1000",
        }]),
        AnotherQuery => json!([{
            "pointer": "/window", "code": "another_query",
            "detail": "`window` cannot change: that would be another query. Create one under another \
                       name, or delete this one first",
        }]),
        InvalidQuery => json!([{
            "pointer": "/watermark_delay", "code": "invalid",
            "detail": "`soon` is not a duration such as `90 seconds`, `10 minutes`, `1 hour`, `2 days` \
                       or `PT1H`",
        }]),
        DoesNotFold => json!([{
            "pointer": "/granularity", "code": "does_not_fold",
            "detail": "a window of 1 hour with offset 0 seconds lies across 2026-10-01T18:30:00Z, where \
                       2026-10-02 begins in Asia/Kolkata; a query with windows of size `30 minutes` and no \
                       offset would do, or one with windows of this size and offset `30 minutes`",
        }]),
        InvalidRun => json!([{
            "pointer": "/max_batches", "code": "out_of_range", "detail": "must be at least 1",
        }]),
        InvalidHeartbeat => json!([{
            "pointer": "/source", "code": "missing",
            "detail": "`source` is required: a string of 1 to 200 characters",
        }]),
        HeartbeatFromTheFuture => json!([{
            "pointer": "/event_time", "code": "out_of_range",
            "detail": "`event_time` `2026-10-01T13:40:00Z` is more than 15 minutes ahead of the database's clock",
        }]),
        InvalidKey => json!([{
            "pointer": "/scopes/0", "code": "invalid",
            "detail": "`sales` is none of `events:write`, `sales:read`, `finance` and `admin`",
        }]),
        InvalidDecision => json!([{
            "pointer": "/note", "code": "missing",
            "detail": "`note` is required: a string of 1 to 1000 characters",
        }]),
        InvalidBooking => json!([{
            "pointer": "/windows/0/start", "code": "invalid",
            "detail": "`start` is required: an RFC 3339 time in a string",
        }]),
        WindowNotFinal => json!([{
            "pointer": "/windows/0", "code": "not_final",
            "detail": "the window from 2026-10-01T12:00:00Z to 2026-10-01T13:00:00Z is not final: the \
                       watermark is 2026-10-01T11:40:00.000Z",
        }]),
        _ => json!([]),
    }
}

fn members_of(kind: ProblemKind) -> Option<serde_json::Map<String, Value>> {
    let members = match kind {
        EventConflict => examples::ingest_conflict(),
        InvalidEvents => examples::ingest_rejected(),
        _ => return None,
    };
    members.as_object().cloned()
}
