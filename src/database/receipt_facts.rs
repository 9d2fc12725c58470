//! What a receipt looks up, each by an index.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, Postgres, QueryBuilder};

use super::DatabaseError;
use super::error::Doing;
use super::log_batch::key_expression;
use super::queries::StoredQuery;
use super::receipts::{Closing, ClosingRecord};
use super::recount_sql::push_filter;
use super::values::{group_to_sql, unreadable, watermark_from_sql};
use crate::domain::{
    BatchId, EventId, EventTime, GroupKey, LoggedEvent, Seq, Span, Watermark, Window,
};

/// Where an event stands with one query.
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// The batch whose positions hold it.
    pub(super) batch_id: Option<BatchId>,
    /// Why the query goes on without it, if it does.
    pub(super) poison: Option<String>,
    /// Its entry in the ledger of dropped events.
    pub(super) dropped: Option<Dropped>,
}

/// What the ledger says of an event.
#[derive(Debug)]
pub(super) struct Dropped {
    pub(super) reason: String,
    /// The watermark that judged it.
    pub(super) watermark: Watermark,
    /// Those that it missed, by start.
    pub(super) windows: Vec<Window>,
}

#[derive(Debug, sqlx::FromRow)]
struct StandingColumns {
    query_id: i64,
    poison: Option<String>,
    batch_id: Option<i64>,
    reason: Option<String>,
    watermark: Option<DateTime<Utc>>,
    starts: Option<Vec<DateTime<Utc>>>,
    ends: Option<Vec<DateTime<Utc>>>,
}

impl StandingColumns {
    fn read(self) -> (i64, Standing) {
        let (starts, ends) = (self.starts.unwrap_or_default(), self.ends.unwrap_or_default());
        let windows = starts.into_iter().zip(ends).map(|(start, end)| Window {
            start: EventTime::from_utc(start),
            end: EventTime::from_utc(end),
        });
        let dropped = self.reason.zip(self.watermark).map(|(reason, watermark)| Dropped {
            reason,
            watermark: watermark_from_sql(watermark),
            windows: windows.collect(),
        });
        let batch_id = self.batch_id.map(BatchId::new);
        (self.query_id, Standing { batch_id, poison: self.poison, dropped })
    }
}

/// Where the event at `seq` stands with each of the queries.
pub(super) async fn standings(
    conn: &mut PgConnection,
    query_ids: &[i64],
    seq: Seq,
) -> Result<HashMap<i64, Standing>, DatabaseError> {
    let columns: Vec<StandingColumns> = sqlx::query_as(
        "select asked.query_id, poison.reason as poison, batch.batch_id, dropped.reason,
             dropped.watermark, dropped.starts, dropped.ends
         from unnest($1::bigint[]) as asked (query_id)
         left join poison_events poison on poison.query_id = asked.query_id and poison.seq = $2
         left join lateral (
             select batch_id from progress
             where progress.query_id = asked.query_id and position_to >= $2
             order by position_to, batch_id limit 1
         ) batch on true
         cross join lateral (
             select min(reason) as reason, min(watermark) as watermark,
                 array_agg(window_start order by window_start) as starts,
                 array_agg(window_end order by window_start) as ends
             from dropped_events where dropped_events.query_id = asked.query_id and seq = $2
         ) dropped",
    )
    .bind(query_ids)
    .bind(seq.get())
    .fetch_all(conn)
    .await
    .doing("read where an event stands")?;
    Ok(columns.into_iter().map(StandingColumns::read).collect())
}

/// The first batch whose watermark had reached `end`.
pub(super) async fn closing_batch(
    conn: &mut PgConnection,
    query_id: i64,
    end: EventTime,
) -> Result<Option<BatchId>, DatabaseError> {
    let batch_id: Option<i64> = sqlx::query_scalar(
        "select batch_id from progress where query_id = $1 and watermark >= $2
         order by watermark, batch_id limit 1",
    )
    .bind(query_id)
    .bind(end.to_utc())
    .fetch_optional(conn)
    .await
    .doing("find the batch that closed a window")?;
    Ok(batch_id.map(BatchId::new))
}

