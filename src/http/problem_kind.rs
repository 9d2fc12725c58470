//! Every kind of problem that the service answers with, and what to say of it.

use axum::http::StatusCode;

/// A kind of problem: a stable name, a status, and words for the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ProblemKind {
    BadRequest,
    InvalidParameters,
    MalformedBody,
    Unauthorized,
    MissingScope,
    OtherStores,
    /// A page of another origin asks.
    ForeignPage,
    NotFound,
    NoSuchQuery,
    NoSuchEvent,
    NotInQuarantine,
    NoSuchKey,
    NoSuchProblem,
    MethodNotAllowed,
    NotAcceptable,
    BodyTimeout,
    EventConflict,
    AlreadyResolved,
    AnotherQuery,
    QueryPaused,
    WindowNotFinal,
    KeyNotRotated,
    TooLarge,
    UnsupportedMediaType,
    NotEvents,
    InvalidEvents,
    InvalidHeartbeat,
    HeartbeatFromTheFuture,
    InvalidDecision,
    InvalidQuery,
    InvalidRun,
    DoesNotFold,
    TooManyWindows,
    InvalidBooking,
    InvalidKey,
    RateLimited,
    Internal,
    QueueFull,
    OutcomeUnknown,
    DatabaseAway,
    Busy,
    DeadlineExceeded,
    RunsWaiting,
    RunFailed,
    NotReady,
    Stopping,
}

/// What is said of a kind of problem.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts {
    /// The last part of its `type`, `/problems/<name>`.
    pub(super) name: &'static str,
    /// The status it is answered with.
    pub(super) status: StatusCode,
    /// A few words, the same every time.
    pub(super) title: &'static str,
    /// What it means and what to do; also the `detail` where there is nothing more exact to say.
    pub(super) explanation: &'static str,
}

const fn facts(
    name: &'static str,
    status: StatusCode,
    title: &'static str,
    explanation: &'static str,
) -> Facts {
    Facts { name, status, title, explanation }
}

impl ProblemKind {
    /// All of them, by status.
    pub(super) const ALL: [Self; 46] = [
        Self::BadRequest,
        Self::InvalidParameters,
        Self::MalformedBody,
        Self::Unauthorized,
        Self::MissingScope,
        Self::OtherStores,
        Self::ForeignPage,
        Self::NotFound,
        Self::NoSuchQuery,
        Self::NoSuchEvent,
        Self::NotInQuarantine,
        Self::NoSuchKey,
        Self::NoSuchProblem,
        Self::MethodNotAllowed,
        Self::NotAcceptable,
        Self::BodyTimeout,
        Self::EventConflict,
        Self::AlreadyResolved,
        Self::AnotherQuery,
        Self::QueryPaused,
        Self::WindowNotFinal,
        Self::KeyNotRotated,
        Self::TooLarge,
        Self::UnsupportedMediaType,
        Self::NotEvents,
        Self::InvalidEvents,
        Self::InvalidHeartbeat,
        Self::HeartbeatFromTheFuture,
        Self::InvalidDecision,
        Self::InvalidQuery,
        Self::InvalidRun,
        Self::DoesNotFold,
        Self::TooManyWindows,
        Self::InvalidBooking,
        Self::InvalidKey,
        Self::RateLimited,
        Self::Internal,
        Self::QueueFull,
        Self::OutcomeUnknown,
        Self::DatabaseAway,
        Self::Busy,
        Self::DeadlineExceeded,
        Self::RunsWaiting,
        Self::RunFailed,
        Self::NotReady,
        Self::Stopping,
    ];

