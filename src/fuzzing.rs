//! Everything that reads what strangers send, each as one function of bytes that can be anything. It
//! panics where a promise is broken.
//!
//! `fuzz/` runs them for as long as somebody likes (`scripts/fuzz`); the unit tests run them over
//! `fuzz/seeds` and over damaged copies of that. Nothing that ships has this module.

use crate::domain::{
    Amount, Calendar, Currency, EventField, EventTime, Expiry, KeyField, Money, Percent, QueryName,
    QuerySpec, QuerySpecText, RangeEnd, Revenue, Span,
};
use crate::finance::local_fit::Foldable;
use crate::intake::{self, BodyFormat, BodyLimits, EventDefaults};
use crate::{database, http, import};

/// Reads whatever bytes it is given, and panics where it finds itself wrong.
pub type Target = fn(&[u8]);

/// The functions by their names, which are also those of the folders of `fuzz/seeds`.
pub const TARGETS: [(&str, Target); 9] = [
    ("posted_body", posted_body),
    ("small_object", small_object),
    ("compressed_body", http::fuzzing::compressed_body),
    ("query_parameters", http::fuzzing::query_parameters),
    ("query_rule", query_rule),
    ("text_value", text_value),
    ("local_period", local_period),
    ("copied_tuples", database::fuzzing::copied_tuples),
    ("imported_rows", imported_rows),
];

/// The function of this name.
///
/// # Panics
/// When there is none.
pub fn target(name: &str) -> fn(&[u8]) {
    let named = TARGETS.into_iter().find(|(own, _)| *own == name);
    named.map(|(_, function)| function).expect("a target of fuzzing.rs")
}

/// A body of events in the format that the first byte says. Each item is an event or has a fault; an
/// event can be told again from what is stored of it.
fn posted_body(bytes: &[u8]) {
    let Some((first, body)) = bytes.split_first() else { return };
    let format = match first % 4 {
        0 => BodyFormat::Json,
        1 => BodyFormat::NdJson,
        2 => BodyFormat::CloudEvent,
        _ => BodyFormat::CloudEventBatch,
    };
    let Ok(currency) = "EUR".parse() else { return };
    let limits = BodyLimits { events_max: 100, event_bytes_max: 4 * 1024 };
    let Ok(items) = intake::events(body, format, &EventDefaults { currency }, &limits) else {
        return;
    };
    assert!(items.len() <= limits.events_max);
    for item in items {
        match item.outcome {
            Err(invalid) => assert!(!invalid.faults.is_empty()),
            Ok(identified) => {
                let event = &identified.event;
                assert_eq!(event.event_time.to_string().parse(), Ok(event.event_time));
                let money = Money { revenue: Revenue::ZERO.plus_amount(event.amount), currency };
                assert_eq!(money.to_string().parse(), Ok(event.amount));
            }
        }
    }
}

/// A body that is one small object.
fn small_object(bytes: &[u8]) {
    let (_, _) = (intake::heartbeat(bytes), intake::decision(bytes));
}

/// The rule of a query. One that is taken comes out of the database as it was.
fn query_rule(bytes: &[u8]) {
    let Ok(text) = serde_json::from_slice::<QuerySpecText>(bytes) else { return };
    let Ok(spec) = QuerySpec::try_from(text) else { return };
    let stored = serde_json::to_string(&QuerySpecText::from(&spec)).expect("plain data");
    let again: QuerySpecText = serde_json::from_str(&stored).expect(&stored);
    assert_eq!(QuerySpec::try_from(again).ok(), Some(spec));
}