/// How the watermark came to where it first had reached `end`.
///
/// The batch before read the record that moved it: a watermark takes force in the batch after.
pub(super) async fn closing(
    conn: &mut PgConnection,
    query: &StoredQuery,
    end: EventTime,
) -> Result<Option<Closing>, DatabaseError> {
    let found: Option<(DateTime<Utc>, Option<i64>, Option<i64>)> = sqlx::query_as(
        "select closing.watermark, before.position_from, before.position_to
         from (select batch_id, watermark from progress where query_id = $1 and watermark >= $2
             order by watermark, batch_id limit 1) closing
         left join progress before on before.query_id = $1 and before.batch_id = closing.batch_id - 1",
    )
    .bind(query.query_id)
    .bind(end.to_utc())
    .fetch_optional(&mut *conn)
    .await
    .doing("find the batch that moved a watermark")?;
    let Some((watermark, from, to)) = found else { return Ok(None) };
    let watermark = watermark_from_sql(watermark);
    let record = match from.zip(to) {
        Some(range) => mover(conn, query, range, watermark).await?,
        None => None,
    };
    Ok(Some(Closing { watermark, record }))
}

#[derive(Debug, sqlx::FromRow)]
struct RecordColumns {
    kind: String,
    event_id: String,
    order_id: Option<String>,
    event_time: DateTime<Utc>,
    quiet_ms: Option<i64>,
}

impl RecordColumns {
    fn read(self) -> Result<ClosingRecord, DatabaseError> {
        let event_time = EventTime::from_utc(self.event_time);
        Ok(match (self.kind.as_str(), self.quiet_ms) {
            ("heartbeat", _) => ClosingRecord::Heartbeat {
                source: self.event_id.try_into().map_err(|error| unreadable("source", error))?,
                event_time,
            },
            (_, Some(quiet_ms)) => {
                ClosingRecord::Idle { quiet: Span::from_micros(quiet_ms.saturating_mul(1_000)) }
            }
            (_, None) => {
                let order_id = self.order_id.unwrap_or_default().try_into();
                let order_id = order_id.map_err(|error| unreadable("order_id", error))?;
                ClosingRecord::Event { order_id, event_time }
            }
        })
    }
}

/// Of the records in `range`, the one that moved the query's watermark to `watermark`: the newest of its
/// sources, or an idle heartbeat. Which of them counted then cannot be told from the query's idle
/// timeout, which may have changed since, but from where the watermark came to stand.
async fn mover(
    conn: &mut PgConnection,
    query: &StoredQuery,
    range: (i64, i64),
    watermark: Watermark,
) -> Result<Option<ClosingRecord>, DatabaseError> {
    let of_source = newest_record(conn, query, range, None).await?;
    let of_silence = newest_record(conn, query, range, Some(watermark)).await?;
    let moves = |time: EventTime| {
        Watermark::EPOCH.advanced_by(time, query.spec.watermark_delay) == watermark
    };
    let found = match (of_source, of_silence) {
        (_, Some((silence, time))) if moves(time) => Some(silence),
        (Some((source, _)), _) => Some(source),
        (None, silence) => silence.map(|(silence, _)| silence),
    };
    Ok(found)
}

