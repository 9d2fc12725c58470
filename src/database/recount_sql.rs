//! The SQL of the recount. Each kind of windows places an event in its own way; what is counted of
//! a window is the same for all.
//!
//! Literals are numbers and times that we wrote ourselves; every text of a user is a parameter.

use sqlx::{Postgres, QueryBuilder};

use super::as_of::AsOf;
use super::ledger_sql::ledger_sql;
use super::log_batch::{field_expression, key_expression};
use super::queries::StoredQuery;
use super::recount::RecountRange;
use crate::domain::{EventTime, Span, WindowSpec};

/// Of `judged`: late, counted by the recount, and in no correction.
const BOOKABLE: &str = "nth = 1 and reason = 'late' and correction is null";

/// Every expression of the recount's statement for one query and range.
pub(super) struct RecountSql<'query> {
    query: &'query StoredQuery,
    range: RecountRange,
    as_of: Option<AsOf>,
}

impl<'query> RecountSql<'query> {
    /// `query` as it stood at the moment, where one is given.
    pub(super) const fn new(
        query: &'query StoredQuery,
        range: RecountRange,
        as_of: Option<AsOf>,
    ) -> Self {
        Self { query, range, as_of }
    }

    /// What the statement answers of late events and the like, which in one pass the ledger alone tells.
    pub(super) fn has_verdicts(&self) -> bool {
        let is_session = matches!(self.query.spec.window, WindowSpec::Session { .. });
        is_session || !self.query.spec.deduplicate.is_empty()
    }

