//! How late events really come: receipt delay and disorder, by plain SQL over the raw log, exact to the
//! millisecond.
//!
//! Each value is counted once per source and how often it occurs, and the quantiles are read off these
//! counts: what `percentile_disc` answers, without sorting every event.
//!
//! A range costs what its own part of the log does: from its first event to its last, and of what stands
//! before them only what was ahead of the range's start, which alone can make its events late. The
//! ranges of event times and positions that migration 0015 keeps of pages find both.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use sqlx::postgres::PgRow;
use sqlx::{Connection as _, FromRow, PgConnection, Postgres, QueryBuilder};

use super::error::Doing;
use super::queries::{StoredQuery, find};
use super::recount::RecountRange;
use super::recount_sql::{literal, push_filter};
use super::values::push_event_reach;
use super::{Database, DatabaseError};
use crate::domain::{EventTime, QueryName, StoreReach};

/// The upper bounds of the histogram's buckets in milliseconds, each inside its bucket: nothing, 1 s,
/// 10 s, 1 min, 5 min, 15 min, 1 h, 6 h, 1 day, 7 days. What is longer stands in one bucket more.
pub const LATENESS_BUCKETS_MS: [i64; 10] =
    [0, 1_000, 10_000, 60_000, 300_000, 900_000, 3_600_000, 21_600_000, 86_400_000, 604_800_000];

/// What a source is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LatenessBy {
    /// Sources are not told apart.
    None,
    /// A store.
    Store,
    /// A till of a store.
    Till,
}

/// What to measure.
#[derive(Debug, Clone)]
pub struct LatenessSelection {
    /// Events whose times lie in this range.
    pub range: RecountRange,
    /// What a source is.
    pub by: LatenessBy,
    /// Events of these stores. Their disorder is still judged by all that was heard before them, as the
    /// watermark judges it.
    pub reach: StoreReach,
}

/// A store, or a till of one; nothing where events name none.
pub type LatenessSource = (Option<String>, Option<String>);

/// How long something took, over many events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Delays {
    /// How many events.
    pub count: i64,
    /// The quantiles 50, 90, 99, 99.9 and 99.99 % in milliseconds; none without events.
    pub quantiles_ms: [Option<i64>; 5],
    /// The longest, in milliseconds.
    pub max_ms: Option<i64>,
    /// Events per bucket of [`LATENESS_BUCKETS_MS`], and those beyond them.
    pub histogram: Vec<i64>,
}

/// Both delays of one source, or of all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceLateness {
    /// From event time to receipt.
    pub receipt: Delays,
    /// How far events stood behind what had been heard of time before them.
    pub disorder: Delays,
    /// How many of the events were released from quarantine; they were received when they were released.
    pub released: i64,
}

/// What was heard last of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewestOfSource {
    /// The source of heartbeats; nothing for a store or till, whose events these are.
    pub heartbeats_of: Option<String>,
    /// The store and till.
    pub source: LatenessSource,
    /// The newest event time.
    pub event_time: EventTime,
    /// When something was received last.
    pub received_at: DateTime<Utc>,
}

/// The whole report.
#[derive(Debug, Clone)]
pub struct Lateness {
    /// All events together.
    pub total: SourceLateness,
    /// Every source with events in the range, the worst first: by the 99 % quantile of disorder, then
    /// its longest.
    pub sources: Vec<(LatenessSource, SourceLateness)>,
    /// What was heard last of every source in the range, the silent ones first.
    pub newest: Vec<NewestOfSource>,
}

impl Database {
    /// Measures selected events that the query counts, in one snapshot.
    ///
    /// # Errors
    /// [`DatabaseError::NoSuchQuery`], [`DatabaseError::Unreadable`] or [`DatabaseError::Failed`].
    pub async fn lateness(
        &self,
        name: &QueryName,
        selection: &LatenessSelection,
    ) -> Result<Lateness, DatabaseError> {
        let mut reader = self.reader().await?;
        let mut transaction = reader
            .begin_with("begin transaction isolation level repeatable read, read only")
            .await
            .doing("begin measuring lateness")?;
        let conn = &mut *transaction;
        let query = find(conn, name, false).await?;
        let newest = newest(conn, &query, selection).await?;
        // By source; nothing stands for all of them.
        let mut measured: BTreeMap<Option<LatenessSource>, SourceLateness> = BTreeMap::new();
        for row in measure(conn, &query, selection).await? {
            let source = (!row.is_total).then(|| (row.store.clone(), row.till.clone()));
            let place = measured.entry(source).or_default();
            let is_receipt = row.is_receipt;
            *(if is_receipt { &mut place.receipt } else { &mut place.disorder }) = row.delays();
        }
        for (is_total, store, till, count) in released(conn, &query, selection).await? {
            let source = (!is_total).then_some((store, till));
            measured.entry(source).or_default().released = count;
        }
        transaction.commit().await.doing("finish measuring lateness")?;
        let total = measured.remove(&None).unwrap_or_default();
        let sources = measured.into_iter();
        let mut sources: Vec<(LatenessSource, SourceLateness)> =
            sources.filter_map(|(source, lateness)| Some((source?, lateness))).collect();
        // Sources that are equally late stay in the order of their names.
        sources
            .sort_by_key(|(_, one)| Reverse((one.disorder.quantiles_ms[2], one.disorder.max_ms)));
        Ok(Lateness { total, sources, newest })
    }
}

