//! Reading the raw log.

use chrono::{DateTime, Utc};
use futures_util::TryStreamExt;
use rust_decimal::Decimal;

use super::error::Doing;
use super::values::{amount_from_sql, unreadable};
use super::{Database, DatabaseError};
use crate::domain::{Attributes, Event, EventTime, LoggedEvent, Seq};

impl Database {
    /// Reads up to `events_max` events after `position`, oldest first.
    ///
    /// An empty answer means "nothing yet". Positions have gaps: a rolled-back append uses some up.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`], or [`DatabaseError::Unreadable`] for a row that somebody changed;
    /// reading again is always safe.
    pub async fn raw_log_read_after(
        &self,
        position: Seq,
        events_max: u32,
    ) -> Result<Vec<LoggedEvent>, DatabaseError> {
        let mut rows = sqlx::query_as::<_, EventColumns>(
            "select seq, event_id, order_id, status, amount, currency, event_time, store_id, till_id,
                 customer_id, item_count, attributes
             from raw_events where seq > $1 order by seq limit $2",
        )
        .bind(position.get())
        .bind(i64::from(events_max))
        .fetch(&self.engine);
        let mut events = Vec::new();
        while let Some(row) = rows.try_next().await.doing("read the raw log")? {
            events.push(row.read()?);
        }
        Ok(events)
    }

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
