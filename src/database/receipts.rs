//! Receipts: what became of one event, in the log, in quarantine and in each query.
//!
//! Everything is read in one snapshot, so that the parts agree. What a query did not drop, not set
//! aside and has read, it counted.

use chrono::{DateTime, Utc};
use sqlx::{Connection as _, PgConnection};

use super::error::Doing;
use super::quarantine::{self, Quarantined};
use super::queries::{self, StoredQuery};
use super::raw_log::EventColumns;
use super::receipt_facts::{
    Dropped, Standing, closing, closing_batch, counted_first, session_of, standings,
};
use super::{Database, DatabaseError};
use crate::domain::{
    BatchId, Event, EventId, EventTime, LoggedEvent, OrderId, OutputMode, QueryName, QuerySpec,
    Seq, Source, Span, Watermark, Window, WindowSpec,
};

/// All that is known of one event.
#[derive(Debug, Clone)]
pub struct Receipt {
    /// As it stands in the log; while it does not, as it was posted.
    pub event: Event,
    /// When the log, or else the quarantine, received it, by the database's clock.
    pub received_at: DateTime<Utc>,
    /// Where it stands in the log, if it does.
    pub seq: Option<Seq>,
    /// Its entry in quarantine, if it ever was there.
    pub quarantined: Option<Quarantined>,
    /// What became of it in each query that it matches, by name.
    pub queries: Vec<QueryReceipt>,
}

/// What became of an event in one query.
#[derive(Debug, Clone)]
pub struct QueryReceipt {
    /// The query's name.
    pub name: QueryName,
    /// Its rule.
    pub spec: QuerySpec,
    /// What became of the event.
    pub outcome: ReceiptOutcome,
    /// The windows that it counts in, or would count in, by start.
    pub windows: Vec<Window>,
    /// The windows that it missed, by start.
    pub missed_windows: Vec<Window>,
    /// The batch that read it.
    pub batch_id: Option<BatchId>,
}

/// What a query made of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReceiptOutcome {
    /// It is in all its windows.
    Counted {
        /// How many of them are final.
        n_final: usize,
        /// The batch that made the last of those final.
        final_since: Option<BatchId>,
    },
    /// It missed at least one window.
    Late {
        /// What it was too late for.
        rule: LateRule,
        /// How that came to be over.
        closing: Option<Closing>,
    },
    /// Its key was counted before.
    Duplicate {
        /// The event that was.
        first: Option<EventId>,
    },
    /// The query has not read it.
    Waiting,
    /// It is set aside.
    Quarantined {
        /// Why.
        reason: String,
    },
}

/// What a late event was too late for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LateRule {
    /// This window, the last one that it missed, was closed.
    WindowClosed(Window),
    /// The duplicates rule: its key might have been forgotten already.
    KeyForgotten,
}

/// How a watermark came to where it closed something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closing {
    /// The watermark.
    pub watermark: Watermark,
    /// The record that moved it there; nothing when it always stood there.
    pub record: Option<ClosingRecord>,
}

/// A record of the log that moved a watermark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClosingRecord {
    /// An event.
    Event {
        /// Its order.
        order_id: OrderId,
        /// Its time.
        event_time: EventTime,
    },
    /// A heartbeat.
    Heartbeat {
        /// Who sent it.
        source: Source,
        /// Its time.
        event_time: EventTime,
    },
    /// The service's own, after a silence.
    Idle {
        /// For how long nothing had come.
        quiet: Span,
    },
}

#[derive(Debug, sqlx::FromRow)]
struct LoggedColumns {
    #[sqlx(flatten)]
    event: EventColumns,
    received_at: DateTime<Utc>,
}

impl Database {
    /// The receipt of an event; nothing when no event of this id was ever stored.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`] or [`DatabaseError::Unreadable`].
    pub async fn receipt(&self, event_id: &EventId) -> Result<Option<Receipt>, DatabaseError> {
        let mut conn = self.reader().await?;
        let mut transaction = conn
            .begin_with("begin transaction isolation level repeatable read, read only")
            .await
            .doing("begin a receipt")?;
        let conn = &mut *transaction;
        // Few rows of large tables are wanted, and all of them are found by an index.
        sqlx::raw_sql("set local enable_seqscan = off; set local enable_bitmapscan = off; set local jit = off")
            .execute(&mut *conn)
            .await
            .doing("begin a receipt")?;
        let quarantined = quarantine::find(conn, event_id).await?;
        let receipt = match logged_event(conn, event_id).await? {
            Some((logged, received_at)) => {
                let queries = receipts_of_logged(conn, &logged).await?;
                let LoggedEvent { seq, event } = logged;
                Some(Receipt { event, received_at, seq: Some(seq), quarantined, queries })
            }
            None => match quarantined {
                Some(entry) => Some(receipt_of_set_aside(conn, entry).await?),
                None => None,
            },
        };
        transaction.commit().await.doing("finish a receipt")?;
        Ok(receipt)
    }
}

