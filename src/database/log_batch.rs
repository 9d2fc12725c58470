//! Reading the raw log for the engine, as fast as Postgres can send it: `copy … to stdout` of just
//! the columns that a query needs.
//!
//! A tuple of Postgres's binary copy format is a count of fields, then for each its length and its
//! bytes (PostgreSQL documentation, "COPY", "Binary Format"). The texts that make a profile stand
//! last, so their bytes as they come are the key under which the profile is found again.

use std::collections::HashMap;

use futures_util::TryStreamExt as _;
use sqlx::PgConnection;

use super::copy_format::{Tuple, TupleReader};
use super::error::Doing;
use super::values::{attribute_name_to_sql, unreadable};
use super::{Database, DatabaseError};
use crate::domain::{DuplicateKey, Event, EventField, KeyField, Seq, Span};
use crate::engine::{Batch, Content, Profile, ProfileId, Record, Rules};

impl Database {
    /// Reads up to `records_max` records after `position`, oldest first, cut down to what `rules`
    /// need of them; all up to `head`, a position that the log had reached, unless those are more.
    ///
    /// An empty answer means "nothing yet". Positions have gaps: a rolled-back append uses some up.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`], or [`DatabaseError::Unreadable`] for a row that somebody changed;
    /// reading again is always safe.
    pub async fn raw_log_batch(
        &self,
        rules: &Rules,
        position: Seq,
        head: Seq,
        records_max: u32,
    ) -> Result<Batch, DatabaseError> {
        if let Some(batch) = self.tail.batch(rules, position, head, records_max) {
            return Ok(batch);
        }
        let statement = statement(rules, position, records_max);
        let mut conn = self.log.acquire().await.doing("reach the database")?;
        let mut builder = Builder::of(rules);
        let read = copy_out(&mut conn, &statement, |tuple| builder.add(tuple)).await;
        if read.is_err() {
            conn.close_on_drop();
        }
        read.map(|()| builder.batch)
    }
}