/// Every value with a text of its own. What is taken is written so that it is taken again.
fn text_value(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(span) = text.parse::<Span>() {
        let written = span.to_string().parse::<Span>().map(Span::as_millis);
        let is_whole_seconds = span.as_millis() % 1_000 == 0;
        assert!(!is_whole_seconds || written == Ok(span.as_millis()), "{span}");
    }
    if let Ok(time) = text.parse::<EventTime>() {
        assert_eq!(time.to_string().parse(), Ok(time));
    }
    if let Ok(RangeEnd(time)) = text.parse() {
        assert_eq!(time.to_string().parse::<RangeEnd>().map(|RangeEnd(again)| again), Ok(time));
    }
    if let Ok(amount) = text.parse::<Amount>() {
        let units = amount.as_ten_thousandths();
        assert_eq!(Amount::from_ten_thousandths(units), Some(amount));
    }
    if let Ok(currency) = text.parse::<Currency>() {
        assert_eq!(currency.code(), text);
    }
    if let Ok(percent) = text.parse::<Percent>() {
        assert_eq!(percent.to_string().parse(), Ok(percent));
    }
    if let Ok(name) = text.parse::<QueryName>() {
        assert_eq!(name.to_string(), text);
    }
    if let Ok(field) = text.parse::<EventField>() {
        assert_eq!(field.to_string(), text);
    }
    if let Ok(field) = text.parse::<KeyField>() {
        assert_eq!(field.to_string(), text);
    }
    let _ = text.parse::<Expiry>();
}

/// A calendar and a moment: eight bytes of seconds, then granularity, day start and zone, with blanks
/// between. The period holds the moment, the next begins where it ends, and windows that fit do not lie
/// across its bounds.
fn local_period(bytes: &[u8]) {
    let Some((seconds, text)) = bytes.split_first_chunk() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let [granularity, day_start, zone] = text.split(' ').collect::<Vec<_>>()[..] else { return };
    let (Ok(granularity), Ok(day_start), Ok(zone)) =
        (granularity.parse(), day_start.parse(), zone.parse())
    else {
        return;
    };
    // From 1900 to 2199, as event times are.
    let second = i64::from_le_bytes(*seconds).rem_euclid(9_467_107_200) - 2_208_988_800;
    let time = EventTime::from_micros(second * 1_000_000);
    let calendar = Calendar { granularity, zone, day_start };
    let bounds = calendar.period_of(time).bounds;
    assert!(bounds.start <= time && time < bounds.end, "{time} is not in {bounds:?}");
    assert_eq!(calendar.period_of(bounds.start).bounds, bounds, "its first moment");
    let last = EventTime::from_micros(bounds.end.as_micros() - 1);
    assert_eq!(calendar.period_of(last).bounds, bounds, "its last moment");
    assert_eq!(calendar.period_of(bounds.end).bounds.start, bounds.end, "the next");
    let hours = crate::domain::WindowSpec::Tumbling { size: Span::HOUR, offset: Span::ZERO };
    let foldable = Foldable::of(hours).expect("tumbling windows fold");
    if foldable.check(&calendar, bounds.start, bounds.end.plus(Span::HOUR)).is_ok() {
        assert_eq!(bounds.end.floor_to(Span::HOUR, Span::ZERO), bounds.end);
    }
}

/// A file to import: NDJSON, or CSV, as the first byte says.
fn imported_rows(bytes: &[u8]) {
    match bytes.split_first() {
        Some((0, file)) => import::fuzzing::json_lines(file),
        Some((_, file)) => import::fuzzing::csv_rows(file),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const DAMAGED_COPIES: usize = 300;

    #[test]
    fn no_seed_and_no_damaged_copy_of_one_breaks_a_promise() {
        let mut rng = fastrand::Rng::with_seed(1);
        for (name, function) in TARGETS {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(name);
            let files = std::fs::read_dir(&folder).unwrap_or_else(|_| panic!("no {folder:?}"));
            let seeds: Vec<Vec<u8>> =
                files.map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect();
            assert!(!seeds.is_empty(), "{name} has no seed");
            for seed in &seeds {
                function(seed);
                for _ in 0..DAMAGED_COPIES {
                    function(&damaged(seed, &seeds, &mut rng));
                }
            }
        }
    }

    /// With some bytes changed, left out, or put in from another seed.
    fn damaged(seed: &[u8], seeds: &[Vec<u8>], rng: &mut fastrand::Rng) -> Vec<u8> {
        let mut bytes = seed.to_vec();
        for _ in 0..rng.usize(1..4) {
            let at = rng.usize(..=bytes.len());
            let other = rng.choice(seeds).expect("some");
            let from = rng.usize(..=other.len());
            match rng.u8(..4) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at, rng.u8(..)),
                2 => bytes.splice(at..at, other[from..].iter().copied().take(8)).for_each(drop),
                _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << rng.u8(..8)),
            }
        }
        bytes
    }
}
