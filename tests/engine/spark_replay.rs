//! The answers of Apache Spark 4.3, recorded in `tests/conformance/`, against the engine alone.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use tillmark::domain::{
    Amount, Event, EventTime, Filter, GroupKey, OutputMode, Span, Totals, Window, WindowKey,
    WindowSpec,
};
use tillmark::engine::{Outcome, Rules};

use crate::builders::{TestQuery, a_sale, an_hourly_query};

const FILES: [&str; 4] = ["seed.json", "edge.json", "random.json", "complete.json"];

#[derive(Deserialize)]
pub(crate) struct Case {
    pub(crate) name: String,
    query: Query,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Query {
    filter_status: Option<Vec<String>>,
    window: WindowText,
    watermark_delay: String,
    group_by: Vec<String>,
    dedup: Option<Dedup>,
    output_mode: String,
}

#[derive(Deserialize)]
struct Dedup {
    keys: Vec<String>,
}

#[derive(Deserialize)]
struct WindowText {
    kind: String,
    size: Option<String>,
    slide: Option<String>,
    offset: Option<String>,
    gap: Option<String>,
}

/// What was posted before the query ran until nothing was left, and what Spark answered.
#[derive(Deserialize)]
struct Step {
    #[serde(default)]
    restart: bool,
    watermark_delay: Option<String>,
    /// One micro-batch.
    events: Option<Vec<EventText>>,
    /// Several, with none without data between them.
    batches: Option<Vec<Vec<EventText>>>,
    progress: Vec<Progress>,
    table: Vec<RowText>,
}

#[derive(Deserialize)]
struct EventText {
    event_id: String,
    order_id: u64,
    status: String,
    amount: String,
    store_id: Option<String>,
    event_time: String,
}

#[derive(Deserialize)]
struct Progress {
    batch_id: usize,
    num_input_rows: u64,
    watermark: String,
    state_rows: Vec<u64>,
    late_events: u64,
    #[serde(default)]
    duplicates: u64,
    emitted: Vec<RowText>,
}

#[derive(Deserialize)]
struct RowText {
    start: String,
    end: String,
    orders: i64,
    revenue: String,
    store_id: Option<String>,
}

#[test]
fn the_engine_answers_every_case_as_spark_did() {
    let cases = recorded_cases();
    for case in &cases {
        replay(case, |_| {});
    }
    assert_eq!(cases.len(), 119);
}

pub(crate) fn recorded_cases() -> Vec<Case> {
    let read = |file: &str| -> Vec<Case> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance").join(file);
        let text = std::fs::read_to_string(&path).expect(file);
        serde_json::from_str(&text).expect(file)
    };
    FILES.into_iter().flat_map(read).collect()
}

/// Asserts that the engine answers as Spark did, by the rules of the case after `adjust`.
pub(crate) fn replay(case: &Case, adjust: impl Fn(&mut Rules)) {
    let mut query = query_of(&case.query);
    adjust(&mut query.rules);
    let mut next_batch = 0;
    for (number, step) in case.steps.iter().enumerate() {
        let place = format!("{} step {number}", case.name);
        if step.restart {
            query.restart();
            if let Some(delay) = &step.watermark_delay {
                query.rules.watermark_delay = delay.parse().unwrap();
            }
        }
        let outcomes = run(&mut query, step);
        assert_eq!(outcomes.len(), step.progress.len(), "{place}: number of batches");
        for ((outcome, remembered), right) in outcomes.iter().zip(&step.progress) {
            assert_eq!(right.batch_id, next_batch, "{place}: batch id");
            let place = format!("{place} batch {next_batch}");
            assert_answer(outcome, right, case, &place);
            let with_rule = case.query.dedup.is_some();
            let state = [outcome.windows_open, *remembered];
            assert_eq!(state[..=usize::from(with_rule)], right.state_rows[..], "{place}: state");
            next_batch += 1;
        }
        assert_eq!(query.database.table, rows_of(&step.table, &case.query), "{place}: table");
    }
}

