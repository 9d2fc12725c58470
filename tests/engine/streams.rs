//! Random streams: a rule, and what happens to its log. The same seed gives the same stream.

use fastrand::Rng;

use crate::model::{ModelEvent, ModelMode, ModelRules};

/// What happens next.
#[derive(Debug)]
pub(crate) enum Action {
    /// Events arrive at the end of the log.
    Arrive(Vec<ModelEvent>),
    /// One micro-batch reads at most so many events; without any waiting, it is one without data.
    Batch(usize),
    /// The process starts again, with this delay from now on.
    Restart(i64),
}

#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) rules: ModelRules,
    /// The delay at first.
    pub(crate) delay_millis: i64,
    pub(crate) actions: Vec<Action>,
}

/// 1900-01-01 and the last microsecond of 2199: the event times that a service accepts.
const EVENT_TIMES: (i64, i64) = (-2_208_988_800_000_000, 7_258_118_399_999_999);
const MONEY_MAX: i64 = 999_999_999_999_999_999;
const SIZES_MILLIS: [i64; 9] =
    [1, 10, 1_000, 1_500, 10_000, 60_000, 420_000, 3_600_000, 86_400_000];
/// Around which moments streams play, in microseconds: mostly today, else the edges of time.
const ANCHORS: [i64; 5] = [TODAY, 0, -1_500_000_000_000_000, EVENT_TIMES.0, EVENT_TIMES.1];
const TODAY: i64 = 1_790_812_800_000_000;

impl Stream {
    pub(crate) fn from_seed(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let rules = random_rules(&mut rng);
        let delay_millis = random_delay(&mut rng, rules.size_millis);
        let mut log = random_events(&mut rng, &rules);
        disorder(&mut rng, &mut log);
        number(&mut rng, &mut log);
        let actions = random_actions(&mut rng, log, delay_millis, rules.size_millis);
        Self { rules, delay_millis, actions }
    }
}

fn pick<T: Clone>(rng: &mut Rng, items: &[T]) -> T {
    items[rng.usize(..items.len())].clone()
}

fn one_in(rng: &mut Rng, n: u32) -> bool {
    rng.u32(..n) == 0
}

fn random_rules(rng: &mut Rng) -> ModelRules {
    let size_millis = pick(rng, &SIZES_MILLIS);
    let offset_millis = if rng.bool() { 0 } else { rng.i64(0..size_millis) };
    let filters: [&[(&str, &[&str])]; 5] = [
        &[],
        &[],
        &[("status", &["placed"])],
        &[("status", &["placed", "refunded"]), ("attributes.channel", &["web"])],
        &[("store_id", &["1", "10"])],
    ];
    let groups: [&[&str]; 6] = [
        &[],
        &["store_id"],
        &["attributes.channel", "store_id"],
        &["store_id", "attributes.channel"],
        &["status"],
        &["till_id", "customer_id"],
    ];
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    let filter = pick(rng, &filters);
    ModelRules {
        filter: filter.iter().map(|&(field, any)| (field.to_owned(), texts(any))).collect(),
        size_millis,
        offset_millis,
        group_by: texts(pick(rng, &groups)),
        mode: match rng.u32(..5) {
            0 => ModelMode::Complete,
            1 | 2 => ModelMode::Update,
            _ => ModelMode::Append,
        },
    }
}

/// Often a multiple of a quarter of the window, so that watermarks meet windows' ends exactly.
fn random_delay(rng: &mut Rng, size_millis: i64) -> i64 {
    match rng.u32(..12) {
        0 | 1 => 0,
        2 => 1,
        3 => 3_660 * 86_400_000,
        4 => rng.i64(0..=size_millis * 3),
        5 => size_millis,
        _ => size_millis * rng.i64(0..=8) / 4,
    }
}

