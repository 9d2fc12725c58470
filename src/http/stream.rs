//! A query's changes as they are committed: Server-Sent Events.
//!
//! An event's id says up to which micro-batch everything has been delivered, and micro-batches are kept
//! for good; so a client that comes back with the last one misses nothing, whichever replica it comes
//! to, though some may reach it twice. What is sent is read when the client takes it: a slow one is sent
//! later changes together with earlier ones, one that takes nothing for as long as a request may last is
//! cut off, and neither makes anything grow here.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse as _, Response};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tracing::debug;

use super::authorize::LetIn;
use super::params::Params;
use super::problem::Problem;
use super::problem_docs::QueryProblems;
use super::row_stream::{Outlet, outlet};
use super::stores::Stores;
use super::stream_changes::{Changes, ChangesKey, resync};
use super::windows::WhichQuery;
use super::{App, examples};
use crate::access::Caller;
use crate::database::{BatchSpan, Revision, Standing};
use crate::domain::{BatchId, StoreReach};

const LAST_EVENT_ID: &str = "last-event-id";
/// How often something is sent, so that both sides notice when the other has gone; and how often the
/// key is looked at.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(5);
/// So many readings of what has changed may fail in a row before the client is told to read anew.
const FAILURES_MAX: u32 = 3;
/// How long to wait after the database failed.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// How long a client is to wait before it comes back.
const CLIENT_RETRY_MS: u32 = 1_000;
/// A client that is further behind reads anew.
const BATCHES_BEHIND_MAX: i64 = 10_000;

/// Follow a query.
///
/// Server-Sent Events, as micro-batches are committed: `windows` with the rows that they wrote and how far
/// windows are complete, `late` with the events that came too late, `progress` with the entry of each
/// micro-batch. Each event has an id; a client that comes back with it as `Last-Event-ID`, as browsers do by
/// themselves, misses nothing, and may be told something twice. `resync` says that too much has changed
/// since, or that the query was started over: read windows anew, the stream goes on from there. A key bound
/// to stores gets `windows` and `late` of its stores. Comments come when there is nothing to tell; the
/// stream ends when the service stops, the key is revoked or the query is deleted.
#[utoipa::path(get, path = "/v1/stream", tag = "Reading",
    params(WhichQuery, ("Last-Event-ID" = Option<String>, Header,
        description = "The id of the last event received; left out: from now on")),
    responses(
        (status = 200, description = "The events, without end", body = String,
            content_type = "text/event-stream", example = json!(examples::events_of_stream())),
        QueryProblems))]
pub(super) async fn follow(
    State(app): State<App>,
    LetIn(caller): LetIn,
    stores: Stores,
    headers: HeaderMap,
    mut params: Params,
) -> Result<Response, Problem> {
    let name = params.query_name()?;
    params.finish()?;
    let now = app.standings.of(&name).await?;
    let reach = stores.of_query(&now.query)?;
    let place = app.stream_place()?;
    let id = headers.get(LAST_EVENT_ID).map(|id| id.to_str().ok().and_then(|id| id.parse().ok()));
    let (seen, opening) = opening(id, &now)?;
    let (outlet, body) = outlet(&app);
    let standing = app.followers.follow(now);
    let work = app.work.clone();
    let feed = Feed { app, caller, reach, standing, seen, failures: 0, outlet, _place: place };
    work.spawn(feed.run(opening));
    let head = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
    Ok((head, body).into_response())
}

/// Up to which micro-batch a client has everything; the id of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct EventId {
    query_id: i64,
    history_since_us: i64,
    batch_id: BatchId,
}

impl EventId {
    /// Everything that a query has done so far.
    pub(super) const fn of(revision: Revision) -> Self {
        Self {
            query_id: revision.query_id(),
            history_since_us: revision.history_since().timestamp_micros(),
            batch_id: revision.last_batch_id(),
        }
    }

    /// Up to another micro-batch.
    pub(super) const fn at(self, batch_id: BatchId) -> Self {
        Self { batch_id, ..self }
    }

    /// Whether what has changed since can be told, `now` being everything so far.
    const fn is_followed_by(self, now: Self) -> bool {
        let behind = now.batch_id.get().saturating_sub(self.batch_id.get());
        self.query_id == now.query_id
            && self.history_since_us == now.history_since_us
            && behind >= 0
            && behind <= BATCHES_BEHIND_MAX
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { query_id, history_since_us, batch_id } = self;
        write!(f, "{query_id}.{history_since_us}.{batch_id}")
    }
}

impl FromStr for EventId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut numbers = text.split('.').map(|part| part.parse().ok());
        let mut number = || numbers.next().flatten().ok_or("is no id of ours");
        let id = Self {
            query_id: number()?,
            history_since_us: number()?,
            batch_id: BatchId::new(number()?),
        };
        if id.to_string() == text { Ok(id) } else { Err("is no id of ours") }
    }
}

