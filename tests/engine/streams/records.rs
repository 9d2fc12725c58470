//! Random logs: events that come out of order, twice, late or hardly ever, and heartbeats.

use super::rules::{length_of, offset_of};
use super::{Choices, one_in, pick};
use crate::model::{ModelEvent, ModelRecord, ModelRules};

/// 1900-01-01 and the last microsecond of 2199: the event times that a service accepts.
const EVENT_TIMES: (i64, i64) = (-2_208_988_800_000_000, 7_258_118_399_999_999);
const MONEY_MAX: i64 = 999_999_999_999_999_999;
/// Around which moments streams play, in microseconds: mostly today, else the edges of time.
const ANCHORS: [i64; 5] = [0, 0, -1_500_000_000_000_000, EVENT_TIMES.0, EVENT_TIMES.1];
const TODAY: i64 = 1_790_812_800_000_000;
/// Around the idle timeouts of queries.
const QUIET_MILLIS: [i64; 5] = [30_000, 59_999, 60_000, 90_000, 120_000];

pub(super) fn random_log(rng: &mut Choices, rules: &ModelRules) -> Vec<ModelRecord> {
    let mut log = Writer::new(rng, rules).write(rng);
    disorder(rng, &mut log);
    number(rng, &mut log);
    log
}

/// What a stream is like.
struct Writer {
    clock: i64,
    size: i64,
    currencies: &'static [&'static str],
    money: Money,
    /// Time passes with one event in so many …
    stillness: u32,
    /// … by so many quarters of a window at most.
    stride: i64,
    /// One record in so many is a heartbeat; none at all for 0.
    heartbeats: u32,
    /// One order in so many was posted before.
    again: u32,
    orders: i64,
}

impl Writer {
    fn new(rng: &mut Choices, rules: &ModelRules) -> Self {
        let size = length_of(rules.windows) * 1_000;
        let anchor = if one_in(rng, 6) { pick(rng, &ANCHORS) } else { TODAY };
        let start = anchor.div_euclid(size) * size + offset_of(rules.windows) * 1_000;
        Self {
            clock: start - size * rng.i64(0..4) * i64::from(rng.bool()),
            size,
            currencies: pick(rng, &[&["USD"][..], &["USD"], &["USD", "EUR", "JPY"]]),
            money: pick(rng, &[Money::Small, Money::Small, Money::Huge, Money::Largest]),
            stillness: pick(rng, &[1, 1, 3, 8]),
            stride: pick(rng, &[2, 2, 8, 16]),
            heartbeats: pick(rng, &[0, 0, 5, 12]),
            again: pick(rng, &[1, 2, 4]),
            orders: 0,
        }
    }

    fn write(mut self, rng: &mut Choices) -> Vec<ModelRecord> {
        let count = rng.usize(1..=48);
        let mut log = Vec::new();
        let opening = self.clock;
        let second_till_from = one_in(rng, 3).then_some(count / 2);
        if second_till_from.is_some() {
            (self.stride, self.stillness) = (8, 1);
        }
        for nth in 0..count {
            if Some(nth) == second_till_from {
                // A till that was offline all the time fills what the first one left empty.
                (self.clock, self.stride) = (opening, 4);
            }
            let is_heartbeat = self.heartbeats > 0 && one_in(rng, self.heartbeats);
            log.push(if is_heartbeat { self.heartbeat(rng) } else { self.event(rng) });
        }
        log
    }

    fn event(&mut self, rng: &mut Choices) -> ModelRecord {
        let quarter = self.size / 4;
        self.clock += match rng.u32(..15) {
            0 => self.size * rng.i64(0..9),
            1.. => quarter * rng.i64(0..=self.stride) * i64::from(one_in(rng, self.stillness)),
        };
        let behind = if one_in(rng, 4) { quarter * rng.i64(0..=20) } else { 0 };
        let micros = self.clock - behind + jitter(rng, quarter);
        ModelRecord::Event(ModelEvent {
            seq: 0,
            micros: micros.clamp(EVENT_TIMES.0, EVENT_TIMES.1),
            money: self.money.pick(rng),
            currency: pick(rng, self.currencies).to_owned(),
            fields: self.fields(rng),
        })
    }

    fn fields(&mut self, rng: &mut Choices) -> Vec<(&'static str, Option<String>)> {
        let is_again = self.orders > 0 && one_in(rng, self.again);
        self.orders += i64::from(!is_again);
        let order = self.orders - if is_again { rng.i64(0..self.orders.min(4)) } else { 0 };
        let mut fields = vec![
            ("order_id", Some(order.to_string())),
            ("event_id", Some(format!("event {order}"))),
        ];
        for (name, values) in [
            ("store_id", &[None, Some("1"), Some("10"), Some("2")][..]),
            ("till_id", &[None, Some("1")]),
            ("customer_id", &[None, None, Some("1")]),
            ("status", &[Some("placed"), Some("placed"), Some("paid"), Some("refunded")]),
            ("item_count", &[None, Some("0"), Some("12")]),
            ("attributes.channel", &[None, Some("web"), Some("web"), Some("till")]),
        ] {
            fields.push((name, pick(rng, values).map(str::to_owned)));
        }
        fields
    }

    /// Mostly a little ahead of the events, which do not wait for it.
    fn heartbeat(&self, rng: &mut Choices) -> ModelRecord {
        let micros = self.clock + self.size / 4 * rng.i64(-4..=12) + jitter(rng, self.size / 4);
        let (seq, micros) = (0, micros.clamp(EVENT_TIMES.0, EVENT_TIMES.1));
        if rng.bool() {
            return ModelRecord::Heartbeat { seq, micros };
        }
        ModelRecord::IdleHeartbeat { seq, micros, quiet_millis: pick(rng, &QUIET_MILLIS) }
    }
}

/// Mostly nothing, so that event times and windows' ends meet; else a little beside them.
fn jitter(rng: &mut Choices, quarter: i64) -> i64 {
    match rng.u32(..24) {
        0 | 1 => 1,
        2 => -1,
        3 => 999,
        4 => 1_000,
        5 => -1_000,
        6 => rng.i64(0..quarter),
        _ => 0,
    }
}

#[derive(Clone, Copy)]
enum Money {
    Small,
    Huge,
    Largest,
}

impl Money {
    fn pick(self, rng: &mut Choices) -> i64 {
        match self {
            Self::Small => rng.i64(-500_000..2_000_000),
            Self::Largest => MONEY_MAX,
            Self::Huge => pick(rng, &[MONEY_MAX - 1, -MONEY_MAX, 1, 0]),
        }
    }
}

/// Leaves the log in order, swaps neighbours of some distance, or shuffles all of it.
fn disorder(rng: &mut Choices, log: &mut [ModelRecord]) {
    match rng.u32(..8) {
        0..3 => {}
        3 => rng.shuffle(log),
        _ => {
            let reach = rng.usize(2..=8);
            for chunk in log.chunks_mut(reach) {
                rng.shuffle(chunk);
            }
        }
    }
}

/// Gives positions in the log, with gaps.
fn number(rng: &mut Choices, log: &mut [ModelRecord]) {
    let mut last = 0;
    for record in log {
        last += if one_in(rng, 10) { rng.i64(2..6) } else { 1 };
        match record {
            ModelRecord::Event(ModelEvent { seq, .. })
            | ModelRecord::Heartbeat { seq, .. }
            | ModelRecord::IdleHeartbeat { seq, .. } => *seq = last,
        }
    }
}
