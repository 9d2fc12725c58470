//! Sales and queries with everything filled in that a test does not care about.
//!
//! Times may be written short: `09:05` is 2026-10-01T09:05:00Z. Answers are shown the same way.

use std::collections::BTreeMap;

use tillmark::domain::{
    Attributes, Event, EventTime, Filter, LoggedEvent, Money, OutputMode, Revenue, Seq, Totals,
    Watermark, WindowKey, WindowSpec,
};
use tillmark::engine::{Content, Dropped, Outcome, Row, Rules, State, step};

use crate::database::Database;
use crate::translation::BatchWriter;

const DAY: &str = "2026-10-01T";

/// Reads a full RFC 3339 time, or a clock time of the test day.
pub(crate) fn moment(text: &str) -> EventTime {
    let full = match text.len() {
        _ if text.contains('T') => text.to_owned(),
        5 => format!("{DAY}{text}:00Z"),
        _ => format!("{DAY}{text}Z"),
    };
    full.parse().expect(text)
}

fn short(time: &impl ToString) -> String {
    let full = time.to_string();
    let clock = full.strip_prefix(DAY).map(|clock| clock.trim_end_matches('Z'));
    clock.map_or(&*full, |clock| clock.strip_suffix(".000").unwrap_or(clock)).to_owned()
}

/// One order: `placed`, 10.00 USD, in no store, unless said otherwise.
pub(crate) fn a_sale(at: &str) -> Event {
    Event {
        event_id: "event".parse().unwrap(),
        order_id: "order".parse().unwrap(),
        status: "placed".parse().unwrap(),
        amount: "10.00".parse().unwrap(),
        currency: "USD".parse().unwrap(),
        event_time: moment(at),
        store_id: None,
        till_id: None,
        customer_id: None,
        item_count: None,
        attributes: Attributes::default(),
    }
}

/// What a test does care about in a sale.
pub(crate) trait Sale {
    fn of(self, amount: &str) -> Self;
    fn in_currency(self, code: &str) -> Self;
    fn in_store(self, store: &str) -> Self;
    fn of_order(self, order: &str) -> Self;
    fn with_status(self, status: &str) -> Self;
    fn with_attribute(self, name: &str, value: &str) -> Self;
}

impl Sale for Event {
    fn of(self, amount: &str) -> Self {
        Self { amount: amount.parse().unwrap(), ..self }
    }

    fn in_currency(self, code: &str) -> Self {
        Self { currency: code.parse().unwrap(), ..self }
    }

    fn in_store(self, store: &str) -> Self {
        Self { store_id: Some(store.parse().unwrap()), ..self }
    }

    fn of_order(self, order: &str) -> Self {
        Self { order_id: order.parse().unwrap(), ..self }
    }

    fn with_status(self, status: &str) -> Self {
        Self { status: status.parse().unwrap(), ..self }
    }

    fn with_attribute(self, name: &str, value: &str) -> Self {
        let mut all = self.attributes.as_map().clone();
        all.insert(name.to_owned(), value.to_owned());
        Self { attributes: Attributes::new(all).unwrap(), ..self }
    }
}

/// A record of the log.
pub(crate) enum Said {
    Sale(Box<Event>),
    Other(EventTime, Content),
}

impl From<Event> for Said {
    fn from(event: Event) -> Self {
        Self::Sale(Box::new(event))
    }
}

/// A source says that nothing older than this will come.
pub(crate) fn a_heartbeat(at: &str) -> Said {
    Said::Other(moment(at), Content::Heartbeat)
}

/// The service says that nothing came for so long.
pub(crate) fn silence(at: &str, quiet: &str) -> Said {
    Said::Other(moment(at), Content::IdleHeartbeat { quiet: quiet.parse().unwrap() })
}

/// A query under test: its rules, its state, what it has committed, and how much of the log it has
/// read.
pub(crate) struct TestQuery {
    pub(crate) rules: Rules,
    pub(crate) state: State,
    pub(crate) database: Database,
    records_read: i64,
}

/// Hourly windows, one hour of delay, every event, append mode, no batch run yet.
pub(crate) fn an_hourly_query() -> TestQuery {
    let rules = Rules {
        filter: Filter::default(),
        window: tumbling("1 hour", "0 seconds"),
        watermark_delay: "1 hour".parse().unwrap(),
        group_by: Vec::new(),
        deduplicate: Vec::new(),
        output_mode: OutputMode::Append,
        idle_timeout: None,
        #[cfg(feature = "defects")]
        defect: None,
    };
    TestQuery { rules, state: State::default(), database: Database::default(), records_read: 0 }
}

pub(crate) fn tumbling(size: &str, offset: &str) -> WindowSpec {
    WindowSpec::Tumbling { size: size.parse().unwrap(), offset: offset.parse().unwrap() }
}

pub(crate) fn sliding(size: &str, slide: &str, offset: &str) -> WindowSpec {
    let (slide, offset) = (slide.parse().unwrap(), offset.parse().unwrap());
    WindowSpec::Sliding { size: size.parse().unwrap(), slide, offset }
}

pub(crate) fn sessions(gap: &str) -> WindowSpec {
    WindowSpec::Session { gap: gap.parse().unwrap() }
}

impl TestQuery {
    pub(crate) fn with_windows(mut self, size: &str, offset: &str) -> Self {
        self.rules.window = tumbling(size, offset);
        self
    }

    pub(crate) fn with_sliding_windows(mut self, size: &str, slide: &str) -> Self {
        self.rules.window = sliding(size, slide, "0 seconds");
        self
    }

    pub(crate) fn with_sessions(mut self, gap: &str) -> Self {
        self.rules.window = sessions(gap);
        self
    }