    /// What is said of this kind: the one place where problems become statuses.
    // Two lines a kind: wrapped, nobody would see the whole of it.
    #[rustfmt::skip]
    pub(super) const fn facts(self) -> Facts {
        match self {
            Self::BadRequest => facts("bad-request", StatusCode::BAD_REQUEST, "The request cannot be understood",
                "Something in the request breaks the rules of HTTP. Correct it before sending it again."),
            Self::InvalidParameters => facts("invalid-parameters", StatusCode::BAD_REQUEST, "Query parameters are wrong",
                "Every entry of `errors` names one parameter. Unknown and repeated parameters are refused, never ignored."),
            Self::MalformedBody => facts("malformed-body", StatusCode::BAD_REQUEST, "The body cannot be read",
                "The body as a whole is not what its `content-type` and `content-encoding` say; `detail` says where. Nothing was stored."),
            Self::Unauthorized => facts("unauthorized", StatusCode::UNAUTHORIZED, "A key is needed",
                "Send an API key that works in the header `Authorization: Bearer <key>`. `tillmark keys create` makes one."),
            Self::MissingScope => facts("missing-scope", StatusCode::FORBIDDEN, "The key does not allow this",
                "The key works, but has not the scope that this address needs; `detail` names it. Nothing was done."),
            Self::OtherStores => facts("other-stores", StatusCode::FORBIDDEN, "The key is bound to some stores",
                "The key is bound to stores, and what is here is of all stores together. Read a query whose `group_by` has `store_id`, or use a key that is not bound."),
            Self::ForeignPage => facts("foreign-page", StatusCode::FORBIDDEN, "A page of another origin may not ask",
                "While there is no API key, only this machine's programs and the service's own pages are let in: `Origin` must be the service's own or one of TILLMARK_CORS_ORIGINS, and on a loopback address `Host` must be an address or `localhost`."),
            Self::NotFound => facts("not-found", StatusCode::NOT_FOUND, "Nothing is at this address",
                "There is no such address. `/docs` shows all there are."),
            Self::NoSuchQuery => facts("no-such-query", StatusCode::NOT_FOUND, "There is no such query",
                "No query has this name. `GET /v1/queries` lists those there are."),
            Self::NoSuchEvent => facts("no-such-event", StatusCode::NOT_FOUND, "There is no such event",
                "No event of this id was ever stored, in the log or in quarantine."),
            Self::NotInQuarantine => facts("not-in-quarantine", StatusCode::NOT_FOUND, "The event is not in quarantine",
                "No event of this id is or was in quarantine. `GET /v1/quarantine` lists those that wait there."),
            Self::NoSuchKey => facts("no-such-key", StatusCode::NOT_FOUND, "There is no such key",
                "No key has this id, the part between `tm_` and the secret. `GET /v1/keys` lists those there are."),
            Self::NoSuchProblem => facts("no-such-problem", StatusCode::NOT_FOUND, "There is no such kind of problem",
                "The service never answers with a problem of this name."),
            Self::MethodNotAllowed => facts("method-not-allowed", StatusCode::METHOD_NOT_ALLOWED, "The address does not take this method",
                "The header `Allow` lists the methods that this address takes."),
            Self::NotAcceptable => facts("not-acceptable", StatusCode::NOT_ACCEPTABLE, "The answer cannot be had in this form",
                "The header `Accept` names no form that this address answers in: `application/json`, `text/csv` or `application/x-ndjson`. The parameter `format` chooses one too."),
            Self::BodyTimeout => facts("body-timeout", StatusCode::REQUEST_TIMEOUT, "The body came too slowly",
                "The body was not complete in time (`GET /v1/limits`). Nothing was stored; send it again, in smaller parts."),
            Self::EventConflict => facts("event-conflict", StatusCode::CONFLICT, "Every event is in conflict with one stored before",
                "An event with the same `event_id` and other content is stored already; the first one stays. Sending the same again cannot help: a new event needs a new id."),
            Self::AlreadyResolved => facts("already-resolved", StatusCode::CONFLICT, "Somebody has decided already",
                "The event was released or rejected before; `detail` says when and why. That decision stays."),
            Self::AnotherQuery => facts("another-query", StatusCode::CONFLICT, "The change would make it another query",
                "Only `watermark_delay`, `trigger`, `max_events_per_batch` and `idle_timeout` of a query may change. For anything else create a query under another name."),
            Self::QueryPaused => facts("query-paused", StatusCode::CONFLICT, "The query is paused",
                "A paused query does not run. Resume it with `POST /v1/queries/{name}/resume` first."),
            Self::WindowNotFinal => facts("window-not-final", StatusCode::CONFLICT, "A window is not final",
                "Only final windows are corrected: an event that comes for an open one counts by itself. Nothing was booked. `complete_through` tells up to where windows are final."),
            Self::KeyNotRotated => facts("key-not-rotated", StatusCode::CONFLICT, "The key cannot be rotated",
                "A key is rotated while it works, and not again while the key that took its place works too; `detail` says which it is."),
            Self::TooLarge => facts("too-large", StatusCode::PAYLOAD_TOO_LARGE, "The body is too large",
                "The body has more bytes, before or after decompression, or more events than allowed; `detail` and `GET /v1/limits` say how many are. Nothing was stored; send it in parts."),
            Self::UnsupportedMediaType => facts("unsupported-media-type", StatusCode::UNSUPPORTED_MEDIA_TYPE, "The body is of a kind not taken here",
                "`detail` names the `content-type` or `content-encoding` that this address takes."),
            Self::NotEvents => facts("not-events", StatusCode::UNPROCESSABLE_ENTITY, "The body is JSON, but no events",
                "Send one event, an array of events, or `{\"events\": [...]}` with nothing beside it; of CloudEvents one, or an array under its own content type. Nothing was stored."),
            Self::InvalidEvents => facts("invalid-events", StatusCode::UNPROCESSABLE_ENTITY, "No event was stored",
                "Every event was rejected, or one of an `atomic=true` request was bad. `results` says of each what is wrong and where."),
            Self::InvalidHeartbeat => facts("invalid-heartbeat", StatusCode::UNPROCESSABLE_ENTITY, "The heartbeat is wrong",
                "Every entry of `errors` points at one part of it and says what would be right. Nothing was stored."),
            Self::HeartbeatFromTheFuture => facts("heartbeat-from-the-future", StatusCode::UNPROCESSABLE_ENTITY, "The heartbeat is too far ahead",
                "Its `event_time` is further ahead of the database's clock than `max_future_skew` of `GET /v1/limits` allows. Nothing was stored."),
            Self::InvalidDecision => facts("invalid-decision", StatusCode::UNPROCESSABLE_ENTITY, "The decision is wrong",
                "Every entry of `errors` points at one part of it and says what would be right. Nothing was changed."),
            Self::InvalidQuery => facts("invalid-query", StatusCode::UNPROCESSABLE_ENTITY, "The query's rule is wrong",
                "Every entry of `errors` points at one part of the rule and says what would be right. Nothing was changed."),
            Self::InvalidRun => facts("invalid-run", StatusCode::UNPROCESSABLE_ENTITY, "The run cannot be asked for so",
                "The body of a run may be left out or be `{\"max_batches\": n}` with n of at least 1."),
            Self::DoesNotFold => facts("does-not-fold", StatusCode::UNPROCESSABLE_ENTITY, "The windows do not fold into these periods",
                "A window lies across a boundary of the calendar within the asked range, or the query's windows are not tumbling; `detail` says where, and which window size or offset would do."),
            Self::TooManyWindows => facts("too-many-windows", StatusCode::UNPROCESSABLE_ENTITY, "The report would have too many windows",
                "A report of so many windows does not fit beside others. Ask for parts of it, by `from` and `to`."),
            Self::InvalidBooking => facts("invalid-booking", StatusCode::UNPROCESSABLE_ENTITY, "The booking is wrong",
                "Every entry of `errors` points at one part of it and says what would be right. Nothing was booked."),
            Self::InvalidKey => facts("invalid-key", StatusCode::UNPROCESSABLE_ENTITY, "The key cannot be made so",
                "Every entry of `errors` points at one part of the body and says what would be right. No key was made."),
            Self::RateLimited => facts("rate-limited", StatusCode::TOO_MANY_REQUESTS, "The key posts too many events",
                "The key has posted as many events as it may in this time. Nothing was stored; send the same events with the same ids again after `Retry-After`."),
            Self::Internal => facts("internal-error", StatusCode::INTERNAL_SERVER_ERROR, "The service failed",
                "Something is wrong inside the service; its log has the cause under this `request_id`. Posting the same events again is safe."),
            Self::QueueFull => facts("queue-full", StatusCode::SERVICE_UNAVAILABLE, "Too many events are waiting to be stored",
                "The queue in front of the database is full; nothing was stored. Send the same events with the same ids again after `Retry-After`."),
            Self::OutcomeUnknown => facts("outcome-unknown", StatusCode::SERVICE_UNAVAILABLE, "Whether the events are stored is not known",
                "The database failed while the events were being stored. Send the same events with the same ids again after `Retry-After`; what is stored already counts once."),
            Self::DatabaseAway => facts("database-away", StatusCode::SERVICE_UNAVAILABLE, "The database cannot be reached",
                "The database does not answer, or not in time. Ask again after `Retry-After`."),
            Self::Busy => facts("busy", StatusCode::SERVICE_UNAVAILABLE, "The service is busy",
                "As many reports are being made, or lists read, as the service makes and reads at a time. Posting events goes on all the same. Ask again after `Retry-After`."),
            Self::DeadlineExceeded => facts("deadline-exceeded", StatusCode::SERVICE_UNAVAILABLE, "The answer took too long",
                "The request was not answered in time (`GET /v1/limits`); what it began may still be finished. Asking again after `Retry-After` is safe, but for a key: look in `GET /v1/keys` whether it was made, and revoke what nobody saw."),
            Self::RunsWaiting => facts("runs-waiting", StatusCode::SERVICE_UNAVAILABLE, "Too many runs of the query are waiting",
                "Runs of one query take turns, and too many wait for theirs already. Ask again after `Retry-After`."),
            Self::RunFailed => facts("run-failed", StatusCode::SERVICE_UNAVAILABLE, "A micro-batch of the query failed",
                "The query has the reason as its `error` and tries again by itself. Ask again after `Retry-After`."),
            Self::NotReady => facts("not-ready", StatusCode::SERVICE_UNAVAILABLE, "The service is not ready",
                "The service is starting, or its database cannot do what it must; `errors` say what is wrong with it. Ask again after `Retry-After`."),
            Self::Stopping => facts("stopping", StatusCode::SERVICE_UNAVAILABLE, "The service is stopping",
                "The service is being stopped; nothing was stored. Ask again after `Retry-After`."),
        }
    }