#[derive(Debug, sqlx::FromRow)]
struct DelaysRow {
    is_total: bool,
    is_receipt: bool,
    store: Option<String>,
    till: Option<String>,
    events: i64,
    quantiles: Vec<i64>,
    longest: i64,
    histogram: Vec<i64>,
}

impl DelaysRow {
    fn delays(self) -> Delays {
        let mut quantiles_ms = [None; 5];
        for (place, quantile) in quantiles_ms.iter_mut().zip(self.quantiles) {
            *place = Some(quantile);
        }
        Delays {
            count: self.events,
            quantiles_ms,
            max_ms: Some(self.longest),
            histogram: self.histogram,
        }
    }
}

/// The columns of a source.
const fn source_columns(by: LatenessBy) -> &'static str {
    match by {
        LatenessBy::None => "null::text as store, null::text as till",
        LatenessBy::Store => "store_id as store, null::text as till",
        LatenessBy::Till => "store_id as store, till_id as till",
    }
}

/// `and …` for events that the query counts.
fn push_counted(select: &mut QueryBuilder<Postgres>, query: &StoredQuery) {
    let (start_seq, query_id) = (query.start_seq, query.query_id);
    select.push(format!(" and kind = 'event' and seq > {start_seq}"));
    push_filter(select, query);
    if query.has_poison_events {
        select.push(format!(
            " and not exists (select from poison_events poison
                 where poison.query_id = {query_id} and poison.seq = raw_events.seq)"
        ));
    }
}

/// `and …` for what lies in the range.
fn push_range(select: &mut QueryBuilder<Postgres>, range: RecountRange) {
    push_start(select, range);
    if let Some(to) = range.to {
        select.push(format!(" and event_time < {}", literal(to)));
    }
}

fn push_start(select: &mut QueryBuilder<Postgres>, range: RecountRange) {
    if let Some(from) = range.from {
        select.push(format!(" and event_time >= {}", literal(from)));
    }
}

/// `and …` for events that are to be measured.
fn push_selected(select: &mut QueryBuilder<Postgres>, selection: &LatenessSelection) {
    push_range(select, selection.range);
    push_event_reach(select, &selection.reach);
}

/// `and …` for what moves the query's watermark: its events and heartbeats.
fn push_heard(select: &mut QueryBuilder<Postgres>, query: &StoredQuery) {
    let start_seq = query.start_seq;
    select.push(format!(" and seq > {start_seq} and (kind = 'heartbeat'"));
    if let Some(timeout) = query.spec.idle_timeout {
        select.push(format!(" or quiet_ms >= {}", timeout.as_millis()));
    }
    select.push(" or (true");
    push_counted(select, query);
    select.push("))");
}

/// The first and last position of the events in the range, and the newest time that was heard before
/// them, as far as it is ahead of the range's start.
async fn extent(
    conn: &mut PgConnection,
    query: &StoredQuery,
    selection: &LatenessSelection,
) -> Result<Option<(i64, i64, Option<DateTime<Utc>>)>, DatabaseError> {
    // Counting keeps the server from looking for either end position by position.
    let mut select =
        QueryBuilder::new("select min(seq), max(seq), count(*) from raw_events where true");
    push_counted(&mut select, query);
    push_selected(&mut select, selection);
    let ends: (Option<i64>, Option<i64>, i64) =
        select.build_query_as().fetch_one(&mut *conn).await.doing("find the events of a range")?;
    let (Some(first), Some(last), _) = ends else { return Ok(None) };
    let mut select = QueryBuilder::new("select max(event_time) from raw_events where true");
    push_start(&mut select, selection.range);
    // As the index of ranges has it.
    select.push(format!(" and seq + 0 < {first}"));
    push_heard(&mut select, query);
    let before: Option<DateTime<Utc>> =
        select.build_query_scalar().fetch_one(conn).await.doing("find what was heard before")?;
    Ok(Some((first, last, before)))
}