fn random_events(rng: &mut Rng, rules: &ModelRules) -> Vec<ModelEvent> {
    let size = rules.size_millis * 1_000;
    let quarter = size / 4;
    let anchor = if one_in(rng, 3) { pick(rng, &ANCHORS) } else { TODAY };
    let mut clock = anchor.div_euclid(size) * size + rules.offset_millis * 1_000;
    clock -= size * rng.i64(0..4) * i64::from(rng.bool());
    let currencies = pick(rng, &[&["USD"][..], &["USD"], &["USD", "EUR", "JPY"]]);
    let money = pick(rng, &[Money::Small, Money::Small, Money::Huge, Money::Largest]);
    let stillness = pick(rng, &[1, 1, 8]);
    let count = rng.usize(1..=60);
    let mut events = Vec::new();
    for _ in 0..count {
        clock += match rng.u32(..15) {
            0 => size * rng.i64(0..9),
            1.. => quarter * rng.i64(0..=2) * i64::from(one_in(rng, stillness)),
        };
        let behind = if one_in(rng, 5) { quarter * rng.i64(0..=20) } else { 0 };
        let micros = clock - behind + jitter(rng, quarter);
        events.push(ModelEvent {
            seq: 0,
            micros: micros.clamp(EVENT_TIMES.0, EVENT_TIMES.1),
            money: money.pick(rng),
            currency: pick(rng, currencies).to_owned(),
            fields: random_fields(rng),
        });
    }
    events
}

/// Mostly nothing, so that event times and windows' ends meet; else a little beside them.
fn jitter(rng: &mut Rng, quarter: i64) -> i64 {
    match rng.u32(..24) {
        0 => 1,
        1 => -1,
        2 => 999,
        3 => 1_000,
        4 => -1_000,
        5 | 6 => rng.i64(0..quarter),
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
    fn pick(self, rng: &mut Rng) -> i64 {
        match self {
            Self::Small => rng.i64(-500_000..2_000_000),
            Self::Largest => MONEY_MAX,
            Self::Huge => pick(rng, &[MONEY_MAX - 1, -MONEY_MAX, 1, 0]),
        }
    }
}

fn random_fields(rng: &mut Rng) -> Vec<(String, Option<String>)> {
    let mut fields = Vec::new();
    for (name, values) in [
        ("store_id", &[None, Some("1"), Some("10"), Some("2")][..]),
        ("till_id", &[None, Some("1")]),
        ("customer_id", &[None, None, Some("1")]),
        ("status", &[Some("placed"), Some("placed"), Some("paid"), Some("refunded")]),
        ("attributes.channel", &[None, Some("web"), Some("web"), Some("till")]),
    ] {
        fields.push((name.to_owned(), pick(rng, values).map(str::to_owned)));
    }
    fields
}

/// Leaves the log in order, swaps neighbours of some distance, or shuffles all of it.
fn disorder(rng: &mut Rng, log: &mut [ModelEvent]) {
    match rng.u32(..4) {
        0 => {}
        1 => rng.shuffle(log),
        _ => {
            let reach = rng.usize(2..=8);
            for chunk in log.chunks_mut(reach) {
                rng.shuffle(chunk);
            }
        }
    }
}

/// Gives positions in the log, with gaps.
fn number(rng: &mut Rng, log: &mut [ModelEvent]) {
    let mut seq = 0;
    for event in log {
        seq += if one_in(rng, 10) { rng.i64(2..6) } else { 1 };
        event.seq = seq;
    }
}

fn random_actions(
    rng: &mut Rng,
    mut log: Vec<ModelEvent>,
    first_delay_millis: i64,
    size_millis: i64,
) -> Vec<Action> {
    let mut actions = Vec::new();
    let mut delay_millis = first_delay_millis;
    let restarts_often = rng.bool();
    while !log.is_empty() {
        let arriving = rng.usize(1..=12).min(log.len());
        actions.push(Action::Arrive(log.drain(..arriving).collect()));
        for _ in 0..rng.usize(..4) {
            actions.push(Action::Batch(rng.usize(1..=12)));
            if one_in(rng, if restarts_often { 3 } else { 20 }) {
                if one_in(rng, 3) {
                    delay_millis = random_delay(rng, size_millis);
                }
                actions.push(Action::Restart(delay_millis));
            }
        }
    }
    // Enough to read whatever waits, and the batch without data behind it.
    actions.extend((0..61).map(|_| Action::Batch(12)));
    actions
}
