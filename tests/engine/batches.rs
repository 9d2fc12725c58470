//! What others ask of batches and states besides taking a step.

use tillmark::domain::Seq;
use tillmark::engine::{Batch, Content, Profile, Record};

use crate::builders::{a_sale, an_hourly_query, moment};

#[test]
fn a_profile_keeps_the_place_at_which_it_was_added() {
    let mut batch = Batch::default();
    let mut places = Vec::new();
    for store in ["1", "2", "3"] {
        let values = vec![Some(store.to_owned())];
        places
            .push(batch.add_profile(Profile { currency: "USD".parse().unwrap(), values }).index());
    }
    assert_eq!(places, [0, 1, 2]);
}

#[test]
fn a_batch_ends_at_its_last_record() {
    let mut batch = Batch::default();
    assert_eq!(batch.last_seq(), None);
    for seq in [Seq::new(3), Seq::new(7)] {
        batch.push(Record { seq, event_time: moment("09:00"), content: Content::Heartbeat });
        assert_eq!(batch.last_seq(), Some(seq));
    }
}

#[test]
fn the_window_that_ends_first_is_the_first_to_close() {
    let mut query = an_hourly_query();
    assert_eq!(query.state.first_window_end(), None);
    query.batch(["10:10", "09:10"].map(a_sale));
    assert_eq!(query.state.first_window_end(), Some(moment("10:00")));
}

#[test]
fn states_that_differ_in_a_window_are_not_equal() {
    let states = [&["09:10"][..], &["09:10", "09:10"], &["09:10", "08:10"]].map(|times| {
        let mut query = an_hourly_query();
        query.batch(times.iter().copied().map(a_sale));
        query.state
    });
    assert_ne!(states[0], states[1], "another total");
    assert_ne!(states[0], states[2], "another window");
}
