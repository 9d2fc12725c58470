//! Which rows each output mode writes, and what of the state changes and goes.

use tillmark::domain::OutputMode;

use crate::builders::{Sale, TestQuery, a_sale, an_hourly_query, shown};

/// Two batches: the first opens 09:00 and 11:00, the second adds to 09:00, which it closes, and to
/// 11:00, and opens 12:00.
fn two_batches(mode: OutputMode) -> (TestQuery, [tillmark::engine::Outcome; 2]) {
    let mut query = an_hourly_query().in_mode(mode);
    let first = query.batch([a_sale("11:00").of("3.00"), a_sale("09:30").of("1.00")]);
    let second = query.batch([
        a_sale("12:10").of("5.00"),
        a_sale("11:10").of("4.00"),
        a_sale("09:45").of("2.00"),
    ]);
    (query, [first, second])
}

#[test]
fn each_output_mode_writes_its_own_rows() {
    let none: [&str; 0] = [];
    let after_first = ["09:00:00 1 1.00 USD", "11:00:00 1 3.00 USD"];
    let after_second = ["09:00:00 2 3.00 USD", "11:00:00 2 7.00 USD", "12:00:00 1 5.00 USD"];
    for (mode, first_rows, second_rows) in [
        (OutputMode::Append, &none[..], &after_second[..1]),
        (OutputMode::Update, &after_first, &after_second),
        (OutputMode::Complete, &after_first, &after_second),
    ] {
        let (_, [first, second]) = two_batches(mode);
        assert_eq!(shown(&first.rows), first_rows, "{mode:?}");
        assert_eq!(shown(&second.rows), second_rows, "{mode:?}");
    }
}

#[test]
fn state_that_changed_and_stays_is_told_apart_from_state_that_goes() {
    for (mode, changed, removed, open) in [
        (OutputMode::Append, 2, 1, 2),
        (OutputMode::Update, 2, 1, 2),
        (OutputMode::Complete, 3, 0, 3),
    ] {
        let (_, [first, second]) = two_batches(mode);
        assert_eq!(first.state_changed.len(), 2, "{mode:?}");
        assert_eq!(second.state_changed.len(), changed, "{mode:?}");
        assert_eq!(second.state_removed.len(), removed, "{mode:?}");
        assert_eq!((second.windows_updated, second.windows_open), (3, open), "{mode:?}");
        assert!(second.state_changed.iter().all(|row| !second.state_removed.contains(&row.key)));
    }
}

#[test]
fn an_update_writes_only_the_rows_that_changed() {
    let mut query = an_hourly_query().in_mode(OutputMode::Update);
    query.batch(["09:30", "10:30"].map(a_sale));
    let outcome = query.batch([a_sale("10:31")]);
    assert_eq!(shown(&outcome.rows), ["10:00:00 2 20.00 USD"]);
    assert_eq!(shown(&outcome.state_changed), ["10:00:00 2 20.00 USD"]);
    assert_eq!(query.table(), ["09:00:00 1 10.00 USD", "10:00:00 2 20.00 USD"]);
}

#[test]
fn an_update_query_writes_no_row_for_a_window_that_only_closes() {
    let mut query = an_hourly_query().in_mode(OutputMode::Update);
    query.batch([a_sale("09:30"), a_sale("11:00")]);
    let outcome = query.catch_up();
    assert_eq!(outcome.rows, []);
    assert_eq!(outcome.state_removed.len(), 1);
    assert_eq!(query.table().len(), 2, "its row stays in the table");
    assert_eq!(query.open(), ["11:00:00 1 10.00 USD"]);
}

#[test]
fn an_append_row_is_written_once_and_its_state_goes() {
    let mut query = an_hourly_query();
    query.batch([a_sale("09:30"), a_sale("11:00")]);
    let outcome = query.catch_up();
    let removed = outcome.state_removed.first().expect("one window closed");
    assert_eq!(Some(removed), outcome.rows.first().map(|row| &row.key));
    for sale in ["11:10", "12:00", "12:05"] {
        let rows = shown(&query.batch([a_sale(sale)]).rows);
        assert!(!rows.iter().any(|row| row.starts_with("09:00")), "{rows:?}");
    }
}

#[test]
fn one_watermark_closes_every_window_it_passes_in_order_of_their_ends() {
    let mut query = an_hourly_query();
    query.batch(["08:10", "05:10", "06:10", "09:10", "11:00"].map(a_sale));
    let outcome = query.catch_up();
    assert_eq!(
        shown(&outcome.rows),
        ["05:00:00", "06:00:00", "08:00:00", "09:00:00"]
            .map(|start| format!("{start} 1 10.00 USD")),
        "and none for the empty hour at 07:00"
    );
    assert_eq!(query.open(), ["11:00:00 1 10.00 USD"]);
}

#[test]
fn complete_mode_writes_the_whole_table_after_every_batch_and_closes_nothing() {
    let mut query = an_hourly_query().in_mode(OutputMode::Complete);
    query.batch([a_sale("09:30")]);
    query.batch([a_sale("23:00")]);
    let outcome = query.batch([a_sale("23:30")]);
    assert_eq!(shown(&outcome.rows), ["09:00:00 1 10.00 USD", "23:00:00 2 20.00 USD"]);
    assert_eq!(shown(&outcome.state_changed), ["23:00:00 2 20.00 USD"]);
    assert_eq!(outcome.state_removed, []);
    assert_eq!(query.state.open_windows(), 2);
}

#[test]
fn a_restart_between_any_two_batches_changes_no_row() {
    for mode in [OutputMode::Append, OutputMode::Update, OutputMode::Complete] {
        let mut through = an_hourly_query().in_mode(mode);
        let mut restarted = an_hourly_query().in_mode(mode);
        for sales in
            [["09:30", "11:00"], ["09:45", "11:10"], ["09:50", "13:00"], ["11:20", "14:30"]]
        {
            restarted.restart();
            let outcome = through.batch(sales.map(a_sale));
            assert_eq!(restarted.batch(sales.map(a_sale)), outcome, "{mode:?} {sales:?}");
        }
        restarted.restart();
        assert_eq!(restarted.state, through.state, "{mode:?}");
        assert_eq!(restarted.try_batch([]), through.try_batch([]), "{mode:?}");
    }
}

#[test]
fn a_closed_window_does_not_open_again() {
    for mode in [OutputMode::Append, OutputMode::Update] {
        let mut query = an_hourly_query().in_mode(mode);
        query.run([a_sale("09:30"), a_sale("11:00")]);
        query.batch([a_sale("09:31")]);
        query.restart();
        query.batch([a_sale("09:32"), a_sale("11:01")]);
        assert_eq!(query.open(), ["11:00:00 2 20.00 USD"], "{mode:?}");
        assert_eq!(query.table()[0], "09:00:00 1 10.00 USD", "{mode:?}");
    }
}
