//! Between the model's plain numbers and the engine's types.

use std::collections::BTreeMap;

use tillmark::domain::{
    Amount, Attributes, ClosedBy, DuplicateKey, Event, EventTime, Filter, LoggedEvent, OutputMode,
    Seq, Span, Totals, Watermark, WindowKey, WindowSpec,
};
use tillmark::engine::{
    Batch, Content, Dropped, DroppedReason, Outcome, Profile, ProfileId, Record, Remembered, Row,
    Rules, Watermarks,
};

use crate::builders::{a_sale, sessions, sliding, tumbling};
use crate::model::{
    ModelDrop, ModelEvent, ModelKey, ModelMode, ModelOutcome, ModelRecord, ModelRemembered,
    ModelRow, ModelRules, ModelSettings, ModelWatermarks, ModelWindows,
};

pub(crate) fn rules(model: &ModelRules, settings: ModelSettings) -> Rules {
    let filter = model.filter.iter();
    Rules {
        filter: Filter(filter.map(|(field, any)| (field.parse().unwrap(), any.clone())).collect()),
        window: window(model.windows),
        watermark_delay: span(settings.delay_millis),
        group_by: model.group_by.iter().map(|field| field.parse().unwrap()).collect(),
        deduplicate: model.deduplicate.iter().map(|field| field.parse().unwrap()).collect(),
        idle_timeout: settings.idle_timeout_millis.map(span),
        #[cfg(feature = "defects")]
        defect: None,
        output_mode: match model.mode {
            ModelMode::Append => OutputMode::Append,
            ModelMode::Update => OutputMode::Update,
            ModelMode::Complete => OutputMode::Complete,
        },
    }
}

fn window(model: ModelWindows) -> WindowSpec {
    match model {
        ModelWindows::Tumbling { size, offset } => tumbling(&millis(size), &millis(offset)),
        ModelWindows::Sliding { size, slide, offset } => {
            sliding(&millis(size), &millis(slide), &millis(offset))
        }
        ModelWindows::Session { gap } => sessions(&millis(gap)),
    }
}

fn span(count_millis: i64) -> Span {
    millis(count_millis).parse().unwrap()
}

fn millis(count: i64) -> String {
    format!("{count} milliseconds")
}