    /// The kind of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.facts().name == name)
    }

    /// The kind for an answer that the framework made without one.
    pub(super) fn of_status(status: StatusCode) -> Self {
        match status {
            StatusCode::UNAUTHORIZED => Self::Unauthorized,
            StatusCode::FORBIDDEN => Self::MissingScope,
            StatusCode::NOT_FOUND => Self::NotFound,
            StatusCode::METHOD_NOT_ALLOWED => Self::MethodNotAllowed,
            StatusCode::NOT_ACCEPTABLE => Self::NotAcceptable,
            StatusCode::REQUEST_TIMEOUT => Self::BodyTimeout,
            StatusCode::PAYLOAD_TOO_LARGE => Self::TooLarge,
            StatusCode::UNSUPPORTED_MEDIA_TYPE => Self::UnsupportedMediaType,
            StatusCode::TOO_MANY_REQUESTS => Self::RateLimited,
            status if status.is_server_error() => Self::Internal,
            _ => Self::BadRequest,
        }
    }

    /// After how many seconds to try again, where that helps; of a key over its rate, it depends.
    pub(super) const fn retry_after_seconds(self) -> Option<u8> {
        match self {
            Self::QueueFull | Self::OutcomeUnknown | Self::NotReady => Some(1),
            Self::DatabaseAway
            | Self::Busy
            | Self::DeadlineExceeded
            | Self::RunsWaiting
            | Self::RunFailed
            | Self::Stopping => Some(5),
            Self::BadRequest
            | Self::InvalidParameters
            | Self::MalformedBody
            | Self::Unauthorized
            | Self::MissingScope
            | Self::OtherStores
            | Self::ForeignPage
            | Self::NotFound
            | Self::NoSuchQuery
            | Self::NoSuchEvent
            | Self::NotInQuarantine
            | Self::NoSuchKey
            | Self::NoSuchProblem
            | Self::MethodNotAllowed
            | Self::NotAcceptable
            | Self::BodyTimeout
            | Self::EventConflict
            | Self::AlreadyResolved
            | Self::AnotherQuery
            | Self::QueryPaused
            | Self::WindowNotFinal
            | Self::KeyNotRotated
            | Self::TooLarge
            | Self::UnsupportedMediaType
            | Self::NotEvents
            | Self::InvalidEvents
            | Self::InvalidHeartbeat
            | Self::HeartbeatFromTheFuture
            | Self::InvalidDecision
            | Self::InvalidQuery
            | Self::InvalidRun
            | Self::DoesNotFold
            | Self::TooManyWindows
            | Self::InvalidBooking
            | Self::InvalidKey
            | Self::RateLimited
            | Self::Internal => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_name_of_its_own_and_waits_only_where_that_helps() {
        for kind in ProblemKind::ALL {
            assert_eq!(ProblemKind::named(kind.facts().name), Some(kind));
            let unavailable = kind.facts().status == StatusCode::SERVICE_UNAVAILABLE;
            assert_eq!(kind.retry_after_seconds().is_some(), unavailable, "{kind:?}");
        }
    }
}
