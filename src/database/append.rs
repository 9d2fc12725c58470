//! Appending to the raw log: many requests, one transaction.
//!
//! Invariants:
//! * The append lock is taken before the first `seq` is drawn and held to the commit, in every
//!   replica. So `seq` order is commit order, and a reader may ask for `seq > position`.
//! * Under that lock nobody else can take an event id, so what is decided here stays true.
//! * Either all of a request's good events are stored, or the answer is an error.

use std::collections::HashMap;

use sqlx::PgConnection;

use super::error::Doing;
use super::partitions::LogRoom;
use super::values::{amount_to_sql, unreadable};
use super::{Database, DatabaseError};
use crate::domain::{ContentHash, Event, EventId, IdentifiedEvent, Seq};

/// Any number that no other program on the same database uses for an advisory lock.
const APPEND_LOCK: i64 = 0x7469_6c6c_6d61_726b;

/// The valid events of one request.
#[derive(Debug, Clone)]
pub struct AppendRequest {
    /// In the order they were posted.
    pub events: Vec<IdentifiedEvent>,
    /// Store nothing when one of them is in conflict.
    pub all_or_nothing: bool,
}

/// What became of one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appended {
    /// It is in the raw log.
    Accepted(Seq),
    /// It was there already, with the same content.
    Duplicate(Seq),
    /// Its id was there already, with other content; this one is refused.
    Conflict {
        /// Where the first stands; nowhere when it came earlier in the same all-or-nothing request.
        first_seq: Option<Seq>,
        /// What the first says.
        first_content_hash: ContentHash,
    },
    /// Good in itself, but another event of its all-or-nothing request was in conflict.
    NotStored,
}

impl Database {
    /// Appends the events of `requests` in one transaction and answers, request by request, what
    /// became of each. When this returns without error, everything accepted is durable.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`]; whether anything was stored may be unknown then. Appending the
    /// same events again is always safe.
    pub async fn append(
        &self,
        requests: &[AppendRequest],
        room: &mut LogRoom,
    ) -> Result<Vec<Vec<Appended>>, DatabaseError> {
        let mut transaction = self.ingest.begin().await.doing("begin an append")?;
        sqlx::query("select pg_advisory_xact_lock($1)")
            .bind(APPEND_LOCK)
            .execute(&mut *transaction)
            .await
            .doing("take the append lock")?;
        let mut decisions = Decisions::start(known_ids(&mut transaction, requests).await?);
        let decided: Vec<Vec<Decision>> =
            requests.iter().map(|request| decisions.decide(request)).collect();
        let seqs = draw_seqs(&mut transaction, decisions.fresh.len()).await?;
        let mut new_room = *room;
        if let Some(last) = seqs.last() {
            new_room = room.reach(&mut transaction, *last).await?;
            insert_keys(&mut transaction, &decisions.fresh, &seqs).await?;
            insert_events(&mut transaction, &decisions.fresh, &seqs).await?;
        }
        let answers: Vec<Vec<Appended>> = decided
            .into_iter()
            .map(|request| request.into_iter().map(|decision| decision.with_seqs(&seqs)).collect())
            .collect();
        record_conflicts(&mut transaction, requests, &answers).await?;
        transaction.commit().await.doing("commit an append")?;
        *room = new_room;
        Ok(answers)
    }
}

/// Where an event stands, or will stand, that has an id first.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// In the raw log already.
    Logged(Seq),
    /// The n-th new event of this append.
    Fresh(usize),
}

/// An answer that does not know the new `seq`s yet.
#[derive(Debug, Clone, Copy)]
enum Decision {
    Accepted(Place),
    Duplicate(Place),
    /// Without a place: with an event of its own request, of which nothing is stored.
    Conflict(Option<Place>, ContentHash),
    NotStored,
}

impl Decision {
    /// What it becomes when the new events from the n-th on are not stored after all.
    fn undone(self, from: usize) -> Self {
        match self {
            Self::Accepted(Place::Fresh(index)) | Self::Duplicate(Place::Fresh(index))
                if index >= from =>
            {
                Self::NotStored
            }
            Self::Conflict(Some(Place::Fresh(index)), hash) if index >= from => {
                Self::Conflict(None, hash)
            }
            stays => stays,
        }
    }

    fn with_seqs(self, seqs: &[Seq]) -> Appended {
        let seq = |place| match place {
            Place::Logged(seq) => seq,
            Place::Fresh(index) => seqs[index],
        };
        match self {
            Self::Accepted(place) => Appended::Accepted(seq(place)),
            Self::Duplicate(place) => Appended::Duplicate(seq(place)),
            Self::Conflict(place, first_content_hash) => {
                Appended::Conflict { first_seq: place.map(seq), first_content_hash }
            }
            Self::NotStored => Appended::NotStored,
        }
    }
}