fn logged(model: &ModelEvent) -> LoggedEvent {
    let mut event = Event {
        amount: Amount::from_ten_thousandths(model.money).unwrap(),
        currency: model.currency.parse().unwrap(),
        event_time: EventTime::from_micros(model.micros),
        ..a_sale("00:00")
    };
    let mut attributes = BTreeMap::new();
    for (field, value) in &model.fields {
        let Some(value) = value else { continue };
        match *field {
            "order_id" => event.order_id = value.parse().unwrap(),
            "event_id" => event.event_id = value.parse().unwrap(),
            "store_id" => event.store_id = Some(value.parse().unwrap()),
            "till_id" => event.till_id = Some(value.parse().unwrap()),
            "customer_id" => event.customer_id = Some(value.parse().unwrap()),
            "item_count" => event.item_count = Some(value.parse().unwrap()),
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

/// These records as a batch for a query with `rules`.
pub(crate) fn batch_of(rules: &Rules, records: &[ModelRecord]) -> Batch {
    let mut writer = BatchWriter::for_query(rules);
    for record in records {
        match *record {
            ModelRecord::Event(ref event) => writer.event(&logged(event)),
            ModelRecord::Heartbeat { seq, micros } => {
                writer.other(Seq::new(seq), EventTime::from_micros(micros), Content::Heartbeat);
            }
            ModelRecord::IdleHeartbeat { seq, micros, quiet_millis } => {
                let content = Content::IdleHeartbeat { quiet: span(quiet_millis) };
                writer.other(Seq::new(seq), EventTime::from_micros(micros), content);
            }
        }
    }
    writer.batch
}

/// Writes a batch as the database would read it.
pub(crate) struct BatchWriter<'rules> {
    rules: &'rules Rules,
    pub(crate) batch: Batch,
    profiles: Vec<(Profile, ProfileId)>,
}

impl<'rules> BatchWriter<'rules> {
    pub(crate) fn for_query(rules: &'rules Rules) -> Self {
        Self { rules, batch: Batch::default(), profiles: Vec::new() }
    }

    pub(crate) fn event(&mut self, logged: &LoggedEvent) {
        let (rules, event) = (self.rules, &logged.event);
        let values = rules.fields().map(|field| field.value_in(event).map(str::to_owned)).collect();
        let profile = self.profile(Profile { currency: event.currency, values });
        let keys: Vec<Option<String>> =
            rules.deduplicate.iter().map(|field| field.text_in(event)).collect();
        let duplicate_key =
            (!keys.is_empty()).then(|| DuplicateKey::new(&serde_json::to_string(&keys).unwrap()));
        let content = Content::Event { amount: event.amount, profile, duplicate_key };
        self.other(logged.seq, event.event_time, content);
    }

    pub(crate) fn other(&mut self, seq: Seq, event_time: EventTime, content: Content) {
        self.batch.push(Record { seq, event_time, content });
    }

    /// Events that say the same share a profile.
    fn profile(&mut self, profile: Profile) -> ProfileId {
        if let Some((_, id)) = self.profiles.iter().find(|(known, _)| *known == profile) {
            return *id;
        }
        let id = self.batch.add_profile(profile.clone());
        self.profiles.push((profile, id));
        id
    }
}

/// Every field of what the engine reported.
pub(crate) fn outcome(engine: &Outcome) -> ModelOutcome {
    let Outcome {
        late_watermark,
        watermark_by_sources,
        watermarks: Watermarks { current, next, next_by_sources },
        newest_event_time,
        events_in,
        late_events,
        duplicates,
        event_time,
        rows: written,
        state_changed,
        state_removed,
        state_merged,
        windows_updated,
        windows_open,
        dropped,
        keys_remembered,
        keys_forgotten,
    } = engine;
    let millis = |watermark: &Watermark| watermark.as_millis();
    let by_silence = |key: &WindowKey| engine.closed_by(key) == ClosedBy::Idle;
    ModelOutcome {
        watermarks: ModelWatermarks {
            late: millis(late_watermark),
            current: millis(current),
            current_by_sources: millis(watermark_by_sources),
            next: millis(next),
            next_by_sources: millis(next_by_sources),
        },
        newest_event: newest_event_time.map(EventTime::as_micros),
        events_in: *events_in,
        late_events: *late_events,
        duplicates: *duplicates,
        event_times: event_time
            .map(|range| (range.min.as_micros(), range.max.as_micros(), range.avg.as_micros())),
        rows: rows(written),
        state_changed: rows(state_changed),
        state_removed: state_removed.iter().map(|gone| (key(gone), by_silence(gone))).collect(),
        state_merged: state_merged.iter().map(key).collect(),
        windows_updated: *windows_updated,
        windows_open: *windows_open,
        dropped: dropped.iter().map(drop_of).collect(),
        keys_remembered: keys_remembered.iter().map(remembered).collect(),
        keys_forgotten: *keys_forgotten,
    }
}

fn key(key: &WindowKey) -> ModelKey {
    let (end, start) = (key.window.end.as_micros(), key.window.start.as_micros());
    (end, start, key.currency.code().to_owned(), key.group.0.clone())
}

fn rows(rows: &[Row]) -> Vec<ModelRow> {
    rows.iter().map(|row| model_row(&row.key, &row.totals)).collect()
}

pub(crate) fn windows(windows: &BTreeMap<WindowKey, Totals>) -> Vec<ModelRow> {
    windows.iter().map(|(key, totals)| model_row(key, totals)).collect()
}

fn model_row(window: &WindowKey, totals: &Totals) -> ModelRow {
    (key(window), totals.orders, totals.revenue.as_ten_thousandths())
}

fn drop_of(entry: &Dropped) -> ModelDrop {
    ModelDrop {
        seq: entry.seq.get(),
        key: key(&entry.key),
        money: entry.amount.as_ten_thousandths(),
        is_duplicate: entry.reason == DroppedReason::Duplicate,
        late_by_millis: entry.late_by.as_millis(),
    }
}

pub(crate) fn remembered(remembered: &Remembered) -> ModelRemembered {
    let values = serde_json::from_str(remembered.key.as_str()).unwrap();
    (remembered.expires_at.as_micros(), values)
}