    /// The events that are late by the ledger, count in the recount and stand in no correction, one
    /// row per window missed.
    pub(super) fn select_bookable(&self) -> QueryBuilder<Postgres> {
        let query_id = self.query.query_id;
        let mut select = if self.has_verdicts() {
            let mut select = self.judged();
            select.push(", bookable as (select judged.ledger_seq as seq from judged where nth = 1 and reason = 'late')");
            select
        } else {
            let ledger = ledger_sql(self.query, self.range, self.as_of);
            QueryBuilder::new(format!(
                "with {ledger}, bookable as (select distinct seq from ledger)"
            ))
        };
        // The entry of a session's event has the session that it alone would have made; what it is
        // booked in is a session of the stream that it overlaps or touches.
        let target = match self.query.spec.window {
            WindowSpec::Session { .. } => format!(
                " left join lateral (select rows.window_start, rows.window_end from window_rows rows
                     where rows.query_id = {query_id} and rows.currency = ledger.currency
                         and rows.group_keys = ledger.group_keys
                         and rows.window_start <= ledger.window_end
                         and rows.window_end >= ledger.window_start
                     order by rows.window_start limit 1) target on true"
            ),
            _ => " cross join (select null::timestamptz as window_start, null::timestamptz as window_end) target"
                .to_owned(),
        };
        select.push(format!(
            " select ledger.seq, ledger.window_start as missed_start, ledger.window_end as missed_end,
                 coalesce(target.window_start, ledger.window_start) as window_start,
                 coalesce(target.window_end, ledger.window_end) as window_end,
                 ledger.currency, ledger.group_keys, 1::bigint as orders, ledger.amount as revenue
             from ledger{target}
             where ledger.reason = 'late' and ledger.correction is null
                 and ledger.seq in (select seq from bookable)
             order by ledger.seq"
        ));
        select
    }

    /// The whole statement.
    pub(super) fn select(&self) -> QueryBuilder<Postgres> {
        if self.has_verdicts() { self.with_verdicts() } else { self.in_one_pass() }
    }

    fn groups(&self) -> String {
        (0..self.query.spec.group_by.len()).map(|index| format!(", group_{index}")).collect()
    }

    fn group_expressions(&self) -> String {
        let fields = self.query.spec.group_by.iter().enumerate();
        fields
            .map(|(index, field)| format!(", {} as group_{index}", field_expression(field)))
            .collect()
    }

    /// Every event counts, in windows that its time alone decides.
    fn in_one_pass(&self) -> QueryBuilder<Postgres> {
        let position = self.query.position;
        let (start, spread) = placing(self.query.spec.window);
        let (groups, expressions) = (self.groups(), self.group_expressions());
        let size = interval(size_of(self.query.spec.window));
        let mut select = QueryBuilder::new(format!(
            "select window_start, window_start + {size} as window_end, currency{groups}, orders, revenue,
                 waiting_orders, waiting_revenue
             from (select {start} as window_start, currency{expressions}, count(*) as orders,
                 sum(amount) as revenue, count(*) filter (where seq > {position}) as waiting_orders,
                 coalesce(sum(amount) filter (where seq > {position}), 0) as waiting_revenue
             from raw_events{spread} where "
        ));
        self.push_matching(&mut select);
        self.push_range(&mut select, &start);
        if let WindowSpec::Sliding { .. } = self.query.spec.window {
            select.push(format!(" and {start} + {size} > event_time"));
        }
        select.push(format!(" group by window_start, currency{groups}) counted"));
        select
    }

    /// Only the first event of each key counts, and the stream may have judged otherwise.
    fn with_verdicts(&self) -> QueryBuilder<Postgres> {
        let mut select = self.judged();
        self.push_counts(&mut select);
        select
    }

    /// Every matching event with its windows and what the ledger says of it, as `judged`; and what the
    /// ledger says of events that are not there, with `stray_keys`.
    fn judged(&self) -> QueryBuilder<Postgres> {
        let (mut select, joined) = match self.query.spec.window {
            WindowSpec::Session { gap } => (self.placed_in_sessions(gap), ""),
            _ => (
                self.placed_by_time(),
                " and ledger.window_start = placed.window_start and ledger.window_end = placed.window_end",
            ),
        };
        let ledger = ledger_sql(self.query, self.range, self.as_of);
        let groups = self.groups();
        select.push(format!(
            ", {ledger}, judged as (
                 select coalesce(placed.seq, ledger.seq) as seq, event_id, placed.amount, nth,
                     coalesce(placed.window_start, ledger.window_start) as window_start,
                     coalesce(placed.window_end, ledger.window_end) as window_end,
                     coalesce(placed.currency, ledger.currency) as currency{groups},
                     ledger.seq as ledger_seq, ledger.amount as dropped_amount, ledger.reason, ledger.correction,
                     case when placed.seq is null then ledger.group_keys end as stray_keys
                 from placed full join ledger on ledger.seq = placed.seq{joined})"
        ));
        select
    }

    fn placed_by_time(&self) -> QueryBuilder<Postgres> {
        let (start, spread) = placing(self.query.spec.window);
        let size = interval(size_of(self.query.spec.window));
        let mut select = self.matching_events();
        select.push(format!(
            ", placed as (select matching.*, {start} as window_start, {start} + {size} as window_end
                 from matching{spread} where {start} + {size} > event_time"
        ));
        self.push_range(&mut select, &start);
        select.push(")");
        select
    }

    /// Gaps and islands: an event begins a new session when it comes more than the gap after the
    /// one before it. Every event takes part that the recount or the stream counts, so each session of
    /// the stream lies in one; what neither counts stands beside them in a session of its own.
    fn placed_in_sessions(&self, gap: Span) -> QueryBuilder<Postgres> {
        let (groups, gap, query_id) = (self.groups(), interval(gap), self.query.query_id);
        let position = self.query.position;
        let then =
            self.as_of.map_or(String::new(), |as_of| format!(" and {}", as_of.batches("dropped")));
        let mut select = self.matching_events();
        select.push(format!(
            ", verdicts as (select matching.*, exists (select from dropped_events dropped
                     where dropped.query_id = {query_id} and dropped.seq = matching.seq{then}) as is_dropped
                 from matching),
             counted as (select * from verdicts where nth = 1 or (not is_dropped and seq <= {position})),
             opening as (select *, event_time > {gap} + lag(event_time) over (
                     partition by currency{groups} order by event_time, seq) as opens
                 from counted),
             numbered as (select *, count(*) filter (where opens) over (
                     partition by currency{groups} order by event_time, seq) as session
                 from opening),
             placed as (select seq, event_id, amount, currency{groups}, nth,
                     min(event_time) over (partition by currency{groups}, session) as window_start,
                     max(event_time) over (partition by currency{groups}, session) + {gap} as window_end
                 from numbered
                 union all
                 select seq, event_id, amount, currency{groups}, nth, event_time, event_time + {gap}
                 from verdicts where nth > 1 and is_dropped)"
        ));
        select
    }

    /// The matching events as `matching`, numbered within their key.
    fn matching_events(&self) -> QueryBuilder<Postgres> {
        let keys: Vec<String> = self.query.spec.deduplicate.iter().map(key_expression).collect();
        let nth = match keys.is_empty() {
            true => "1".to_owned(),
            false => {
                format!("row_number() over (partition by {} order by seq)", keys.join(", "))
            }
        };
        let expressions = self.group_expressions();
        let mut select = QueryBuilder::new(format!(
            "with matching as (select seq, event_id, event_time, amount, currency{expressions}, {nth} as nth
             from raw_events where "
        ));
        self.push_matching(&mut select);
        select.push(")");
        select
    }

    fn push_counts(&self, select: &mut QueryBuilder<Postgres>) {
        let (groups, position) = (self.groups(), self.query.position);
        select.push(format!(
            " select window_start, window_end, currency{groups}, count(*) filter (where nth = 1) as orders,
                 coalesce(sum(amount) filter (where nth = 1), 0) as revenue"
        ));
        for (name, amount, condition) in [
            ("waiting", "amount", format!("nth = 1 and seq > {position}")),
            ("late", "dropped_amount", BOOKABLE.to_owned()),
            ("repeated", "amount", format!("nth > 1 and reason is null and seq <= {position}")),
            ("duplicate", "amount", "nth > 1 and reason is not null".to_owned()),
            ("stray", "dropped_amount", "nth is null".to_owned()),
        ] {
            select.push(format!(
                ", count(*) filter (where {condition}) as {name}_orders,
                 coalesce(sum({amount}) filter (where {condition}), 0) as {name}_revenue"
            ));
        }
        select.push(format!(
            ", array_agg(event_id order by seq) filter (where {BOOKABLE}) as late_event_ids,
                 array_agg(event_id order by seq) filter (where nth = 1 and reason = 'duplicate') as odd_event_ids,
                 array_agg('seq ' || seq order by seq) filter (where nth is null) as stray_event_ids, stray_keys
             from judged group by window_start, window_end, currency{groups}, stray_keys"
        ));
    }

    fn push_matching(&self, select: &mut QueryBuilder<Postgres>) {
        let (start_seq, query_id) = (self.query.start_seq, self.query.query_id);
        select.push(format!("kind = 'event' and seq > {start_seq}"));
        if let Some(as_of) = self.as_of {
            let (moment, position) = (as_of.literal(), self.query.position);
            select.push(format!(" and (received_at <= {moment} or seq <= {position})"));
        }
        push_filter(select, self.query);
        if self.query.has_poison_events {
            select.push(format!(
                " and not exists (select from poison_events poison
                     where poison.query_id = {query_id} and poison.seq = raw_events.seq{})",
                self.by_then("poison.found_at")
            ));
        }
    }

    /// Only what came by the moment that is asked for.
    fn by_then(&self, column: &str) -> String {
        self.as_of.map_or(String::new(), |as_of| format!(" and {column} <= {}", as_of.literal()))
    }

    fn push_range(&self, select: &mut QueryBuilder<Postgres>, start: &str) {
        push_range(select, self.query.spec.window, self.range, start);
    }
}

