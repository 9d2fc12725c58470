//! Where the raw log ends, and what a whole event of it says.

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;

use super::error::Doing;
use super::values::{amount_from_sql, unreadable};
use super::{Database, DatabaseError};
use crate::domain::{Attributes, Event, EventId, EventTime, LoggedEvent, Seq};

impl Database {
    /// The position of the newest record; [`Seq::START`] while there is none.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`].
    pub async fn raw_log_head(&self) -> Result<Seq, DatabaseError> {
        sqlx::query_scalar(
            "select coalesce((select seq from raw_events order by seq desc limit 1), 0)",
        )
        .fetch_one(&self.engine)
        .await
        .map(Seq::new)
        .doing("find the end of the raw log")
    }

    /// Forgets what this process remembers of the end of the log, which is then read from the log: after a
    /// sign that another server has taken over.
    pub fn raw_log_forget(&self) {
        self.tail.forget();
    }

    /// The ids, with their positions, of up to `events_max` events after `position` whose id begins
    /// with `prefix`, oldest first.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`], or [`DatabaseError::Unreadable`] for a row that somebody changed.
    pub async fn event_ids_after(
        &self,
        position: Seq,
        prefix: &str,
        events_max: u32,
    ) -> Result<Vec<(Seq, EventId)>, DatabaseError> {
        let rows: Vec<(i64, String)> = sqlx::query_as(
            "select seq, event_id from raw_events
             where seq > $1 and kind = 'event' and starts_with(event_id, $2)
             order by seq limit $3",
        )
        .bind(position.get())
        .bind(prefix)
        .bind(i64::from(events_max))
        .fetch_all(&mut *self.reader().await?)
        .await
        .doing("read event ids from the raw log")?;
        rows.into_iter().map(|(seq, id)| Ok((Seq::new(seq), checked("event_id", id)?))).collect()
    }
}

/// The columns of an event in the raw log.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct EventColumns {
    seq: i64,
    event_id: String,
    order_id: String,
    status: String,
    amount: Decimal,
    currency: String,
    event_time: DateTime<Utc>,
    store_id: Option<String>,
    till_id: Option<String>,
    customer_id: Option<String>,
    item_count: Option<i64>,
    attributes: Option<sqlx::types::Json<std::collections::BTreeMap<String, String>>>,
}

impl EventColumns {
    /// The event that these columns hold.
    pub(super) fn read(self) -> Result<LoggedEvent, DatabaseError> {
        let attributes = self.attributes.map(|json| json.0).unwrap_or_default();
        let event = Event {
            event_id: checked("event_id", self.event_id)?,
            order_id: checked("order_id", self.order_id)?,
            status: checked("status", self.status)?,
            amount: amount_from_sql(self.amount)?,
            currency: self.currency.parse().map_err(|error| unreadable("currency", error))?,
            event_time: EventTime::from_utc(self.event_time),
            store_id: self.store_id.map(|text| checked("store_id", text)).transpose()?,
            till_id: self.till_id.map(|text| checked("till_id", text)).transpose()?,
            customer_id: self.customer_id.map(|text| checked("customer_id", text)).transpose()?,
            item_count: self.item_count,
            attributes: Attributes::new(attributes)
                .ok_or_else(|| unreadable("attributes", "they are too many or too long"))?,
        };
        Ok(LoggedEvent { seq: Seq::new(self.seq), event })
    }
}

fn checked<T>(what: &'static str, text: String) -> Result<T, DatabaseError>
where
    T: TryFrom<String, Error = crate::domain::InvalidText>,
{
    T::try_from(text).map_err(|error| unreadable(what, error))
}