async fn logged_event(
    conn: &mut PgConnection,
    event_id: &EventId,
) -> Result<Option<(LoggedEvent, DateTime<Utc>)>, DatabaseError> {
    let columns: Option<LoggedColumns> = sqlx::query_as(
        "select raw_events.* from event_keys join raw_events using (seq) where event_keys.event_id = $1",
    )
    .bind(event_id.as_str())
    .fetch_optional(conn)
    .await
    .doing("read an event")?;
    columns.map(|columns| Ok((columns.event.read()?, columns.received_at))).transpose()
}

/// The receipt of an event that is in quarantine, or was rejected there.
async fn receipt_of_set_aside(
    conn: &mut PgConnection,
    entry: Quarantined,
) -> Result<Receipt, DatabaseError> {
    let reason = match &entry.resolution {
        Some(resolution) => format!("{}; it was rejected: {}", entry.reason, resolution.note),
        None => entry.reason.clone(),
    };
    let matching = queries::all(conn).await?.into_iter();
    let matching = matching.filter(|query| query.spec.filter.matches(&entry.event));
    let queries = matching.map(|query| QueryReceipt {
        windows: windows_of(query.spec.window, entry.event.event_time),
        missed_windows: Vec::new(),
        batch_id: None,
        outcome: ReceiptOutcome::Quarantined { reason: reason.clone() },
        name: query.name,
        spec: query.spec,
    });
    Ok(Receipt {
        queries: queries.collect(),
        event: entry.event.clone(),
        received_at: entry.received_at,
        seq: None,
        quarantined: Some(entry),
    })
}

async fn receipts_of_logged(
    conn: &mut PgConnection,
    logged: &LoggedEvent,
) -> Result<Vec<QueryReceipt>, DatabaseError> {
    let mut queries = queries::all(conn).await?;
    queries
        .retain(|query| query.start_seq < logged.seq && query.spec.filter.matches(&logged.event));
    let ids: Vec<i64> = queries.iter().map(|query| query.query_id).collect();
    let mut standings = standings(conn, &ids, logged.seq).await?;
    let mut receipts = Vec::with_capacity(queries.len());
    for query in queries {
        let standing = standings.remove(&query.query_id).unwrap_or_default();
        receipts.push(receipt_in(conn, query, logged, standing).await?);
    }
    Ok(receipts)
}

async fn receipt_in(
    conn: &mut PgConnection,
    query: StoredQuery,
    logged: &LoggedEvent,
    standing: Standing,
) -> Result<QueryReceipt, DatabaseError> {
    let Standing { batch_id, poison, dropped } = standing;
    let event_time = logged.event.event_time;
    let mut windows = windows_of(query.spec.window, event_time);
    let mut missed_windows = Vec::new();
    let outcome = match (poison, dropped) {
        (Some(reason), _) => ReceiptOutcome::Quarantined {
            reason: format!("the query goes on without it: {reason}"),
        },
        (None, _) if logged.seq > query.position => ReceiptOutcome::Waiting,
        (None, Some(dropped)) => {
            missed_windows.clone_from(&dropped.windows);
            windows.retain(|window| !dropped.windows.contains(window));
            drop_outcome(conn, &query, logged, &dropped).await?
        }
        (None, None) => {
            if let WindowSpec::Session { .. } = query.spec.window {
                for window in &mut windows {
                    *window = session_of(conn, &query, logged, *window).await?.unwrap_or(*window);
                }
            }
            counted(conn, &query, &windows).await?
        }
    };
    let is_read = !matches!(outcome, ReceiptOutcome::Waiting | ReceiptOutcome::Quarantined { .. });
    Ok(QueryReceipt {
        outcome,
        windows,
        missed_windows,
        batch_id: batch_id.filter(|_| is_read),
        name: query.name,
        spec: query.spec,
    })
}

async fn drop_outcome(
    conn: &mut PgConnection,
    query: &StoredQuery,
    logged: &LoggedEvent,
    dropped: &Dropped,
) -> Result<ReceiptOutcome, DatabaseError> {
    if dropped.reason == "duplicate" {
        let first = counted_first(conn, query, logged.seq).await?;
        return Ok(ReceiptOutcome::Duplicate { first });
    }
    let last_missed = dropped.windows.iter().max().copied();
    let closed = last_missed.filter(|window| window.is_closed_at(dropped.watermark));
    let (rule, over) = match closed {
        Some(window) => (LateRule::WindowClosed(window), window.end),
        None => (LateRule::KeyForgotten, logged.event.event_time),
    };
    Ok(ReceiptOutcome::Late { rule, closing: closing(conn, query, over).await? })
}

async fn counted(
    conn: &mut PgConnection,
    query: &StoredQuery,
    windows: &[Window],
) -> Result<ReceiptOutcome, DatabaseError> {
    let closes = query.spec.output_mode != OutputMode::Complete;
    let watermark = query.watermarks.current;
    let finals = || windows.iter().filter(|window| closes && window.is_closed_at(watermark));
    let final_since = match finals().max() {
        Some(last) => closing_batch(conn, query.query_id, last.end).await?,
        None => None,
    };
    Ok(ReceiptOutcome::Counted { n_final: finals().count(), final_since })
}

/// The windows that hold `time`, by start.
fn windows_of(window: WindowSpec, time: EventTime) -> Vec<Window> {
    let mut windows: Vec<Window> = window.windows_of(time).collect();
    windows.reverse();
    windows
}
