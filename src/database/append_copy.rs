//! A large append by `copy … from stdin`, which costs Postgres about half of what statements cost.
//! It hopes that no id is taken. Where one is, nothing is stored, and a statement that can tell
//! has to do it (`append_fast`).
//!
//! It is the one append that gives the append lock back before it commits: once it has its positions
//! and ids and the commit lock, the next takes its ids while this one copies its events.

use chrono::{DateTime, Utc};
use sqlx::{Connection as _, PgConnection};

use super::DatabaseError;
use super::append::{APPEND_LOCK, COMMIT_LOCK, FutureGuard, LetNext};
use super::append_rows::attributes_text;
use super::copy_format::TupleWriter;
use super::error::Doing;
use super::partitions::table_of;
use crate::domain::{CustomerId, EventTime, IdentifiedEvent, Seq, StoreId, TillId};

/// From so many events on the round trips of a copy are worth it.
const COPY_EVENTS_MIN: usize = 400;
/// So many large appends go without hope after one that found an id taken: retries come in rows.
const DISAPPOINTMENT: u32 = 20;

const COPY_KEYS: &str = "copy event_keys (seq, event_id, content_hash) from stdin (format binary)";
const KEY_COLUMNS: i16 = 3;
const COPIED_COLUMNS: &str = "seq, received_at, event_id, order_id, status, amount, currency, \
     event_time, store_id, till_id, customer_id, item_count, attributes";
const EVENT_COLUMNS: i16 = 13;

/// Whether copying is worth trying.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CopyHope {
    /// Large appends for which there is none.
    pause: u32,
}

/// What became of a copy.
pub(super) enum Copied {
    /// Everything is stored, one after the other from here on.
    From(Seq),
    /// Nothing is stored: an id is taken.
    IdTaken,
    /// Nothing is stored: an event is too far ahead of the database's clock.
    TooFarAhead,
}

impl CopyHope {
    /// Whether to try it with so many events.
    pub(super) fn is_worth_trying(&mut self, events: usize) -> bool {
        if events < COPY_EVENTS_MIN {
            return false;
        }
        let is_hopeful = self.pause == 0;
        self.pause = self.pause.saturating_sub(1);
        is_hopeful
    }

    pub(super) const fn disappointed(&mut self) {
        self.pause = DISAPPOINTMENT;
    }
}

/// Appends events with distinct ids in a transaction of its own.
pub(super) async fn append_copy(
    session: &mut PgConnection,
    fresh: &[&IdentifiedEvent],
    guard: FutureGuard,
    let_next: LetNext<'_>,
) -> Result<Copied, DatabaseError> {
    // Everything that can be done before the lock is taken.
    let mut keys = key_tuples(fresh);
    let mut events = event_tuples(fresh);
    let newest = fresh.iter().map(|one| one.event.event_time).max();
    let mut transaction = session.begin().await.doing("begin an append")?;
    let conn = &mut *transaction;
    let (first_seq, received) = lock_and_draw(conn, fresh.len()).await?;
    fault_point!("ingest.copy_locked");
    if newest.is_some_and(|newest| newest > guard.newest_accepted(received)) {
        let_others_draw(conn).await?;
        transaction.rollback().await.doing("give up an append")?;
        return Ok(Copied::TooFarAhead);
    }
    keys.number_from(first_seq);
    events.number_from(first_seq);
    events.receive(EventTime::from_utc(received));
    if let Err(error) = copy_in(conn, COPY_KEYS, keys.tuples).await {
        if !error.as_database_error().is_some_and(|error| error.is_unique_violation()) {
            return Err(error).doing("take event ids");
        }
        transaction.rollback().await.doing("give up an append")?;
        let_others_draw(session).await?;
        fault_point!("ingest.copy_given_up");
        return Ok(Copied::IdTaken);
    }
    fault_point!("ingest.copy_ids_taken");
    be_next_to_commit(conn).await?;
    let_next();
    fault_point!("ingest.copy_next");
    let table = table_of(first_seq, fresh.len());
    let copy_events = format!("copy {table} ({COPIED_COLUMNS}) from stdin (format binary)");
    copy_in(conn, &copy_events, events.tuples).await.doing("copy events into the raw log")?;
    fault_point!("ingest.copied");
    transaction.commit().await.doing("commit an append")?;
    fault_point!("ingest.copy_committed");
    flush(session).await?;
    fault_point!("ingest.copy_flushed");
    Ok(Copied::From(first_seq))
}

/// Waits until what was committed is on disk. The lock was held only to the commit, so others append
/// meanwhile; readers may see events that nobody was told of yet, as after a lost answer.
async fn flush(conn: &mut PgConnection) -> Result<(), DatabaseError> {
    // Only there so that `tests/campaign` can show that it is missed.
    #[cfg(feature = "faults")]
    if crate::faults::is_armed("ingest.flush_left_out") {
        return Ok(());
    }
    // Any record whose commit waits for the disk: what stands before it in the write-ahead log is on
    // disk by then too.
    sqlx::query("select pg_logical_emit_message(true, 'tillmark', '')")
        .execute(conn)
        .await
        .doing("flush an append")?;
    Ok(())
}