async fn measure(
    conn: &mut PgConnection,
    query: &StoredQuery,
    selection: &LatenessSelection,
) -> Result<Vec<DelaysRow>, DatabaseError> {
    let Some((first, last, before)) = extent(conn, query, selection).await? else {
        return Ok(Vec::new());
    };
    let columns = source_columns(selection.by);
    let mut select = QueryBuilder::new(format!(
        "with heard as (select kind, received_at, event_time, store_id, {columns}, greatest("
    ));
    select.push_bind(before).push(
        ", max(event_time) over (order by seq rows between unbounded preceding and 1 preceding)) as newest
             from raw_events where true",
    );
    push_start(&mut select, selection.range);
    select.push(format!(" and seq between {first} and {last}"));
    push_heard(&mut select, query);
    let milliseconds = |interval: &str| {
        format!("floor(round(date_part('epoch', {interval}) * 1e6) / 1e3)::bigint")
    };
    let receipt = milliseconds("received_at - event_time");
    let disorder = milliseconds("greatest(newest - event_time, interval '0')");
    select.push(format!(
        "), measured as (select store, till, {receipt} as receipt, {disorder} as disorder
             from heard where kind = 'event'"
    ));
    push_selected(&mut select, selection);
    // Without sources there is nothing but the total, and no columns to group by.
    let (of, sets) = match selection.by {
        LatenessBy::None => ("true as is_total, null::text as store, null::text as till", ""),
        LatenessBy::Store | LatenessBy::Till => (
            "grouping(store) = 1 as is_total, store, till",
            ", (store, till, receipt), (store, till, disorder)",
        ),
    };
    select.push(format!(
        "), counted as (select {of}, grouping(disorder) = 1 as is_receipt,
                 coalesce(receipt, disorder) as delay, count(*) as events
             from measured group by grouping sets ((receipt), (disorder){sets})),
         ranked as (select *, sum(events) over (of_one order by delay) as up_to, sum(events) over of_one as total
             from counted window of_one as (partition by is_total, is_receipt, store, till))
         select is_total, is_receipt, store, till, sum(events)::bigint as events,
             array[min(delay) filter (where up_to * 2 >= total),
                 min(delay) filter (where up_to * 10 >= total * 9),
                 min(delay) filter (where up_to * 100 >= total * 99),
                 min(delay) filter (where up_to * 1000 >= total * 999),
                 min(delay) filter (where up_to * 10000 >= total * 9999)] as quantiles,
             max(delay) as longest, array[{}]::bigint[] as histogram
         from ranked group by is_total, is_receipt, store, till",
        buckets_sql()
    ));
    let rows = select.build().fetch_all(conn).await.doing("measure lateness")?;
    rows.iter().map(|row: &PgRow| DelaysRow::from_row(row).doing("read a row")).collect()
}

fn buckets_sql() -> String {
    let mut from = None;
    let mut buckets = Vec::new();
    for to in LATENESS_BUCKETS_MS.map(Some).into_iter().chain([None]) {
        let above = from.map_or("true".to_owned(), |from| format!("delay > {from}"));
        let up_to = to.map_or("true".to_owned(), |to| format!("delay <= {to}"));
        buckets.push(format!("coalesce(sum(events) filter (where {above} and {up_to}), 0)"));
        from = to;
    }
    buckets.join(", ")
}

async fn released(
    conn: &mut PgConnection,
    query: &StoredQuery,
    selection: &LatenessSelection,
) -> Result<Vec<(bool, Option<String>, Option<String>, i64)>, DatabaseError> {
    let columns = source_columns(selection.by);
    let mut select = QueryBuilder::new(format!(
        "select grouping(store) = 1, store, till, count(*) from (select {columns} from raw_events
             where seq in (select released_seq from quarantine where action = 'release')"
    ));
    push_counted(&mut select, query);
    push_selected(&mut select, selection);
    select.push(match selection.by {
        LatenessBy::None => {
            ") released group by grouping sets ((), (store, till)) having grouping(store) = 1"
        }
        LatenessBy::Store | LatenessBy::Till => {
            ") released group by grouping sets ((), (store, till))"
        }
    });
    select.build_query_as().fetch_all(conn).await.doing("count what was released from quarantine")
}

async fn newest(
    conn: &mut PgConnection,
    query: &StoredQuery,
    selection: &LatenessSelection,
) -> Result<Vec<NewestOfSource>, DatabaseError> {
    let columns = source_columns(selection.by);
    let mut select = QueryBuilder::new(format!(
        "select heartbeats_of, store, till, max(event_time), max(received_at) as received_at from (
             select null::text as heartbeats_of, {columns}, event_time, received_at from raw_events where true"
    ));
    push_counted(&mut select, query);
    push_selected(&mut select, selection);
    // A heartbeat names no store.
    let of_all = !selection.reach.is_bound();
    select.push(format!(
        " union all select event_id, null, null, event_time, received_at from raw_events
             where kind = 'heartbeat' and seq > {} and {of_all}",
        query.start_seq
    ));
    push_range(&mut select, selection.range);
    select.push(
        ") heard group by heartbeats_of, store, till order by received_at, heartbeats_of, store, till",
    );
    type Columns = (Option<String>, Option<String>, Option<String>, DateTime<Utc>, DateTime<Utc>);
    let rows: Vec<Columns> = select
        .build_query_as()
        .fetch_all(conn)
        .await
        .doing("find the newest event of each source")?;
    let heard = |(heartbeats_of, store, till, event_time, received_at): Columns| NewestOfSource {
        heartbeats_of,
        source: (store, till),
        event_time: EventTime::from_utc(event_time),
        received_at,
    };
    Ok(rows.into_iter().map(heard).collect())
}