/// Decides, in order, which events are new.
struct Decisions<'append> {
    taken: HashMap<&'append EventId, (Place, ContentHash)>,
    known: HashMap<String, (Seq, ContentHash)>,
    fresh: Vec<&'append IdentifiedEvent>,
}

impl<'append> Decisions<'append> {
    fn start(known: HashMap<String, (Seq, ContentHash)>) -> Self {
        Self { taken: HashMap::new(), known, fresh: Vec::new() }
    }

    fn decide(&mut self, request: &'append AppendRequest) -> Vec<Decision> {
        let fresh_before = self.fresh.len();
        let mut decided: Vec<Decision> =
            request.events.iter().map(|event| self.decide_one(event)).collect();
        let in_conflict = decided.iter().any(|decision| matches!(decision, Decision::Conflict(..)));
        if request.all_or_nothing && in_conflict {
            for undone in self.fresh.drain(fresh_before..) {
                self.taken.remove(&undone.event.event_id);
            }
            for decision in &mut decided {
                *decision = decision.undone(fresh_before);
            }
        }
        decided
    }

    fn decide_one(&mut self, identified: &'append IdentifiedEvent) -> Decision {
        let event_id = &identified.event.event_id;
        let logged =
            self.known.get(event_id.as_str()).map(|&(seq, hash)| (Place::Logged(seq), hash));
        match logged.or_else(|| self.taken.get(event_id).copied()) {
            Some((place, hash)) if hash == identified.content_hash => Decision::Duplicate(place),
            Some((place, hash)) => Decision::Conflict(Some(place), hash),
            None => {
                let place = Place::Fresh(self.fresh.len());
                self.fresh.push(identified);
                self.taken.insert(event_id, (place, identified.content_hash));
                Decision::Accepted(place)
            }
        }
    }
}

/// Those of the requests' ids that are taken.
async fn known_ids(
    conn: &mut PgConnection,
    requests: &[AppendRequest],
) -> Result<HashMap<String, (Seq, ContentHash)>, DatabaseError> {
    let mut ids: Vec<&str> = requests
        .iter()
        .flat_map(|request| &request.events)
        .map(|identified| identified.event.event_id.as_str())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    let rows: Vec<(String, Vec<u8>, i64)> = sqlx::query_as(
        "select event_id, content_hash, seq from event_keys where event_id = any($1)",
    )
    .bind(ids)
    .fetch_all(conn)
    .await
    .doing("look up event ids")?;
    rows.into_iter()
        .map(|(event_id, hash, seq)| {
            let hash = hash.try_into().map_err(|_| unreadable("content hash", &event_id))?;
            Ok((event_id, (Seq::new(seq), ContentHash(hash))))
        })
        .collect()
}

async fn draw_seqs(conn: &mut PgConnection, count: usize) -> Result<Vec<Seq>, DatabaseError> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let drawn: Vec<i64> =
        sqlx::query_scalar("select nextval('raw_events_seq') from generate_series(1, $1::bigint)")
            .bind(i64::try_from(count).unwrap_or(i64::MAX))
            .fetch_all(conn)
            .await
            .doing("draw positions in the raw log")?;
    Ok(drawn.into_iter().map(Seq::new).collect())
}

/// Takes the ids, in id order so that neighbours in the index are written together.
async fn insert_keys(
    conn: &mut PgConnection,
    fresh: &[&IdentifiedEvent],
    seqs: &[Seq],
) -> Result<(), DatabaseError> {
    let mut keys: Vec<(&str, &[u8], i64)> = fresh
        .iter()
        .zip(seqs)
        .map(|(identified, seq)| {
            (identified.event.event_id.as_str(), identified.content_hash.0.as_slice(), seq.get())
        })
        .collect();
    keys.sort_unstable();
    sqlx::query(
        "insert into event_keys (event_id, content_hash, seq)
         select * from unnest($1::text[], $2::bytea[], $3::bigint[])",
    )
    .bind(keys.iter().map(|key| key.0).collect::<Vec<_>>())
    .bind(keys.iter().map(|key| key.1).collect::<Vec<_>>())
    .bind(keys.iter().map(|key| key.2).collect::<Vec<_>>())
    .execute(conn)
    .await
    .doing("take event ids")?;
    Ok(())
}

