//! Appending to the raw log: many requests, one transaction.
//!
//! Invariants:
//! * The append lock is taken before the first `seq` is drawn, and given back only by who holds the
//!   commit lock, which is held to the commit, in every replica. So `seq` order is commit order, and a
//!   reader may ask for `seq > position`.
//! * Whoever holds both finds every id that is taken, and nobody else can take one, so what is decided
//!   here stays true.
//! * Either all of a request's good events are stored, or the answer is an error.
//! * What claims to come from the future never gets into the log by itself: it would close
//!   everybody's windows.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::pool::PoolConnection;
use sqlx::{Connection, PgConnection, Postgres};

use super::append_copy::CopyHope;
use super::append_decisions::{Decided, Decisions};
use super::append_fast::append_fast;
use super::append_rows::{
    draw_seqs, insert_events, insert_heartbeats, insert_keys, known_ids, record_conflicts,
};
use super::error::Doing;
use super::log_tail::Block;
use super::partitions::LogRoom;
use super::quarantine::{quarantine_insert, quarantine_release, quarantined_for_release};
use super::{Database, DatabaseError};
use crate::domain::{
    ContentHash, EventId, EventTime, Heartbeat, IdentifiedEvent, KeyId, Note, Seq, Span,
};

/// Held by whoever draws positions and takes ids. Any number that no other program on the same database
/// uses for an advisory lock.
pub(super) const APPEND_LOCK: i64 = 0x7469_6c6c_6d61_726b;
/// Held by whoever commits next; taken under the append lock.
pub(super) const COMMIT_LOCK: i64 = 0x7469_6c6c_636f_6d74;

/// Longer than any statement of an append may run: the server, or the way to it, is gone without a word.
const APPEND_MAX: Duration = Duration::from_secs(25);

/// What one request wants to append.
#[derive(Debug, Clone)]
pub enum AppendRequest {
    /// Valid events.
    Events {
        /// In the order they were posted.
        events: Vec<IdentifiedEvent>,
        /// Store nothing when one of them is in conflict.
        all_or_nothing: bool,
    },
    /// A source's word that nothing older will come.
    Heartbeat(Heartbeat),
    /// An event that was in quarantine.
    Release(Release),
}

impl AppendRequest {
    /// The events that it posts.
    pub fn events(&self) -> &[IdentifiedEvent] {
        match self {
            Self::Events { events, .. } => events,
            Self::Heartbeat(_) | Self::Release(_) => &[],
        }
    }
}

/// Lets an event out of quarantine.
#[derive(Debug, Clone)]
pub struct Release {
    /// Which.
    pub event_id: EventId,
    /// The time it counts at, when that is not the one it came with.
    pub event_time: Option<EventTime>,
    /// Why, by whoever decided.
    pub note: Note,
    /// With which key, where there was one.
    pub key_id: Option<KeyId>,
}

/// What became of one event, heartbeat or release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appended {
    /// It is in the raw log.
    Accepted(Seq),
    /// It was there already, with the same content.
    Duplicate(Seq),
    /// Its id was there already, with other content; this one is refused.
    Conflict {
        /// Where the first stands; nothing while it is in quarantine or was rejected there.
        first_seq: Option<Seq>,
        /// Whether the first came earlier in the same all-or-nothing request, and is not stored either.
        in_same_request: bool,
        /// What the first says.
        first_content_hash: ContentHash,
    },
    /// It claims to come from too far in the future. An event is in quarantine, and it may have been
    /// so before; of a heartbeat nothing is stored.
    Quarantined,
    /// It was in quarantine, and an operator rejected it.
    RejectedBefore,
    /// Good in itself, but another event of its all-or-nothing request was in conflict.
    NotStored,
    /// There is nothing to release: no event of this id is waiting in quarantine.
    NotInQuarantine,
}

impl Appended {
    /// Where it stands now that did not stand before.
    pub const fn accepted(&self) -> Option<Seq> {
        match self {
            Self::Accepted(seq) => Some(*seq),
            Self::Duplicate(_)
            | Self::Conflict { .. }
            | Self::Quarantined
            | Self::RejectedBefore
            | Self::NotStored
            | Self::NotInQuarantine => None,
        }
    }
}