/// Hands each tuple of a copy to `take`.
///
/// After a failure the connection is to be closed: sqlx leaves the end of a copy that is refused unread,
/// and would take it for the end of the next statement.
pub(super) async fn copy_out(
    conn: &mut PgConnection,
    statement: &str,
    mut take: impl FnMut(Tuple<'_>) -> Result<(), DatabaseError>,
) -> Result<(), DatabaseError> {
    let mut messages = conn.copy_out_raw(statement).await.doing("begin reading the raw log")?;
    let mut tuples = TupleReader::default();
    while let Some(message) = messages.try_next().await.doing("read the raw log")? {
        tuples.read(&message, &mut take)?;
    }
    Ok(())
}

fn statement(rules: &Rules, position: Seq, records_max: u32) -> String {
    let columns = columns(rules);
    format!(
        "copy (select {columns} from raw_events where seq > {position} order by seq limit {records_max}) \
         to stdout (format binary)"
    )
}

/// What a [`Builder`] reads of each record, in its order.
pub(super) fn columns(rules: &Rules) -> String {
    let mut columns = "seq, event_time, amount, quiet_ms".to_owned();
    for field in &rules.deduplicate {
        columns.push_str(", ");
        columns.push_str(&key_expression(field));
    }
    columns.push_str(", currency");
    for field in rules.fields() {
        columns.push_str(", ");
        columns.push_str(&field_expression(field));
    }
    columns
}

/// A field's value in SQL.
pub(super) fn field_expression(field: &EventField) -> String {
    match field {
        EventField::StoreId => "store_id".to_owned(),
        EventField::TillId => "till_id".to_owned(),
        EventField::CustomerId => "customer_id".to_owned(),
        EventField::Status => "status".to_owned(),
        EventField::Attribute(name) => format!("attributes ->> {}", attribute_name_to_sql(name)),
    }
}

/// A field's value in SQL, as a text that is equal for equal values.
pub(super) fn key_expression(field: &KeyField) -> String {
    match field {
        KeyField::EventId => "event_id".to_owned(),
        KeyField::OrderId => "order_id".to_owned(),
        KeyField::Amount => "amount::text".to_owned(),
        KeyField::Currency => "currency".to_owned(),
        KeyField::EventTime => {
            "(extract(epoch from event_time) * 1000000)::bigint::text".to_owned()
        }
        KeyField::ItemCount => "item_count::text".to_owned(),
        KeyField::Field(field) => field_expression(field),
    }
}

/// Builds a batch from tuples.
pub(super) struct Builder {
    pub(super) batch: Batch,
    /// By whatever tells profiles apart in what the batch is built from.
    profiles: HashMap<Vec<u8>, ProfileId>,
    key_fields: usize,
    fields: Vec<EventField>,
    /// The key of the event that is added.
    key: Vec<u8>,
}

impl Builder {
    pub(super) fn of(rules: &Rules) -> Self {
        Self {
            batch: Batch::default(),
            profiles: HashMap::new(),
            key_fields: rules.deduplicate.len(),
            fields: rules.fields().cloned().collect(),
            key: Vec::new(),
        }
    }

    /// Adds an event that is in memory. Only for queries without a duplicates rule.
    pub(super) fn add_event(&mut self, seq: Seq, event: &Event) {
        self.key.clear();
        self.key.extend_from_slice(event.currency.code().as_bytes());
        for field in &self.fields {
            let text = field.value_in(event);
            // No text is as long as -1.
            let length = text.map_or(u64::MAX, |text| text.len() as u64);
            self.key.extend_from_slice(&length.to_ne_bytes());
            self.key.extend_from_slice(text.unwrap_or_default().as_bytes());
        }
        let profile = self.profiles.get(&self.key).copied().unwrap_or_else(|| {
            let values = self.fields.iter().map(|field| field.value_in(event).map(str::to_owned));
            let profile = Profile { currency: event.currency, values: values.collect() };
            let id = self.batch.add_profile(profile);
            self.profiles.insert(self.key.clone(), id);
            id
        });
        let content = Content::Event { amount: event.amount, profile, duplicate_key: None };
        self.batch.push(Record { seq, event_time: event.event_time, content });
    }

    pub(super) fn add(&mut self, mut tuple: Tuple<'_>) -> Result<(), DatabaseError> {
        let seq = Seq::new(tuple.integer("seq")?.ok_or_else(|| unreadable("seq", "it is null"))?);
        let event_time = tuple.time("event_time")?;
        let amount = tuple.amount("amount")?;
        let quiet = tuple.integer("quiet_ms")?;
        let content = match (amount, quiet) {
            (Some(amount), _) => Content::Event {
                amount,
                duplicate_key: self.duplicate_key(&mut tuple)?,
                profile: self.profile(tuple)?,
            },
            (None, Some(quiet_ms)) => {
                Content::IdleHeartbeat { quiet: Span::from_micros(quiet_ms.saturating_mul(1_000)) }
            }
            (None, None) => Content::Heartbeat,
        };
        self.batch.push(Record { seq, event_time, content });
        Ok(())
    }

    fn duplicate_key(&self, tuple: &mut Tuple<'_>) -> Result<Option<DuplicateKey>, DatabaseError> {
        if self.key_fields == 0 {
            return Ok(None);
        }
        let mut values = Vec::with_capacity(self.key_fields);
        for _ in 0..self.key_fields {
            values.push(tuple.text("key of the duplicates rule")?);
        }
        Ok(Some(DuplicateKey::new(&serde_json::Value::from(values).to_string())))
    }

    fn profile(&mut self, mut tuple: Tuple<'_>) -> Result<ProfileId, DatabaseError> {
        if let Some(known) = self.profiles.get(tuple.rest()) {
            return Ok(*known);
        }
        let bytes = tuple.rest().to_vec();
        let currency = tuple.text("currency")?.unwrap_or_default();
        let currency = currency.parse().map_err(|error| unreadable("currency", error))?;
        let values = self
            .fields
            .iter()
            .map(|_| Ok(tuple.text("field of an event")?.map(str::to_owned)))
            .collect::<Result<_, DatabaseError>>()?;
        let id = self.batch.add_profile(Profile { currency, values });
        self.profiles.insert(bytes, id);
        Ok(id)
    }
}