/// Where a client begins, and what it is told first. `id` is what it came with, if with anything, and if
/// that is an id.
fn opening(id: Option<Option<EventId>>, now: &Standing) -> Result<(EventId, Bytes), Problem> {
    let here = EventId::of(now.revision);
    match id {
        // An id without data is no event, but is remembered.
        None => Ok((here, format!("retry: {CLIENT_RETRY_MS}\nid: {here}\n\n").into())),
        Some(Some(id)) if id.is_followed_by(here) => {
            Ok((id, format!("retry: {CLIENT_RETRY_MS}\n\n").into()))
        }
        Some(_) => Ok((here, resync(now)?)),
    }
}

/// One client that follows one query.
struct Feed {
    app: App,
    caller: Caller,
    reach: StoreReach,
    standing: watch::Receiver<Arc<Standing>>,
    seen: EventId,
    /// How often in a row what has changed could not be read.
    failures: u32,
    outlet: Outlet,
    _place: OwnedSemaphorePermit,
}

impl Feed {
    async fn run(mut self, opening: Bytes) {
        let mut chunk = opening;
        while self.put(chunk).await && self.app.keyring.lets_stay(&self.caller) {
            match self.next().await {
                Some(next) => chunk = next,
                None => break,
            }
        }
        self.outlet.end_soon().await;
    }

    /// Whether the client took it; not when the service stops meanwhile.
    async fn put(&self, chunk: Bytes) -> bool {
        tokio::select! {
            biased;
            () = self.app.readiness.stopping() => false,
            is_taken = self.outlet.put(chunk) => is_taken,
        }
    }

    /// What to send next: changes as soon as there are any, or else a comment. Nothing at the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let now = Arc::clone(&self.standing.borrow_and_update());
            // Another query of the same name is to be asked for anew.
            if now.revision.query_id() != self.seen.query_id {
                return None;
            }
            let changes = self.changes(&now).await;
            if changes.is_ok() {
                self.failures = 0;
            }
            let wait = match changes {
                Ok(Some(changes)) => return Some(changes),
                Ok(None) => HEARTBEAT_EVERY,
                // It is in the log. What cannot be told the client finds where it reads anew.
                Err(_) if self.failures >= FAILURES_MAX => {
                    (self.failures, self.seen) = (0, EventId::of(now.revision));
                    return resync(&now).ok();
                }
                Err(_) => {
                    self.failures += 1;
                    RETRY_PAUSE
                }
            };
            tokio::select! {
                biased;
                () = self.app.readiness.stopping() => return None,
                () = self.outlet.closed() => return None,
                changed = self.standing.changed() => changed.ok()?,
                () = tokio::time::sleep(wait) => return Some(Bytes::from_static(b":\n\n")),
            }
        }
    }

    /// What has changed since, as far as it fits into one step; nothing when nothing has.
    async fn changes(&mut self, now: &Standing) -> Result<Option<Bytes>, Problem> {
        let here = EventId::of(now.revision);
        if here == self.seen {
            return Ok(None);
        }
        if !self.seen.is_followed_by(here) {
            self.seen = here;
            return resync(now).map(Some);
        }
        let batches = BatchSpan { after: self.seen.batch_id, last: here.batch_id };
        let key = ChangesKey { seen: self.seen, batches, reach: self.reach.clone() };
        let Changes { last, text } =
            self.app.changes.get(&key, async || key.read(&self.app.database, now).await).await?;
        debug!(query.name = %now.query.name, batch.id = %last, "Told what has changed");
        self.seen = self.seen.at(last);
        Ok(Some(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_as_itself_and_nothing_else_as_one() {
        let id = EventId {
            query_id: 7,
            history_since_us: 1_790_000_000_000_001,
            batch_id: BatchId::new(42),
        };
        assert_eq!(id.to_string().parse(), Ok(id));
        let first = id.at(BatchId::new(-1));
        assert_eq!(first.to_string().parse(), Ok(first));
        for text in ["", "7", "7.1", "7.1.2.3", "7.1.x", "07.1.2", " 7.1.2", "7.1.2 ", "7.1.+2"] {
            assert!(text.parse::<EventId>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn what_is_too_far_behind_or_of_another_history_is_not_followed() {
        let id = |query_id, history_since_us, batch_id| EventId {
            query_id,
            history_since_us,
            batch_id: BatchId::new(batch_id),
        };
        let now = id(7, 1, 20_000);
        for (case, seen, is_followed) in [
            ("the same", now, true),
            ("one before", id(7, 1, 19_999), true),
            ("as far as can be", id(7, 1, 10_000), true),
            ("one further", id(7, 1, 9_999), false),
            ("ahead: the database was put back", id(7, 1, 20_001), false),
            ("before a reset", id(7, 0, 20_000), false),
            ("another query", id(6, 1, 20_000), false),
        ] {
            assert_eq!(seen.is_followed_by(now), is_followed, "{case}");
        }
    }
}