/// Of what the query reads in `from < seq <= to`, the record with the newest time; or of the idle
/// heartbeats there rather the one that moves a watermark to just where it stands.
async fn newest_record(
    conn: &mut PgConnection,
    query: &StoredQuery,
    (from, to): (i64, i64),
    of_silence: Option<Watermark>,
) -> Result<Option<(ClosingRecord, EventTime)>, DatabaseError> {
    let mut select = QueryBuilder::<Postgres>::new(
        "select kind, event_id, order_id, event_time, quiet_ms from raw_events where seq > ",
    );
    select.push_bind(from).push(" and seq <= ").push_bind(to);
    if let Some(watermark) = of_silence {
        let moved_by = watermark.as_event_time().plus(query.spec.watermark_delay);
        select.push(
            " and kind = 'idle_heartbeat' order by date_trunc('milliseconds', event_time) = ",
        );
        select.push_bind(moved_by.to_utc()).push(" desc, event_time desc, seq limit 1");
    } else {
        select.push(" and (kind = 'heartbeat' or (kind = 'event'");
        push_filter(&mut select, query);
        push_not_poisoned(&mut select, query);
        select.push(")) order by event_time desc, seq limit 1");
    }
    let columns: Option<RecordColumns> = select
        .build_query_as()
        .fetch_optional(conn)
        .await
        .doing("find the record that moved a watermark")?;
    let read = |columns: RecordColumns| {
        let time = EventTime::from_utc(columns.event_time);
        Ok((columns.read()?, time))
    };
    columns.map(read).transpose()
}

fn push_not_poisoned(select: &mut QueryBuilder<Postgres>, query: &StoredQuery) {
    if query.has_poison_events {
        select.push(" and not exists (select from poison_events poison where poison.query_id = ");
        select.push_bind(query.query_id).push(" and poison.seq = raw_events.seq)");
    }
}

/// The event that the query counted under the key of the one at `seq`. It is looked for backwards,
/// and stands as far back as the key was remembered at most.
pub(super) async fn counted_first(
    conn: &mut PgConnection,
    query: &StoredQuery,
    seq: Seq,
) -> Result<Option<EventId>, DatabaseError> {
    // One collation for all, or Postgres would not compare them.
    let texts = query.spec.deduplicate.iter();
    let texts: Vec<String> =
        texts.map(|field| format!("({}) collate \"C\"", key_expression(field))).collect();
    let key = format!("array[{}]::text[]", texts.join(", "));
    let mut select = QueryBuilder::<Postgres>::new("select event_id from raw_events where seq < ");
    select.push_bind(seq.get()).push(" and seq > ").push_bind(query.start_seq.get());
    select.push(format!(
        " and kind = 'event' and {key} = (select {key} from raw_events where seq = "
    ));
    select.push_bind(seq.get()).push(")");
    push_filter(&mut select, query);
    push_not_poisoned(&mut select, query);
    select.push(" and not exists (select from dropped_events dropped where dropped.query_id = ");
    select.push_bind(query.query_id).push(" and dropped.seq = raw_events.seq)");
    select.push(" order by raw_events.seq desc limit 1");
    let event_id: Option<String> = select
        .build_query_scalar()
        .fetch_optional(conn)
        .await
        .doing("find the event that was counted first")?;
    event_id.map(|id| id.try_into().map_err(|error| unreadable("event_id", error))).transpose()
}

/// The session that the event is in now, `own` being the one that it opened: written, or open.
pub(super) async fn session_of(
    conn: &mut PgConnection,
    query: &StoredQuery,
    logged: &LoggedEvent,
    own: Window,
) -> Result<Option<Window>, DatabaseError> {
    let fields = query.spec.group_by.iter();
    let group =
        GroupKey(fields.map(|field| field.value_in(&logged.event).map(str::to_owned)).collect());
    let bounds: Option<(DateTime<Utc>, DateTime<Utc>)> = sqlx::query_as(
        "(select window_start, window_end from window_state
             where query_id = $1 and currency = $2 and group_keys = $3
                 and window_start <= $4 and window_end >= $5 limit 1)
         union all
         (select window_start, window_end from window_rows
             where query_id = $1 and currency = $2 and group_keys = $3
                 and window_start <= $4 and window_end >= $5
             order by window_start desc limit 1)
         limit 1",
    )
    .bind(query.query_id)
    .bind(logged.event.currency.code())
    .bind(group_to_sql(&group))
    .bind(own.start.to_utc())
    .bind(own.end.to_utc())
    .fetch_optional(conn)
    .await
    .doing("find the session of an event")?;
    Ok(bounds.map(|(start, end)| Window {
        start: EventTime::from_utc(start),
        end: EventTime::from_utc(end),
    }))
}