async fn insert_events(
    conn: &mut PgConnection,
    fresh: &[&IdentifiedEvent],
    seqs: &[Seq],
) -> Result<(), DatabaseError> {
    let events: Vec<&Event> = fresh.iter().map(|identified| &identified.event).collect();
    let texts = |of: fn(&Event) -> &str| events.iter().map(|event| of(event)).collect::<Vec<_>>();
    let options =
        |of: fn(&Event) -> Option<&str>| events.iter().map(|event| of(event)).collect::<Vec<_>>();
    sqlx::query(
        "insert into raw_events (seq, received_at, event_id, order_id, status, amount, currency,
             event_time, store_id, till_id, customer_id, item_count, attributes)
         select seq, received.at, event_id, order_id, status, amount, currency,
             event_time, store_id, till_id, customer_id, item_count, attributes
         from (select clock_timestamp() as at) received, unnest($1::bigint[], $2::text[], $3::text[],
             $4::text[], $5::numeric[], $6::text[], $7::timestamptz[], $8::text[], $9::text[],
             $10::text[], $11::bigint[], $12::jsonb[]) as new_event (seq, event_id, order_id, status,
             amount, currency, event_time, store_id, till_id, customer_id, item_count, attributes)",
    )
    .bind(seqs.iter().map(|seq| seq.get()).collect::<Vec<_>>())
    .bind(texts(|event| event.event_id.as_str()))
    .bind(texts(|event| event.order_id.as_str()))
    .bind(texts(|event| event.status.as_str()))
    .bind(events.iter().map(|event| amount_to_sql(event.amount)).collect::<Vec<_>>())
    .bind(texts(|event| event.currency.code()))
    .bind(events.iter().map(|event| event.event_time.to_utc()).collect::<Vec<_>>())
    .bind(options(|event| event.store_id.as_ref().map(crate::domain::StoreId::as_str)))
    .bind(options(|event| event.till_id.as_ref().map(crate::domain::TillId::as_str)))
    .bind(options(|event| event.customer_id.as_ref().map(crate::domain::CustomerId::as_str)))
    .bind(events.iter().map(|event| event.item_count).collect::<Vec<_>>())
    .bind(events.iter().map(|event| attributes_to_sql(event)).collect::<Vec<_>>())
    .execute(conn)
    .await
    .doing("insert events into the raw log")?;
    Ok(())
}

fn attributes_to_sql(event: &Event) -> Option<serde_json::Value> {
    let attributes = event.attributes.as_map();
    let object =
        || attributes.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
    (!attributes.is_empty()).then(|| serde_json::Value::Object(object()))
}

/// Keeps both hashes of every conflict with a stored event, for audit.
async fn record_conflicts(
    conn: &mut PgConnection,
    requests: &[AppendRequest],
    answers: &[Vec<Appended>],
) -> Result<(), DatabaseError> {
    let pairs = requests
        .iter()
        .zip(answers)
        .flat_map(|(request, answers)| request.events.iter().zip(answers));
    for (identified, answer) in pairs {
        let Appended::Conflict { first_seq: Some(first_seq), first_content_hash } = answer else {
            continue;
        };
        sqlx::query(
            "insert into event_conflicts
                 (received_at, event_id, first_seq, first_content_hash, refused_content_hash)
             values (clock_timestamp(), $1, $2, $3, $4)",
        )
        .bind(identified.event.event_id.as_str())
        .bind(first_seq.get())
        .bind(first_content_hash.0.as_slice())
        .bind(identified.content_hash.0.as_slice())
        .execute(&mut *conn)
        .await
        .doing("record a conflict")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Attributes;

    fn request(all_or_nothing: bool, events: &[(&str, u8)]) -> AppendRequest {
        let events = events.iter().map(|(id, content)| IdentifiedEvent {
            event: Event {
                event_id: id.parse().expect("an id"),
                order_id: "1".parse().expect("an id"),
                status: "placed".parse().expect("a status"),
                amount: "1.00".parse().expect("an amount"),
                currency: "USD".parse().expect("ISO 4217"),
                event_time: "2026-10-01T09:05:00Z".parse().expect("a time"),
                store_id: None,
                till_id: None,
                customer_id: None,
                item_count: None,
                attributes: Attributes::default(),
            },
            content_hash: ContentHash([*content; 32]),
        });
        AppendRequest { events: events.collect(), all_or_nothing }
    }

    #[test]
    fn a_request_that_stores_nothing_keeps_its_answers_about_what_another_stores() {
        let (plain, atomic) = (
            request(false, &[("a", 1), ("b", 1)]),
            request(true, &[("a", 1), ("b", 2), ("c", 1), ("c", 1), ("c", 2)]),
        );
        let again = request(false, &[("c", 3)]);
        let mut decisions = Decisions::start(HashMap::new());
        let decided = [&plain, &atomic, &again].map(|request| decisions.decide(request));
        let seqs: Vec<Seq> = (1..=3).map(Seq::new).collect();
        assert_eq!(decisions.fresh.len(), seqs.len());
        let [_, atomic, again] = decided.map(|decided| {
            decided.into_iter().map(|decision| decision.with_seqs(&seqs)).collect::<Vec<_>>()
        });
        let conflict = |first_seq: Option<i64>| Appended::Conflict {
            first_seq: first_seq.map(Seq::new),
            first_content_hash: ContentHash([1; 32]),
        };
        assert_eq!(
            atomic,
            [
                Appended::Duplicate(Seq::new(1)),
                conflict(Some(2)),
                Appended::NotStored,
                Appended::NotStored,
                conflict(None),
            ]
        );
        assert_eq!(again, [Appended::Accepted(Seq::new(3))]);
    }
}