    /// Counts only the first event of each order.
    pub(crate) fn once_per_order(mut self) -> Self {
        self.rules.deduplicate = vec!["order_id".parse().unwrap()];
        self
    }

    pub(crate) fn idle_after(mut self, timeout: &str) -> Self {
        self.rules.idle_timeout = Some(timeout.parse().unwrap());
        self
    }

    pub(crate) fn with_delay(mut self, delay: &str) -> Self {
        self.rules.watermark_delay = delay.parse().unwrap();
        self
    }

    pub(crate) fn in_mode(mut self, mode: OutputMode) -> Self {
        self.rules.output_mode = mode;
        self
    }

    pub(crate) fn of_status(mut self, status: &str) -> Self {
        let passes = BTreeMap::from([("status".parse().unwrap(), vec![status.to_owned()])]);
        self.rules.filter = Filter(passes);
        self
    }

    pub(crate) fn grouped_by<const N: usize>(mut self, fields: [&str; N]) -> Self {
        self.rules.group_by = fields.map(|field| field.parse().unwrap()).to_vec();
        self
    }

    /// One micro-batch over these records, reported or not.
    pub(crate) fn try_read(&mut self, records: Vec<Said>) -> Option<Outcome> {
        let mut writer = BatchWriter::for_query(&self.rules);
        for record in records {
            self.records_read += 1;
            let seq = Seq::new(self.records_read);
            match record {
                Said::Sale(event) => writer.event(&LoggedEvent { seq, event: *event }),
                Said::Other(time, content) => writer.other(seq, time, content),
            }
        }
        let batch = writer.batch;
        let outcome = step(&self.rules, &mut self.state, &batch)?;
        self.database.commit(self.rules.output_mode, &outcome);
        Some(outcome)
    }

    /// One micro-batch over these records, of which one says something to this query.
    pub(crate) fn read<const N: usize>(&mut self, records: [Said; N]) -> Outcome {
        self.try_read(records.into()).expect("a batch to report")
    }

    /// One micro-batch over these events, reported or not.
    pub(crate) fn try_batch(&mut self, events: impl IntoIterator<Item = Event>) -> Option<Outcome> {
        self.try_read(events.into_iter().map(Said::from).collect())
    }

    /// One micro-batch over these events, of which at least one matches.
    pub(crate) fn batch(&mut self, events: impl IntoIterator<Item = Event>) -> Outcome {
        self.try_batch(events).expect("a batch to report")
    }

    /// The batch without data, which must be owed.
    pub(crate) fn catch_up(&mut self) -> Outcome {
        self.try_batch([]).expect("a batch without data is owed")
    }

    /// A batch of these events, and the batch without data that it must owe. Answers the rows
    /// that the second writes.
    pub(crate) fn run(&mut self, events: impl IntoIterator<Item = Event>) -> Vec<String> {
        self.batch(events);
        shown(&self.catch_up().rows)
    }

    /// Forgets everything that was not committed.
    pub(crate) fn restart(&mut self) {
        self.state = self.database.restore();
    }

    /// The output table.
    pub(crate) fn table(&self) -> Vec<String> {
        shown_pairs(&self.database.table)
    }

    /// The open windows, each with its end.
    pub(crate) fn open_spans(&self) -> Vec<String> {
        self.database.state.iter().map(|(key, totals)| shown_span(key, *totals)).collect()
    }

    /// The open windows.
    pub(crate) fn open(&self) -> Vec<String> {
        shown_pairs(&self.database.state)
    }
}

fn shown_pairs(windows: &BTreeMap<WindowKey, Totals>) -> Vec<String> {
    windows.iter().map(|(key, totals)| shown_window(key, *totals)).collect()
}

/// Rows as `start orders money`, with the group behind it when there is one.
pub(crate) fn shown(rows: &[Row]) -> Vec<String> {
    rows.iter().map(|row| shown_window(&row.key, row.totals)).collect()
}

/// Rows as `start-end orders money`.
pub(crate) fn shown_spans(rows: &[Row]) -> Vec<String> {
    rows.iter().map(|row| shown_span(&row.key, row.totals)).collect()
}

fn shown_span(key: &WindowKey, totals: Totals) -> String {
    let window = shown_window(key, totals);
    let (start, rest) = window.split_once(' ').unwrap_or_default();
    format!("{start}-{} {rest}", short(&key.window.end))
}

fn shown_window(key: &WindowKey, totals: Totals) -> String {
    let money = Money { revenue: totals.revenue, currency: key.currency };
    let (start, group) = (short(&key.window.start), shown_group(&key.group.0));
    format!("{start} {} {money} {}{group}", totals.orders, key.currency)
}

fn shown_group(group: &[Option<String>]) -> String {
    group.iter().map(|value| format!(" {}", value.as_deref().unwrap_or("-"))).collect()
}

/// Ledger entries as `#seq missed window with money, late by …`.
pub(crate) fn shown_dropped(dropped: &[Dropped]) -> Vec<String> {
    let show = |entry: &Dropped| {
        let revenue = Revenue::ZERO.plus_amount(entry.amount);
        let money = Money { revenue, currency: entry.key.currency };
        let missed = format!("missed {} with {money}", short(&entry.key.window.start));
        let group = format!("{}{}", entry.key.currency, shown_group(&entry.key.group.0));
        format!("#{} {missed} {group}, {} by {}", entry.seq, entry.reason.as_str(), entry.late_by)
    };
    dropped.iter().map(show).collect()
}

/// A watermark as the clock time it stands at.
pub(crate) fn at(watermark: Watermark) -> String {
    short(&watermark)
}
