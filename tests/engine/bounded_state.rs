//! A duplicates rule for ever: what it remembers is bounded by what arrives within the delay.
//!
//! `TILLMARK_BOUNDED_STATE_EVENTS` says how many events, for example 10000000.

use tillmark::domain::{Amount, DuplicateKey, EventTime, Seq};
use tillmark::engine::{Batch, Content, Profile, Record, State, step};

use crate::builders::{a_sale, an_hourly_query};
use crate::model_test::setting;

const EVENTS: u64 = 1_000_000;
const EVENTS_PER_BATCH: u64 = 10_000;
/// One event a second.
const MICROS_PER_EVENT: i64 = 1_000_000;
/// The delay of an hour in events, and the two batches that the watermark is behind.
const REMEMBERED_MAX: u64 = 3_600 + 2 * EVENTS_PER_BATCH;

/// A run of the log in which every tenth event is the one before it once more.
fn a_batch(first: u64) -> Batch {
    let sale = a_sale("00:00");
    let mut batch = Batch::default();
    let profile = batch.add_profile(Profile { currency: sale.currency, values: vec![] });
    let amount = Amount::from_ten_thousandths(1).unwrap();
    for seq in (first..first + EVENTS_PER_BATCH).map(u64::cast_signed) {
        let order = if seq % 10 == 0 { seq - 1 } else { seq };
        let duplicate_key = Some(DuplicateKey::new(&format!("[\"{order}\"]")));
        let content = Content::Event { amount, profile, duplicate_key };
        let event_time =
            EventTime::from_micros(sale.event_time.as_micros() + seq * MICROS_PER_EVENT);
        batch.push(Record { seq: Seq::new(seq), event_time, content });
    }
    batch
}

#[test]
fn remembered_keys_stay_bounded_however_many_events_come() {
    let events = setting("TILLMARK_BOUNDED_STATE_EVENTS").unwrap_or(EVENTS);
    let query = an_hourly_query().once_per_order();
    let mut state = State::default();
    let (mut counted, mut duplicates, mut remembered, mut forgotten) = (0, 0, 0, 0);
    for first in (1..=events).step_by(usize::try_from(EVENTS_PER_BATCH).unwrap()) {
        let outcome = step(&query.rules, &mut state, &a_batch(first)).unwrap();
        counted += outcome.events_in - outcome.duplicates;
        duplicates += outcome.duplicates;
        remembered += u64::try_from(outcome.keys_remembered.len()).unwrap();
        forgotten += outcome.keys_forgotten;
        assert!(state.remembered_keys() <= REMEMBERED_MAX, "{} keys", state.remembered_keys());
        assert!(outcome.windows_open <= 8, "{} windows", outcome.windows_open);
        assert_eq!(outcome.late_events, 0);
    }
    let read = events.next_multiple_of(EVENTS_PER_BATCH);
    assert_eq!((counted, duplicates), (read / 10 * 9, read / 10));
    assert_eq!(remembered - forgotten, state.remembered_keys(), "all others were forgotten");
}