/// Runs the query over the step's events until nothing is left.
///
/// Answers each outcome, and how many keys were remembered after it.
fn run(query: &mut TestQuery, step: &Step) -> Vec<(Outcome, u64)> {
    let queued = step.batches.iter().flatten().chain(&step.events);
    let mut outcomes = Vec::new();
    for batch in queued {
        let outcome = query.try_batch(batch.iter().map(event_of));
        outcomes.extend(outcome.map(|outcome| (outcome, query.state.remembered_keys())));
    }
    while let Some(outcome) = query.try_batch([]) {
        outcomes.push((outcome, query.state.remembered_keys()));
    }
    outcomes
}

fn assert_answer(outcome: &Outcome, right: &Progress, case: &Case, place: &str) {
    assert_eq!(outcome.events_in, right.num_input_rows, "{place}: events in");
    assert_eq!(outcome.late_events, right.late_events, "{place}: late events");
    assert_eq!(outcome.watermarks.current.to_string(), right.watermark, "{place}: watermark");
    assert_eq!(outcome.duplicates, right.duplicates, "{place}: duplicates");
    let emitted = outcome.rows.iter().map(|row| (row.key.clone(), row.totals));
    let emitted: BTreeMap<WindowKey, Totals> = emitted.collect();
    assert_eq!(emitted.len(), outcome.rows.len(), "{place}: a row was written twice");
    assert_eq!(emitted, rows_of(&right.emitted, &case.query), "{place}: rows");
}

fn query_of(text: &Query) -> TestQuery {
    let mut query = an_hourly_query().with_delay(&text.watermark_delay).in_mode(
        match text.output_mode.as_str() {
            "append" => OutputMode::Append,
            "update" => OutputMode::Update,
            "complete" => OutputMode::Complete,
            other => panic!("`{other}` is no output mode"),
        },
    );
    query.rules.window = window_of(&text.window);
    query.rules.deduplicate = text
        .dedup
        .iter()
        .flat_map(|dedup| &dedup.keys)
        .map(|field| field.parse().unwrap())
        .collect();
    query.rules.group_by = text.group_by.iter().map(|field| field.parse().unwrap()).collect();
    let passes = text.filter_status.iter();
    query.rules.filter =
        Filter(passes.map(|any| ("status".parse().unwrap(), any.clone())).collect());
    query
}

fn window_of(text: &WindowText) -> WindowSpec {
    let span = |text: &Option<String>| {
        text.as_deref().map_or(Span::ZERO, |text| text.parse::<Span>().expect(text))
    };
    let (size, slide, offset) = (span(&text.size), span(&text.slide), span(&text.offset));
    match text.kind.as_str() {
        "tumbling" => WindowSpec::Tumbling { size, offset },
        "sliding" => WindowSpec::Sliding { size, slide, offset },
        "session" => WindowSpec::Session { gap: span(&text.gap) },
        other => panic!("`{other}` is no kind of windows"),
    }
}

fn event_of(text: &EventText) -> Event {
    Event {
        order_id: text.order_id.to_string().parse().unwrap(),
        event_id: text.event_id.parse().unwrap(),
        status: text.status.parse().unwrap(),
        amount: text.amount.parse().unwrap(),
        store_id: text.store_id.as_deref().map(|store| store.parse().unwrap()),
        ..a_sale(&text.event_time)
    }
}

/// Spark knows no currency, so all of it is the test's usual one.
fn rows_of(rows: &[RowText], query: &Query) -> BTreeMap<WindowKey, Totals> {
    let usual = a_sale("00:00").currency;
    let pairs = rows.iter().map(|row| {
        let window = Window { start: bound(&row.start), end: bound(&row.end) };
        let group = GroupKey(query.group_by.iter().map(|_| row.store_id.clone()).collect());
        (WindowKey { window, currency: usual, group }, totals_of(row))
    });
    pairs.collect()
}

fn bound(text: &str) -> EventTime {
    text.parse().expect(text)
}

fn totals_of(row: &RowText) -> Totals {
    let revenue: Amount = row.revenue.parse().unwrap();
    let orders = row.orders;
    Totals { orders, revenue: Totals::ZERO.revenue.plus_amount(revenue) }
}
