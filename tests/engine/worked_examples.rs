//! The examples of the rules' text, with every number.

use tillmark::domain::{Event, OutputMode};

use crate::builders::{Sale, a_sale, an_hourly_query, at, shown, shown_dropped};

const EPOCH: &str = "1970-01-01T00:00:00.000Z";

#[test]
fn hourly_sales_come_out_as_in_the_worked_example() {
    let mut query = an_hourly_query().of_status("placed");
    let posts = [
        vec![
            a_sale("09:05").of("20.00"),
            a_sale("09:20").of("30.50"),
            a_sale("09:25").of("20.00").with_status("paid"),
            a_sale("09:40").of("18.00"),
            a_sale("10:20").of("40.00"),
        ],
        vec![a_sale("11:30").of("18.25")],
        vec![a_sale("09:50").of("22.00"), a_sale("10:45").of("15.00"), a_sale("12:40").of("12.00")],
    ];
    let mut progress = Vec::new();
    for post in posts {
        for outcome in [query.batch(post), query.catch_up()] {
            let rows = shown(&outcome.rows).join(", ");
            progress.push((
                outcome.events_in,
                outcome.late_events,
                at(outcome.late_watermark),
                at(outcome.watermarks.current),
                rows,
            ));
        }
    }

    let entry = |events_in, late, judged_with: &str, watermark: &str, rows: &str| {
        (events_in, late, judged_with.to_owned(), watermark.to_owned(), rows.to_owned())
    };
    assert_eq!(
        progress,
        [
            entry(4, 0, EPOCH, EPOCH, ""),
            entry(0, 0, EPOCH, "09:20:00", ""),
            entry(1, 0, "09:20:00", "09:20:00", ""),
            entry(0, 0, "09:20:00", "10:30:00", "09:00:00 3 68.50 USD"),
            entry(3, 1, "10:30:00", "10:30:00", ""),
            entry(0, 0, "10:30:00", "11:40:00", "10:00:00 2 55.00 USD"),
        ]
    );
    assert_eq!(
        shown_dropped(&query.database.ledger),
        ["#7 missed 09:00:00 with 22.00 USD, late by 100 minutes"]
    );
    assert_eq!(query.table(), ["09:00:00 3 68.50 USD", "10:00:00 2 55.00 USD"]);
    assert_eq!(query.open(), ["11:00:00 1 18.25 USD", "12:00:00 1 12.00 USD"]);
    assert_eq!(query.try_batch([]), None, "nothing is owed any more");
}

/// The second example's six events, amounts apart.
fn six_sales_until_quarter_past_midnight() -> Vec<Event> {
    ["00:00", "00:02", "00:07", "00:11", "00:14", "00:19"].map(a_sale).to_vec()
}

#[test]
fn ten_minute_windows_close_when_event_time_passes_them_by_the_delay() {
    let mut query =
        an_hourly_query().with_windows("10 minutes", "0 seconds").with_delay("10 minutes");
    assert_eq!(query.run(six_sales_until_quarter_past_midnight()), [""; 0]);
    assert_eq!(at(query.state.watermarks().current), "00:09:00");
    for _ in 0..3 {
        assert_eq!(query.try_batch([]), None, "waiting closes nothing");
    }
    assert_eq!(query.run([a_sale("01:00")]), ["00:00:00 3 30.00 USD", "00:10:00 3 30.00 USD"]);
    assert_eq!(at(query.state.watermarks().current), "00:50:00");
    assert_eq!(query.run([a_sale("01:10")]), [""; 0]);
    assert_eq!(at(query.state.watermarks().current), "01:00:00");
    assert_eq!(query.open(), ["01:00:00 1 10.00 USD", "01:10:00 1 10.00 USD"]);
}

#[test]
fn an_event_out_of_order_but_inside_the_delay_counts_in_its_open_window() {
    for (straggler, window, mode) in [
        ("00:12", "00:10:00 3 30.00 USD", OutputMode::Append),
        ("00:12", "00:10:00 3 30.00 USD", OutputMode::Update),
        ("00:17", "00:15:00 2 20.00 USD", OutputMode::Append),
        ("00:17", "00:15:00 2 20.00 USD", OutputMode::Update),
    ] {
        let mut query = an_hourly_query()
            .with_windows("5 minutes", "0 seconds")
            .with_delay("10 minutes")
            .in_mode(mode);
        query.batch(six_sales_until_quarter_past_midnight());
        query.catch_up();
        let outcome = query.batch([a_sale(straggler)]);
        assert_eq!(outcome.late_events, 0, "{straggler}");
        assert_eq!(shown(&outcome.state_changed), [window], "{straggler}");
        query.batch([a_sale("01:00")]);
        query.catch_up();
        assert!(query.table().contains(&window.to_owned()), "{straggler}: {:?}", query.table());
    }
}
