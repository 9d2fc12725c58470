//! Between the model's plain numbers and the engine's types.

use std::collections::BTreeMap;

use tillmark::domain::{
    Amount, Attributes, DuplicateKey, Event, EventTime, Filter, LoggedEvent, OutputMode, Seq,
    Totals, WindowKey,
};
use tillmark::engine::{Batch, Content, Dropped, Profile, Record, Row, Rules};

use crate::builders::{a_sale, tumbling};
use crate::model::{ModelDrop, ModelEvent, ModelKey, ModelMode, ModelRow, ModelRules};

pub(crate) fn rules(model: &ModelRules, delay_millis: i64) -> Rules {
    let filter = model.filter.iter();
    Rules {
        filter: Filter(filter.map(|(field, any)| (field.parse().unwrap(), any.clone())).collect()),
        window: tumbling(&millis(model.size_millis), &millis(model.offset_millis)),
        watermark_delay: millis(delay_millis).parse().unwrap(),
        group_by: model.group_by.iter().map(|field| field.parse().unwrap()).collect(),
        deduplicate: Vec::new(),
        idle_timeout: None,
        #[cfg(feature = "defects")]
        defect: None,
        output_mode: match model.mode {
            ModelMode::Append => OutputMode::Append,
            ModelMode::Update => OutputMode::Update,
            ModelMode::Complete => OutputMode::Complete,
        },
    }
}

fn millis(count: i64) -> String {
    format!("{count} milliseconds")
}

pub(crate) fn logged(model: &ModelEvent) -> LoggedEvent {
    let mut event = Event {
        amount: Amount::from_ten_thousandths(model.money).unwrap(),
        currency: model.currency.parse().unwrap(),
        event_time: EventTime::from_micros(model.micros),
        ..a_sale("00:00")
    };
    let mut attributes = BTreeMap::new();
    for (field, value) in &model.fields {
        let Some(value) = value else { continue };
        match field.as_str() {
            "store_id" => event.store_id = Some(value.parse().unwrap()),
            "till_id" => event.till_id = Some(value.parse().unwrap()),
            "customer_id" => event.customer_id = Some(value.parse().unwrap()),
            "status" => event.status = value.parse().unwrap(),
            other => {
                let name = other.strip_prefix("attributes.").unwrap();
                attributes.insert(name.to_owned(), value.clone());
            }
        }
    }
    event.attributes = Attributes::new(attributes).unwrap();
    LoggedEvent { seq: Seq::new(model.seq), event }
}

/// These events as a batch for a query with `rules`.
pub(crate) fn batch_of(rules: &Rules, events: &[LoggedEvent]) -> Batch {
    let mut batch = Batch::default();
    for logged in events {
        push_event(&mut batch, rules, logged);
    }
    batch
}

/// Adds an event, with a profile of its own.
pub(crate) fn push_event(batch: &mut Batch, rules: &Rules, logged: &LoggedEvent) {
    let event = &logged.event;
    let values = rules.fields().map(|field| field.value_in(event).map(str::to_owned)).collect();
    let profile = batch.add_profile(Profile { currency: event.currency, values });
    let keys: Vec<Option<String>> =
        rules.deduplicate.iter().map(|field| field.text_in(event)).collect();
    let duplicate_key =
        (!keys.is_empty()).then(|| DuplicateKey::new(&serde_json::to_string(&keys).unwrap()));
    let content = Content::Event { amount: event.amount, profile, duplicate_key };
    batch.push(Record { seq: logged.seq, event_time: event.event_time, content });
}

pub(crate) fn key(key: &WindowKey) -> ModelKey {
    let (end, start) = (key.window.end.as_micros(), key.window.start.as_micros());
    (end, start, key.currency.code().to_owned(), key.group.0.clone())
}

pub(crate) fn rows(rows: &[Row]) -> Vec<ModelRow> {
    rows.iter().map(|row| model_row(&row.key, &row.totals)).collect()
}

pub(crate) fn windows(windows: &BTreeMap<WindowKey, Totals>) -> Vec<ModelRow> {
    windows.iter().map(|(key, totals)| model_row(key, totals)).collect()
}

fn model_row(window: &WindowKey, totals: &Totals) -> ModelRow {
    (key(window), totals.orders, totals.revenue.as_ten_thousandths())
}

pub(crate) fn dropped(entries: &[Dropped]) -> Vec<ModelDrop> {
    let plain = |entry: &Dropped| {
        let money = entry.amount.as_ten_thousandths();
        (entry.seq.get(), key(&entry.key), money, entry.late_by.as_millis())
    };
    entries.iter().map(plain).collect()
}
