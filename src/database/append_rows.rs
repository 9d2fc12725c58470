//! The statements of an append.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use sqlx::PgConnection;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;

use super::DatabaseError;
use super::append::AppendRequest;
use super::append_decisions::{Known, Stands};
use super::error::Doing;
use super::values::{amount_to_sql, unreadable};
use crate::domain::{
    ContentHash, CustomerId, Event, Heartbeat, IdentifiedEvent, Seq, StoreId, TillId,
};

/// Id, content hash, position, and what became of it in quarantine.
type TakenColumns = (String, Vec<u8>, Option<i64>, Option<String>);

/// Those of the requests' ids that are taken, in the log or in quarantine.
pub(super) async fn known_ids(
    conn: &mut PgConnection,
    requests: &[AppendRequest],
) -> Result<HashMap<String, Known>, DatabaseError> {
    let mut ids: Vec<&str> = requests
        .iter()
        .flat_map(AppendRequest::events)
        .map(|identified| identified.event.event_id.as_str())
        .collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    ids.sort_unstable();
    ids.dedup();
    let rows: Vec<TakenColumns> = sqlx::query_as(
        "select event_id, event_keys.content_hash, event_keys.seq, quarantine.action
         from event_keys left join quarantine using (event_id) where event_id = any($1)",
    )
    .bind(ids)
    .fetch_all(conn)
    .await
    .doing("look up event ids")?;
    rows.into_iter()
        .map(|(event_id, hash, seq, action)| {
            let hash = hash.try_into().map_err(|_| unreadable("content hash", &event_id))?;
            let stands = Stands::of(seq, action.is_some());
            Ok((event_id, Known { content_hash: ContentHash(hash), stands }))
        })
        .collect()
}

pub(super) async fn draw_seqs(
    conn: &mut PgConnection,
    count: usize,
) -> Result<Vec<Seq>, DatabaseError> {
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
pub(super) async fn insert_keys(
    conn: &mut PgConnection,
    fresh: &[&IdentifiedEvent],
    seqs: &[Seq],
) -> Result<(), DatabaseError> {
    if fresh.is_empty() {
        return Ok(());
    }
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

pub(super) async fn insert_events(
    conn: &mut PgConnection,
    fresh: &[&IdentifiedEvent],
    seqs: &[Seq],
) -> Result<(), DatabaseError> {
    if fresh.is_empty() {
        return Ok(());
    }
    let insert = sqlx::query(
        "insert into raw_events (seq, received_at, event_id, order_id, status, amount, currency,
             event_time, store_id, till_id, customer_id, item_count, attributes)
         select seq, received.at, event_id, order_id, status, amount, currency,
             event_time, store_id, till_id, customer_id, item_count, attribute_text::jsonb
         from (select clock_timestamp() as at) received, unnest($1::bigint[], $2::text[], $3::text[],
             $4::text[], $5::numeric[], $6::text[], $7::timestamptz[], $8::text[], $9::text[],
             $10::text[], $11::bigint[], $12::text[]) as new_event (seq, event_id, order_id, status,
             amount, currency, event_time, store_id, till_id, customer_id, item_count, attribute_text)",
    )
    .bind(seqs.iter().map(|seq| seq.get()).collect::<Vec<_>>());
    let events: Vec<&Event> = fresh.iter().map(|identified| &identified.event).collect();
    bind_events(insert, &events).execute(conn).await.doing("insert events into the raw log")?;
    Ok(())
}

/// Binds the columns of events, side by side for `unnest`: id, order, status, amount, currency, time,
/// store, till, customer, item count, attributes as a JSON text.
pub(super) fn bind_events<'query>(
    query: Query<'query, sqlx::Postgres, PgArguments>,
    events: &[&Event],
) -> Query<'query, sqlx::Postgres, PgArguments> {
    let texts = |of: fn(&Event) -> &str| events.iter().map(|event| of(event)).collect::<Vec<_>>();
    let options =
        |of: fn(&Event) -> Option<&str>| events.iter().map(|event| of(event)).collect::<Vec<_>>();
    let amounts: Vec<Decimal> = events.iter().map(|event| amount_to_sql(event.amount)).collect();
    let times: Vec<DateTime<Utc>> = events.iter().map(|event| event.event_time.to_utc()).collect();
    query
        .bind(texts(|event| event.event_id.as_str()))
        .bind(texts(|event| event.order_id.as_str()))
        .bind(texts(|event| event.status.as_str()))
        .bind(amounts)
        .bind(texts(|event| event.currency.code()))
        .bind(times)
        .bind(options(|event| event.store_id.as_ref().map(StoreId::as_str)))
        .bind(options(|event| event.till_id.as_ref().map(TillId::as_str)))
        .bind(options(|event| event.customer_id.as_ref().map(CustomerId::as_str)))
        .bind(events.iter().map(|event| event.item_count).collect::<Vec<_>>())
        .bind(events.iter().map(|event| attributes_text(event)).collect::<Vec<_>>())
}

/// Inserts heartbeats: records without an order, whose id is the source.
pub(super) async fn insert_heartbeats(
    conn: &mut PgConnection,
    heartbeats: &[&Heartbeat],
    seqs: &[Seq],
) -> Result<(), DatabaseError> {
    if heartbeats.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "insert into raw_events (seq, received_at, kind, event_id, event_time)
         select seq, clock_timestamp(), 'heartbeat', source, event_time
         from unnest($1::bigint[], $2::text[], $3::timestamptz[]) as heartbeat (seq, source, event_time)",
    )
    .bind(seqs.iter().map(|seq| seq.get()).collect::<Vec<_>>())
    .bind(heartbeats.iter().map(|one| one.source.as_str()).collect::<Vec<_>>())
    .bind(heartbeats.iter().map(|one| one.event_time.to_utc()).collect::<Vec<_>>())
    .execute(conn)
    .await
    .doing("insert heartbeats into the raw log")?;
    Ok(())
}

/// The attributes as a JSON text; none when there are none.
pub(super) fn attributes_text(event: &Event) -> Option<String> {
    let attributes = event.attributes.as_map();
    // A map of texts is always JSON.
    (!attributes.is_empty()).then(|| serde_json::to_string(attributes).unwrap_or_default())
}

/// Keeps both hashes of every conflict with a stored event, for audit.
pub(super) async fn record_conflicts(
    conn: &mut PgConnection,
    conflicts: &[(&IdentifiedEvent, Option<Seq>, ContentHash)],
) -> Result<(), DatabaseError> {
    for (refused, first_seq, first_content_hash) in conflicts {
        sqlx::query(
            "insert into event_conflicts
                 (received_at, event_id, first_seq, first_content_hash, refused_content_hash)
             values (clock_timestamp(), $1, $2, $3, $4)",
        )
        .bind(refused.event.event_id.as_str())
        .bind(first_seq.map(Seq::get))
        .bind(first_content_hash.0.as_slice())
        .bind(refused.content_hash.0.as_slice())
        .execute(&mut *conn)
        .await
        .doing("record a conflict")?;
    }
    Ok(())
}