/// Counts, by window, the matching events that are set aside.
pub(super) fn set_aside_sql(
    query: &StoredQuery,
    range: RecountRange,
    as_of: Option<AsOf>,
) -> QueryBuilder<Postgres> {
    let sql = RecountSql::new(query, range, as_of);
    let (received, found) = (sql.by_then("received_at"), sql.by_then("found_at"));
    let resolved_later =
        as_of.map_or(String::new(), |as_of| format!(" or resolved_at > {}", as_of.literal()));
    let (start, spread) = placing(query.spec.window);
    let size = interval(size_of(query.spec.window));
    let (groups, expressions, query_id) = (sql.groups(), sql.group_expressions(), query.query_id);
    let mut select = QueryBuilder::new(format!(
        "select window_start, window_start + {size} as window_end, currency{groups}, count(*) as orders,
             sum(amount) as revenue
         from (select {start} as window_start, currency, amount{expressions}
             from (select order_id, status, amount, currency, event_time, store_id, till_id,
                     customer_id, item_count, attributes
                 from quarantine where (resolved_at is null{resolved_later}){received}
                 union all
                 select order_id, status, amount, currency, event_time, store_id, till_id,
                     customer_id, item_count, attributes
                 from raw_events join poison_events using (seq) where query_id = {query_id}{found}
             ) aside{spread} where {start} + {size} > event_time"
    ));
    push_filter(&mut select, query);
    push_range(&mut select, query.spec.window, range, &start);
    select.push(format!(") placed group by window_start, currency{groups}"));
    select
}

/// Only events that pass the query's filter.
pub(super) fn push_filter(select: &mut QueryBuilder<Postgres>, query: &StoredQuery) {
    for (field, values) in &query.spec.filter.0 {
        select.push(format!(" and {} = any(", field_expression(field)));
        select.push_bind(values.clone()).push(")");
    }
}

/// Windows that start in the range; and, so that partitions and indexes can help, only events that
/// such a window may hold.
fn push_range(
    select: &mut QueryBuilder<Postgres>,
    window: WindowSpec,
    range: RecountRange,
    start: &str,
) {
    if let Some(from) = range.from {
        let from = literal(from);
        select.push(format!(" and event_time >= {from} and {start} >= {from}"));
    }
    if let Some(to) = range.to {
        let latest = literal(to.plus(size_of(window)));
        let to = literal(to);
        select.push(format!(" and event_time < {latest} and {start} < {to}"));
    }
}

/// The start of an event's window in SQL, and what must be joined for it.
fn placing(window: WindowSpec) -> (String, String) {
    match window {
        WindowSpec::Tumbling { size, offset } => (bin(size, offset), String::new()),
        WindowSpec::Sliding { size, slide, offset } => {
            let windows_before = size.as_micros().saturating_sub(1) / slide.as_micros().max(1);
            let start = format!("({} - nth_before * {})", bin(slide, offset), interval(slide));
            (start, format!(" cross join generate_series(0, {windows_before}) as nth_before"))
        }
        WindowSpec::Session { .. } => ("event_time".to_owned(), String::new()),
    }
}

fn size_of(window: WindowSpec) -> Span {
    match window {
        WindowSpec::Tumbling { size, .. } | WindowSpec::Sliding { size, .. } => size,
        WindowSpec::Session { gap } => gap,
    }
}

/// The last boundary at or before an event, counted from one before all events: Postgres then only
/// ever counts forwards.
fn bin(step: Span, offset: Span) -> String {
    let origin = literal(EventTime::EARLIEST.floor_to(step, offset));
    format!("date_bin({}, event_time, {origin})", interval(step))
}

fn interval(span: Span) -> String {
    format!("interval '{} milliseconds'", span.as_millis())
}

pub(super) fn literal(time: EventTime) -> String {
    format!("timestamptz '{time}'")
}