/// Takes the append lock for the session, and under it the clock and a block of positions: nobody else
/// draws then. The commit of this transaction will not wait for the disk.
///
/// A lock of the session outlives a transaction that fails: the pool frees it when the connection comes
/// back (`connect::writing`).
async fn lock_and_draw(
    conn: &mut PgConnection,
    count: usize,
) -> Result<(Seq, DateTime<Utc>), DatabaseError> {
    let (first_seq, received, _, _): (i64, DateTime<Utc>, i64, String) = sqlx::query_as(
        "with locked as materialized (select pg_advisory_lock($1)),
             drawn as materialized (
                 select nextval('raw_events_seq') as first_seq, clock_timestamp() as received from locked)
         select first_seq, received, setval('raw_events_seq', first_seq + $2 - 1),
             set_config('synchronous_commit', 'off', true) from drawn",
    )
    .bind(APPEND_LOCK)
    .bind(i64::try_from(count).unwrap_or(i64::MAX))
    .fetch_one(conn)
    .await
    .doing("take the append lock")?;
    Ok((Seq::new(first_seq), received))
}

/// Waits until the append before has committed, and only then lets the next one draw: so commits come
/// in the order of positions.
async fn be_next_to_commit(conn: &mut PgConnection) -> Result<(), DatabaseError> {
    sqlx::query(
        "with locked as materialized (select pg_advisory_xact_lock($1))
         select pg_advisory_unlock($2) from locked",
    )
    .bind(COMMIT_LOCK)
    .bind(APPEND_LOCK)
    .execute(conn)
    .await
    .doing("wait for the append before")?;
    Ok(())
}

/// Lets the next one draw after an append that has stored nothing.
async fn let_others_draw(conn: &mut PgConnection) -> Result<(), DatabaseError> {
    sqlx::query("select pg_advisory_unlock($1)")
        .bind(APPEND_LOCK)
        .execute(conn)
        .await
        .doing("give the append lock back")?;
    Ok(())
}

async fn copy_in(
    conn: &mut PgConnection,
    statement: &str,
    tuples: TupleWriter,
) -> Result<(), sqlx::Error> {
    let mut copy = conn.copy_in_raw(statement).await?;
    copy.send(tuples.finish()).await?;
    copy.finish().await.map(drop)
}

/// Tuples that begin with a position which is not drawn yet.
struct Numbered {
    tuples: TupleWriter,
    /// Of each tuple, how many events stand before it.
    places: Vec<usize>,
}

impl Numbered {
    fn number_from(&mut self, first_seq: Seq) {
        for (tuple, place) in self.places.iter().enumerate() {
            let place = u32::try_from(*place).unwrap_or(u32::MAX);
            self.tuples.set_integer(tuple, 0, first_seq.plus(place).get());
        }
    }

    fn receive(&mut self, received: EventTime) {
        for tuple in 0..self.places.len() {
            self.tuples.set_time(tuple, 1, received);
        }
    }
}

/// In id order, so that neighbours in the index are written together.
fn key_tuples(fresh: &[&IdentifiedEvent]) -> Numbered {
    let mut places: Vec<usize> = (0..fresh.len()).collect();
    places.sort_unstable_by_key(|place| fresh[*place].event.event_id.as_str());
    let mut tuples = TupleWriter::default();
    for identified in places.iter().map(|place| fresh[*place]) {
        tuples.begin(KEY_COLUMNS);
        tuples.integer(0);
        tuples.bytes(identified.event.event_id.as_str().as_bytes());
        tuples.bytes(&identified.content_hash.0);
    }
    Numbered { tuples, places }
}

fn event_tuples(fresh: &[&IdentifiedEvent]) -> Numbered {
    let mut tuples = TupleWriter::default();
    for event in fresh.iter().map(|identified| &identified.event) {
        tuples.begin(EVENT_COLUMNS);
        tuples.integer(0);
        tuples.integer(0);
        tuples.bytes(event.event_id.as_str().as_bytes());
        tuples.bytes(event.order_id.as_str().as_bytes());
        tuples.bytes(event.status.as_str().as_bytes());
        tuples.amount(event.amount);
        tuples.bytes(event.currency.code().as_bytes());
        tuples.time(event.event_time);
        tuples.optional(event.store_id.as_ref().map(StoreId::as_str));
        tuples.optional(event.till_id.as_ref().map(TillId::as_str));
        tuples.optional(event.customer_id.as_ref().map(CustomerId::as_str));
        match event.item_count {
            Some(count) => tuples.integer(count),
            None => tuples.null(),
        }
        match attributes_text(event) {
            Some(text) => tuples.json(&text),
            None => tuples.null(),
        }
    }
    Numbered { tuples, places: (0..fresh.len()).collect() }
}
