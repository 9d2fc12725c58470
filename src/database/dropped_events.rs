//! Reading the ledger of dropped events: what a query read and did not (fully) count.

use chrono::{DateTime, Utc};
use sqlx::{Postgres, QueryBuilder};

use super::error::Doing;
use super::raw_log::EventColumns;
use super::values::{push_event_reach, watermark_from_sql};
use super::{Database, DatabaseError};
use crate::domain::{BatchId, EventTime, LoggedEvent, Seq, Span, StoreReach, Watermark, Window};

/// Which entries to read.
#[derive(Debug, Clone, Default)]
pub struct DroppedSelection {
    /// Only entries for this reason, a word of the API.
    pub reason: Option<String>,
    /// Events at or after this event time.
    pub from: Option<EventTime>,
    /// Events before this event time.
    pub to: Option<EventTime>,
    /// Only events of these stores.
    pub reach: StoreReach,
    /// Entries after this position, in the order of the raw log.
    pub after: Option<Seq>,
    /// Entries up to this position.
    pub up_to: Option<Seq>,
}

/// An event that missed one or more windows.
#[derive(Debug, Clone)]
pub struct DroppedEvent {
    /// The event.
    pub logged: LoggedEvent,
    /// When it was received, by the database's clock.
    pub received_at: DateTime<Utc>,
    /// Why, a word of the API.
    pub reason: String,
    /// The windows that it missed, by start.
    pub windows: Vec<Window>,
    /// The watermark that judged it.
    pub watermark: Watermark,
    /// How far it stood behind the newest event of the batches before.
    pub late_by: Span,
    /// The batch that read it.
    pub batch_id: BatchId,
}

#[derive(Debug, sqlx::FromRow)]
struct DroppedColumns {
    #[sqlx(flatten)]
    event: EventColumns,
    received_at: DateTime<Utc>,
    reason: String,
    starts: Vec<DateTime<Utc>>,
    ends: Vec<DateTime<Utc>>,
    watermark: DateTime<Utc>,
    late_by_ms: i64,
    batch_id: i64,
}

impl DroppedColumns {
    fn read(self) -> Result<DroppedEvent, DatabaseError> {
        let windows = self.starts.iter().zip(&self.ends).map(|(start, end)| Window {
            start: EventTime::from_utc(*start),
            end: EventTime::from_utc(*end),
        });
        Ok(DroppedEvent {
            windows: windows.collect(),
            logged: self.event.read()?,
            received_at: self.received_at,
            reason: self.reason,
            watermark: watermark_from_sql(self.watermark),
            late_by: Span::from_micros(self.late_by_ms.saturating_mul(1_000)),
            batch_id: BatchId::new(self.batch_id),
        })
    }
}

impl Database {
    /// Up to `limit` dropped events of a query, in the order of the raw log.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`] or [`DatabaseError::Unreadable`].
    pub async fn dropped_events(
        &self,
        query_id: i64,
        selection: &DroppedSelection,
        limit: u32,
    ) -> Result<Vec<DroppedEvent>, DatabaseError> {
        let mut select = QueryBuilder::<Postgres>::new(
            "select raw_events.*, entry.reason, entry.batch_id, entry.watermark, entry.late_by_ms,
                 entry.starts, entry.ends
             from (select seq, reason, batch_id, watermark, late_by_ms,
                     array_agg(window_start order by window_start) as starts,
                     array_agg(window_end order by window_start) as ends
                 from dropped_events where query_id = ",
        );
        select.push_bind(query_id);
        if let Some(reason) = &selection.reason {
            select.push(" and reason = ").push_bind(reason.clone());
        }
        if let Some(after) = selection.after {
            select.push(" and seq > ").push_bind(after.get());
        }
        if let Some(up_to) = selection.up_to {
            select.push(" and seq <= ").push_bind(up_to.get());
        }
        select.push(" group by seq, reason, batch_id, watermark, late_by_ms) entry join raw_events using (seq) where true");
        push_event_reach(&mut select, &selection.reach);
        if let Some(from) = selection.from {
            select.push(" and event_time >= ").push_bind(from.to_utc());
        }
        if let Some(to) = selection.to {
            select.push(" and event_time < ").push_bind(to.to_utc());
        }
        select.push(" order by seq limit ").push_bind(i64::from(limit));
        let columns: Vec<DroppedColumns> = select
            .build_query_as()
            .fetch_all(&mut *self.reader().await?)
            .await
            .doing("read the ledger of dropped events")?;
        columns.into_iter().map(DroppedColumns::read).collect()
    }
}