/// What a writer keeps from one append to the next. It costs little to start anew.
#[derive(Debug, Default)]
pub struct AppendMemory {
    pub(super) room: LogRoom,
    pub(super) copy_hope: CopyHope,
    /// What the last append drew, where it drew a block of its own.
    pub(super) block: Option<Block>,
    /// The connection of the append before: taking one out of the pool and giving it back takes two
    /// round trips, as much again as an append.
    session: Option<PoolConnection<Postgres>>,
}

impl AppendMemory {
    /// Gives the connection back, which may end while nobody uses it.
    pub fn rest(&mut self) {
        self.session = None;
    }
}

/// Called by an append that is still under way once another one of its process would not have to wait for
/// its ids. The small ones never do.
pub type LetNext<'append> = &'append mut (dyn FnMut() + Send);

/// The bounds under which appends happen.
#[derive(Debug, Clone, Copy)]
pub struct FutureGuard {
    /// How far ahead of the database's clock an event time may be; `None`: any distance.
    pub skew_max: Option<Span>,
}

impl FutureGuard {
    /// The newest event time that gets into the log at `now`.
    pub(super) fn newest_accepted(self, now: DateTime<Utc>) -> EventTime {
        let now = EventTime::from_utc(now);
        self.skew_max.map_or(EventTime::LATEST, |skew| now.plus(skew))
    }
}

impl Database {
    /// Appends what `requests` want in one transaction and answers, request by request, what
    /// became of each. When this returns without error, everything accepted is durable.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`]; whether anything was stored may be unknown then. Appending the
    /// same again is always safe.
    pub async fn append(
        &self,
        requests: &[AppendRequest],
        guard: FutureGuard,
        memory: &mut AppendMemory,
        let_next: LetNext<'_>,
    ) -> Result<Vec<Vec<Appended>>, DatabaseError> {
        memory.block = None;
        let mut session = match memory.session.take() {
            Some(session) => session,
            None => {
                let session = self.ingest.acquire().await.inspect_err(|_| self.forget(memory));
                session.doing("reach the database")?
            }
        };
        let appending = append_in_turn(&mut session, requests, guard, memory, let_next);
        let failed = match tokio::time::timeout(APPEND_MAX, appending).await {
            Ok(Ok(appended)) => {
                memory.session = Some(session);
                return Ok(appended);
            }
            // The pool looks at the connection first.
            Ok(Err(error)) => Err(error),
            // Nobody answers at the other end, and would not answer the pool either.
            Err(elapsed) => {
                drop(session.detach());
                Err(sqlx::Error::Io(elapsed.into())).doing("append")
            }
        };
        self.forget(memory);
        failed
    }

    /// After a failure nothing is known of the log: another server may have taken over.
    fn forget(&self, memory: &mut AppendMemory) {
        memory.room = LogRoom::default();
        self.tail.forget();
    }

    /// Keeps what was appended a moment ago, `requests` with the answer `appended`, for the queries of
    /// this process that follow the log.
    pub fn append_remember(
        &self,
        requests: Vec<AppendRequest>,
        appended: &[Vec<Appended>],
        memory: &mut AppendMemory,
    ) {
        if let Some(block) = memory.block.take() {
            self.tail.extend(block, requests, appended);
        }
    }
}

/// Appends, and where another append holds everybody up because its process says nothing, ends that one.
async fn append_in_turn(
    conn: &mut PgConnection,
    requests: &[AppendRequest],
    guard: FutureGuard,
    memory: &mut AppendMemory,
    let_next: LetNext<'_>,
) -> Result<Vec<Vec<Appended>>, DatabaseError> {
    loop {
        match append_in(conn, requests, guard, memory, let_next).await {
            Err(error) if error.is_lock_timeout() => end_stuck_appends(conn).await?,
            outcome => return outcome,
        }
    }
}

