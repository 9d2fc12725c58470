//! The usual append: new events, some of them perhaps posted before, in one round trip or, where
//! there are many, as a copy. What is unusual (an all-or-nothing request, an event from the future, a heartbeat, a release, the end of
//! the last partition) goes the long way.

use std::collections::HashMap;

use sqlx::{FromRow as _, PgConnection};

use super::DatabaseError;
use super::append::{AppendMemory, AppendRequest, Appended, FutureGuard, LetNext};
use super::append_copy::{Copied, append_copy};
use super::append_decisions::{Decided, Decisions, Fresh, Known, Stands};
use super::append_rows::bind_events;
use super::error::Doing;
use super::log_tail::Block;
use super::values::unreadable;
use crate::domain::{ContentHash, Event, EventTime, IdentifiedEvent, Seq, Span};

/// Appends in one transaction. Answers nothing, and has stored nothing,
/// when the long way must be gone.
pub(super) async fn append_fast(
    conn: &mut PgConnection,
    requests: &[AppendRequest],
    guard: FutureGuard,
    memory: &mut AppendMemory,
    let_next: LetNext<'_>,
) -> Result<Option<Vec<Vec<Appended>>>, DatabaseError> {
    if !memory.room.is_known() || !requests.iter().all(is_usual) {
        return Ok(None);
    }
    let (decided, fresh) = decide(requests, HashMap::new());
    let is_clear = decided.iter().all(Decided::is_free_of_conflicts);
    if !is_clear || fresh.events.is_empty() {
        return Ok(None);
    }
    if memory.copy_hope.is_worth_trying(fresh.events.len()) {
        match append_copy(conn, &fresh.events, guard, let_next).await? {
            Copied::From(first_seq) => {
                memory.block = Some(Block::of(first_seq, fresh.events.len()));
                let seqs = (0_u32..).take(fresh.events.len()).map(|nth| first_seq.plus(nth));
                return Ok(Some(answers(decided, &fresh, &seqs.collect::<Vec<_>>(), memory)));
            }
            Copied::IdTaken => memory.copy_hope.disappointed(),
            Copied::TooFarAhead => return Ok(None),
        }
    }
    let Some(stored) = store(conn, &fresh.events, guard).await? else { return Ok(None) };
    fault_point!("ingest.stored");
    let known = stored.taken()?;
    memory.block = Some(Block::of(stored.first_seq, fresh.events.len()));
    let positions =
        (0_u32..).zip(&fresh.events).map(|(nth, event)| (stored.first_seq.plus(nth), event));
    let seqs: Vec<Seq> = positions
        .filter(|(_, event)| !known.contains_key(event.event.event_id.as_str()))
        .map(|(seq, _)| seq)
        .collect();
    let (decided, fresh) =
        if known.is_empty() { (decided, fresh) } else { decide(requests, known) };
    Ok(Some(answers(decided, &fresh, &seqs, memory)))
}

/// The answers, once everything is stored: the new events at `seqs`.
fn answers(
    decided: Vec<Decided>,
    fresh: &Fresh<'_>,
    seqs: &[Seq],
    memory: &mut AppendMemory,
) -> Vec<Vec<Appended>> {
    memory.room = seqs.last().map_or(memory.room, |last| memory.room.after(*last));
    decided.into_iter().map(|request| request.with_seqs(fresh, seqs)).collect()
}

fn is_usual(request: &AppendRequest) -> bool {
    matches!(request, AppendRequest::Events { all_or_nothing: false, .. })
}

fn decide(requests: &[AppendRequest], known: HashMap<String, Known>) -> (Vec<Decided>, Fresh<'_>) {
    let mut decisions = Decisions::start(known, &[], EventTime::LATEST);
    let decided = requests.iter().map(|request| decisions.decide(request)).collect();
    (decided, decisions.into_fresh())
}

/// What `append_events` answers.
#[derive(Debug, sqlx::FromRow)]
struct StoredColumns {
    first_seq: Option<i64>,
    taken_ids: Option<Vec<String>>,
    taken_hashes: Option<Vec<Vec<u8>>>,
    taken_seqs: Option<Vec<Option<i64>>>,
    taken_actions: Option<Vec<Option<String>>>,
}

struct Stored {
    first_seq: Seq,
    columns: StoredColumns,
}

impl Stored {
    /// The ids that were taken.
    fn taken(&self) -> Result<HashMap<String, Known>, DatabaseError> {
        let columns = &self.columns;
        let (Some(ids), Some(hashes), Some(seqs), Some(actions)) = (
            &columns.taken_ids,
            &columns.taken_hashes,
            &columns.taken_seqs,
            &columns.taken_actions,
        ) else {
            return Ok(HashMap::new());
        };
        let taken = ids.iter().zip(hashes).zip(seqs.iter().zip(actions));
        taken
            .map(|((event_id, hash), (seq, action))| {
                let hash =
                    hash.as_slice().try_into().map_err(|_| unreadable("content hash", event_id))?;
                let stands = Stands::of(*seq, action.is_some());
                Ok((event_id.clone(), Known { content_hash: ContentHash(hash), stands }))
            })
            .collect()
    }
}

async fn store(
    conn: &mut PgConnection,
    fresh: &[&IdentifiedEvent],
    guard: FutureGuard,
) -> Result<Option<Stored>, DatabaseError> {
    let hashes: Vec<&[u8]> = fresh.iter().map(|one| one.content_hash.0.as_slice()).collect();
    let append = sqlx::query(
        "select * from append_events($1, $3, $2, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
    )
    .bind(guard.skew_max.map(Span::as_micros))
    .bind(hashes);
    let events: Vec<&Event> = fresh.iter().map(|identified| &identified.event).collect();
    let row = bind_events(append, &events).fetch_one(conn).await.doing("append events")?;
    let columns = StoredColumns::from_row(&row).doing("read what was appended")?;
    Ok(columns.first_seq.map(|seq| Stored { first_seq: Seq::new(seq), columns }))
}