/// Ends the sessions that hold a lock of appends and have waited for their client for seconds: a process
/// that is frozen or cut off. No time limit of the server sees it inside a copy or between transactions.
async fn end_stuck_appends(conn: &mut PgConnection) -> Result<(), DatabaseError> {
    // One's own lock of the session is given up first, or it would be held twice.
    let ended: Vec<bool> = sqlx::query_scalar(
        "with mine as materialized (select pg_advisory_unlock_all())
         select pg_terminate_backend(pid)
         from mine, (
             select distinct pid from pg_locks
             where locktype = 'advisory' and objsubid = 1 and granted
                 and database = (select oid from pg_database where datname = current_database())
                 and (classid::bigint << 32 | objid::bigint) in ($1, $2)
         ) holder join pg_stat_activity using (pid)
         where pid <> pg_backend_pid() and usename = current_user
             and wait_event = 'ClientRead' and state_change < now() - interval '3 seconds'",
    )
    .bind(APPEND_LOCK)
    .bind(COMMIT_LOCK)
    .fetch_all(conn)
    .await
    .doing("end appends that are stuck")?;
    if !ended.is_empty() {
        tracing::warn!(
            sessions.n_ended = ended.len(),
            "Ended appends whose process said nothing while it held up all others",
        );
    }
    Ok(())
}

async fn append_in(
    conn: &mut PgConnection,
    requests: &[AppendRequest],
    guard: FutureGuard,
    memory: &mut AppendMemory,
    let_next: LetNext<'_>,
) -> Result<Vec<Vec<Appended>>, DatabaseError> {
    if let Some(answers) = append_fast(conn, requests, guard, memory, let_next).await? {
        return Ok(answers);
    }
    let mut transaction = conn.begin().await.doing("begin an append")?;
    let conn = &mut *transaction;
    let now = lock_append(conn).await?;
    fault_point!("ingest.locked");
    let known = known_ids(conn, requests).await?;
    let released = quarantined_for_release(conn, requests).await?;
    let mut decisions = Decisions::start(known, &released, guard.newest_accepted(now));
    let decided: Vec<Decided> = requests.iter().map(|request| decisions.decide(request)).collect();
    let fresh = decisions.into_fresh();
    let seqs = draw_seqs(conn, fresh.records()).await?;
    fault_point!("ingest.drawn");
    let mut new_room = memory.room;
    if let Some(last) = seqs.last() {
        new_room = new_room.reach(conn, *last).await?;
        let (events, others) = seqs.split_at(fresh.events.len());
        insert_keys(conn, &fresh.events, events).await?;
        fault_point!("ingest.ids_taken");
        insert_events(conn, &fresh.events, events).await?;
        fault_point!("ingest.inserted");
        let (heartbeats, releases) = others.split_at(fresh.heartbeats.len());
        insert_heartbeats(conn, &fresh.heartbeats, heartbeats).await?;
        quarantine_release(conn, &fresh.releases, releases).await?;
    }
    quarantine_insert(conn, &fresh.aside, now, guard.skew_max).await?;
    fault_point!("ingest.put_aside");
    let pairs = decided.iter().zip(requests);
    let conflicts: Vec<_> =
        pairs.flat_map(|(decided, request)| decided.conflicts(request, &seqs)).collect();
    record_conflicts(conn, &conflicts).await?;
    transaction.commit().await.doing("commit an append")?;
    fault_point!("ingest.committed");
    memory.room = new_room;
    Ok(decided.into_iter().map(|request| request.with_seqs(&fresh, &seqs)).collect())
}

/// Takes both locks, to the end of the transaction, and then reads the database's clock.
///
/// The record in the write-ahead log makes the commit wait for the disk even where nothing else is
/// written: an answer about events that are in the log already is not to be ahead of the flush of whoever
/// stored them.
pub(super) async fn lock_append(conn: &mut PgConnection) -> Result<DateTime<Utc>, DatabaseError> {
    sqlx::query_scalar(
        "with drawing as materialized (select pg_advisory_xact_lock($1)),
             committing as materialized (select pg_advisory_xact_lock($2) from drawing)
         select clock_timestamp() from committing, pg_logical_emit_message(true, 'tillmark', '')",
    )
    .bind(APPEND_LOCK)
    .bind(COMMIT_LOCK)
    .fetch_one(conn)
    .await
    .doing("take the append lock")
}
