use super::*;
use crate::database::{Finding, Recount, RecountRange, StoredQuery};
use crate::domain::{BatchId, Revenue, Seq, StoreId, Watermark, Window};
use crate::engine::Watermarks;

fn time(text: &str) -> EventTime {
    format!("2026-10-01T{text}:00Z").parse().expect(text)
}

/// So many orders of 1.00 each.
fn sold(orders: i64) -> Totals {
    Totals { orders, revenue: Revenue::from_ten_thousandths(i128::from(orders) * 10_000) }
}

/// A window of a store, as `09:00-10:00 S1`; without a store where none is named.
fn key(text: &str) -> WindowKey {
    let (window, store) = text.split_once(' ').unwrap_or((text, ""));
    let (start, end) = window.split_once('-').expect("a window");
    WindowKey {
        window: Window { start: time(start), end: time(end) },
        currency: "USD".parse().expect("a currency"),
        group: GroupKey(vec![Some(store.to_owned()).filter(|store| !store.is_empty())]),
    }
}

fn counted(orders: i64) -> Recount {
    Recount { all: sold(orders), ..Recount::default() }
}

/// A query by store that has run up to `watermark` and written nothing, of a log that holds nothing.
fn a_report(window: &str, watermark: &str) -> ReconciliationSnapshot {
    let rule = format!(
        r#"{{"window": {window}, "watermark_delay": "1 hour", "group_by": ["store_id"], "output_mode": "append"}}"#
    );
    let rule: crate::domain::QuerySpecText = serde_json::from_str(&rule).expect("a rule");
    let current = Watermark::EPOCH.advanced_by(time(watermark), crate::domain::Span::ZERO);
    ReconciliationSnapshot {
        query: StoredQuery {
            query_id: 1,
            name: "hourly_sales".parse().expect("a name"),
            spec: rule.try_into().expect("a rule"),
            paused: false,
            error: None,
            epoch: 0,
            start_seq: Seq::new(0),
            position: Seq::new(0),
            next_batch_id: BatchId::FIRST,
            watermarks: Watermarks { current, ..Watermarks::EPOCH },
            newest_event_time: None,
            has_poison_events: false,
        },
        range: RecountRange { from: None, to: None },
        as_of: time("12:00").to_utc(),
        stream: vec![],
        recount: vec![],
        late: vec![],
        corrections: vec![],
        open: Some(vec![]),
        quarantined: vec![],
        findings: vec![],
    }
}

const HOURS: &str = r#"{"kind": "tumbling", "size": "1 hour"}"#;
const SESSIONS: &str = r#"{"kind": "session", "gap": "10 minutes"}"#;
const NINE: &str = "09:00-10:00 S1";

fn only_line(snapshot: &ReconciliationSnapshot) -> Line {
    let report = compare(snapshot, &LineFilter::default());
    assert_eq!(report.lines.len(), 1, "{report:#?}");
    report.lines.into_iter().next().expect("one").1
}

/// Which orders of the nine o'clock window of S1 each source holds.
#[derive(Default)]
struct Orders {
    stream: i64,
    recount: i64,
    late: i64,
    corrections: i64,
    open: i64,
    waiting: i64,
    repeats: i64,
}

fn nine_o_clock(orders: &Orders) -> ReconciliationSnapshot {
    let Orders { stream, recount, late, corrections, open, waiting, repeats } = *orders;
    let mut snapshot = a_report(HOURS, "10:00");
    let one = |orders: i64| (orders != 0).then(|| (key(NINE), sold(orders)));
    snapshot.stream = one(stream).map(|(key, totals)| (key, totals, true)).into_iter().collect();
    snapshot.late = one(late).map(|(key, totals)| (key, totals, vec![])).into_iter().collect();
    snapshot.corrections = one(corrections).into_iter().collect();
    snapshot.open = Some(one(open).into_iter().collect());
    let parts = Recount { waiting: sold(waiting), repeats: sold(repeats), ..counted(recount) };
    snapshot.recount = vec![(key(NINE), parts)];
    snapshot
}

#[test]
fn a_line_is_called_by_the_first_that_applies() {
    for (orders, word) in [
        (Orders { stream: 3, recount: 3, ..Orders::default() }, "match"),
        (Orders { stream: 3, recount: 2, repeats: 1, ..Orders::default() }, "repeats"),
        (Orders { stream: 3, recount: 3, waiting: 1, repeats: 1, ..Orders::default() }, "waiting"),
        (Orders { recount: 3, open: 2, waiting: 1, ..Orders::default() }, "open"),
        (Orders { stream: 1, recount: 3, late: 1, open: 1, ..Orders::default() }, "late"),
        (
            Orders { stream: 1, recount: 3, late: 1, corrections: 1, ..Orders::default() },
            "corrected",
        ),
        (Orders { stream: 1, recount: 3, corrections: 1, ..Orders::default() }, "unexplained"),
        (Orders { stream: 3, recount: 3, late: 1, ..Orders::default() }, "unexplained"),
    ] {
        let line = only_line(&nine_o_clock(&orders));
        assert_eq!(line.verdict().as_str(), word, "{line:#?}");
        assert_eq!(line.unexplained() == Totals::ZERO, word != "unexplained", "{line:#?}");
        assert_eq!(line.difference(), sold(orders.recount - orders.stream));
        assert_eq!(line.findings.is_empty(), word != "unexplained", "{line:#?}");
    }
}

#[test]
fn what_is_unexplained_is_named_by_who_disagrees() {
    for (orders, what) in [
        (
            Orders { recount: 2, ..Orders::default() },
            "the stream has no row, or state, for what the raw log holds: 2",
        ),
        (
            Orders { recount: 2, open: 1, ..Orders::default() },
            "the state, the ledger and the raw log disagree: 1",
        ),
        (
            Orders { stream: 2, ..Orders::default() },
            "the stream has a row for which the raw log holds no event: -2",
        ),
        (
            Orders { stream: 1, recount: 2, ..Orders::default() },
            "the stream's row, the ledger and the raw log disagree: 1",
        ),
        (
            Orders { late: 1, ..Orders::default() },
            "the ledger or the state names events that the raw log does not hold: -1",
        ),
    ] {
        let line = only_line(&nine_o_clock(&orders));
        let [finding] = &line.findings[..] else { panic!("{line:#?}") };
        assert!(finding.starts_with(&format!("{what} orders, ")), "{finding}");
        assert!(finding.ends_with(".00 USD are not explained"), "{finding}");
    }
}

#[test]
fn a_line_with_something_impossible_is_unexplained_though_it_adds_up() {
    let mut snapshot = nine_o_clock(&Orders { stream: 1, recount: 1, ..Orders::default() });
    let finding = |key: Option<WindowKey>, detail: &str, is_fault| Finding {
        key,
        detail: detail.to_owned(),
        is_fault,
    };
    snapshot.findings = vec![
        finding(Some(key(NINE)), "a row is there twice", true),
        finding(None, "a row cannot be read", true),
        finding(None, "an event was set aside", false),
    ];
    let report = compare(&snapshot, &LineFilter::default());
    assert_eq!(report.lines[0].1.verdict(), Verdict::Unexplained);
    assert_eq!(report.lines[0].1.findings, ["a row is there twice"]);
    assert_eq!(report.unexplained, 2);
    let findings: Vec<&str> = report.findings.iter().map(|one| one.detail.as_str()).collect();
    assert_eq!(findings, ["a row cannot be read", "an event was set aside"]);

    let of_some = LineFilter { reach: stores(&["S1"]), ..LineFilter::default() };
    let report = compare(&snapshot, &of_some);
    assert_eq!((report.unexplained, report.findings), (1, vec![]));
}

fn stores(ids: &[&str]) -> StoreReach {
    StoreReach::only(ids.iter().map(|id| id.parse::<StoreId>().expect("an id")).collect())
}

#[test]
fn what_several_sources_say_of_a_window_is_added_up() {
    let mut snapshot = a_report(HOURS, "10:00");
    let ids = |id: &str| vec![id.parse::<EventId>().expect("an id")];
    snapshot.stream = vec![(key(NINE), sold(1), true), (key(NINE), sold(2), true)];
    snapshot.late = vec![(key(NINE), sold(1), ids("first")), (key(NINE), sold(1), ids("second"))];
    snapshot.corrections = vec![(key(NINE), sold(1)), (key(NINE), sold(2))];
    snapshot.open = Some(vec![(key(NINE), sold(1)), (key(NINE), sold(2))]);
    snapshot.quarantined = vec![(key(NINE), sold(1)), (key(NINE), sold(2))];
    let part = Recount { waiting: sold(1), repeats: sold(2), duplicates: sold(3), ..counted(5) };
    snapshot.recount = vec![(key(NINE), part), (key(NINE), part)];
    let line = only_line(&snapshot);
    assert_eq!((line.stream, line.late), (Some(sold(3)), sold(2)));
    assert_eq!(
        line.late_event_ids.iter().map(EventId::as_str).collect::<Vec<_>>(),
        ["first", "second"]
    );
    let parts = Parts {
        open: sold(3),
        waiting: sold(2),
        repeats: sold(4),
        duplicates: sold(6),
        quarantined: sold(3),
        corrections: sold(3),
    };
    assert_eq!(line.parts, parts);
    let sums = compare(&snapshot, &LineFilter::default()).totals;
    let sum = sums[&key(NINE).currency];
    assert_eq!((sum.stream, sum.recount, sum.late, sum.parts), (sold(3), sold(5), sold(2), parts));
}

#[test]
fn a_window_is_final_when_its_rows_are_and_nothing_of_it_is_open() {
    let row = |is_final| (key("11:00-12:00 S1"), sold(1), is_final);
    for (case, rows, has_open, is_final) in [
        ("a final row", vec![row(true)], false, true),
        ("a row that may change", vec![row(false)], false, false),
        ("two final rows", vec![row(true), row(true)], false, true),
        ("one of two is not", vec![row(true), row(false)], false, false),
        ("one of two is not, first", vec![row(false), row(true)], false, false),
        ("a final row and state", vec![row(true)], true, false),
    ] {
        let mut snapshot = a_report(HOURS, "10:00");
        snapshot.stream = rows;
        snapshot.open =
            Some(has_open.then(|| (key("11:00-12:00 S1"), sold(1))).into_iter().collect());
        assert_eq!(only_line(&snapshot).is_final, is_final, "{case}");
    }
    for (end, is_final) in [("10:00", true), ("11:00", false)] {
        let mut snapshot = a_report(HOURS, "10:00");
        let start = if is_final { "09:00" } else { "10:00" };
        snapshot.recount = vec![(key(&format!("{start}-{end} S1")), counted(1))];
        assert_eq!(only_line(&snapshot).is_final, is_final, "by the watermark alone, {end}");
    }
}

#[test]
fn what_the_raw_log_holds_nothing_of_has_no_recount() {
    let mut snapshot = a_report(HOURS, "10:00");
    let only_duplicates = Recount { duplicates: sold(2), ..Recount::default() };
    snapshot.recount = vec![(key(NINE), only_duplicates)];
    let line = only_line(&snapshot);
    assert_eq!((line.recount, line.parts.duplicates), (None, sold(2)));
}

#[test]
fn a_range_has_the_windows_that_start_in_it() {
    let starts = |from: Option<&str>, to: Option<&str>| -> Vec<String> {
        let mut snapshot = a_report(HOURS, "10:00");
        snapshot.range = RecountRange { from: from.map(time), to: to.map(time) };
        for hour in ["08:00-09:00 S1", "09:00-10:00 S1", "10:00-11:00 S1"] {
            snapshot.recount.push((key(hour), counted(1)));
        }
        let lines = compare(&snapshot, &LineFilter::default()).lines;
        lines.iter().map(|(key, _)| key.window.start.to_string()[11..13].to_owned()).collect()
    };
    assert_eq!(starts(None, None), ["08", "09", "10"]);
    assert_eq!(starts(Some("09:00"), None), ["09", "10"]);
    assert_eq!(starts(None, Some("10:00")), ["08", "09"]);
    assert_eq!(starts(Some("09:00"), Some("10:00")), ["09"]);
}

#[test]
fn lines_are_kept_by_currency_store_and_group() {
    let mut snapshot = a_report(HOURS, "10:00");
    let in_euros = WindowKey { currency: "EUR".parse().expect("a currency"), ..key(NINE) };
    let windows = [key(NINE), key("09:00-10:00 S2"), key("09:00-10:00"), in_euros];
    snapshot.recount = windows.map(|key| (key, counted(1))).to_vec();
    let kept = |filter: &LineFilter| -> Vec<String> {
        let lines = compare(&snapshot, filter).lines.into_iter();
        lines
            .map(|(key, _)| {
                let store = key.group.0[0].clone().unwrap_or_else(|| "none".to_owned());
                format!("{store} {}", key.currency.code())
            })
            .collect()
    };
    let group =
        |value: &str| LineFilter { group: vec![(0, value.to_owned())], ..LineFilter::default() };
    assert_eq!(kept(&LineFilter::default()), ["none USD", "S1 EUR", "S1 USD", "S2 USD"]);
    assert_eq!(kept(&group("S1")), ["S1 EUR", "S1 USD"]);
    assert_eq!(kept(&group("")), ["none USD"]);
    let euros =
        LineFilter { currency: Some("EUR".parse().expect("a currency")), ..LineFilter::default() };
    assert_eq!(kept(&euros), ["S1 EUR"]);
    let of_store = LineFilter { reach: stores(&["S2"]), ..LineFilter::default() };
    assert_eq!(kept(&of_store), ["S2 USD"]);
    assert_eq!(kept(&LineFilter { reach: stores(&["S2"]), ..group("S1") }), Vec::<String>::new());
    assert_eq!(kept(&LineFilter { reach: stores(&["S1"]), ..euros }), ["S1 EUR"]);
}

#[test]
fn as_of_a_moment_what_was_read_and_not_written_was_open() {
    let then = |start_end: &str, stream: i64, recount: Recount| {
        let mut snapshot = a_report(HOURS, "10:00");
        snapshot.open = None;
        let written = |is_final| (key(start_end), sold(stream), is_final);
        snapshot.stream = (stream != 0).then(|| written(true)).into_iter().collect();
        snapshot.recount = vec![(key(start_end), recount)];
        only_line(&snapshot)
    };
    let line =
        then("10:00-11:00 S1", 0, Recount { waiting: sold(1), repeats: sold(2), ..counted(5) });
    assert_eq!((line.parts.open, line.is_final, line.verdict()), (sold(6), false, Verdict::Open));
    let line = then("09:00-10:00 S1", 0, counted(5));
    assert_eq!(
        (line.parts.open, line.verdict()),
        (Totals::ZERO, Verdict::Unexplained),
        "closed by then"
    );
    let line = then("10:00-11:00 S1", 2, counted(0));
    assert!(line.is_final, "nothing of it was open: {line:#?}");
    let line = then("10:00-11:00 S1", 5, counted(5));
    assert!(
        !line.is_final && line.parts.open == sold(5),
        "only sessions are written in parts: {line:#?}"
    );
}

#[test]
fn as_of_a_moment_a_session_may_be_written_in_part() {
    let mut snapshot = a_report(SESSIONS, "09:30");
    snapshot.open = None;
    snapshot.recount = vec![(key("09:00-09:50 S1"), counted(5))];
    snapshot.stream = vec![(key("09:00-09:20 S1"), sold(2), true)];
    let line = only_line(&snapshot);
    assert_eq!((line.parts.open, line.is_final, line.verdict()), (sold(3), false, Verdict::Open));
    snapshot.stream = vec![(key("09:00-09:20 S1"), sold(5), true)];
    let line = only_line(&snapshot);
    assert_eq!(
        (line.parts.open, line.is_final, line.verdict()),
        (Totals::ZERO, true, Verdict::Match)
    );
}

#[test]
fn a_session_stands_with_the_recounted_session_that_holds_it() {
    let duplicates = Recount { duplicates: sold(1), ..Recount::default() };
    for (case, recounted, stream, lines) in [
        ("the same", vec![("09:00-09:30 S1", counted(2))], "09:00-09:30 S1", 1),
        ("a part at its start", vec![("09:00-09:30 S1", counted(2))], "09:00-09:10 S1", 1),
        ("a part at its end", vec![("09:00-09:30 S1", counted(2))], "09:20-09:30 S1", 1),
        ("after its end", vec![("09:00-09:30 S1", counted(2))], "09:30-09:40 S1", 2),
        ("before its start", vec![("09:10-09:30 S1", counted(2))], "09:00-09:20 S1", 2),
        ("of another store", vec![("09:00-09:30 S1", counted(2))], "09:10-09:20 S2", 2),
        (
            "the latest that begins by then",
            vec![("08:00-08:30 S1", counted(1)), ("09:00-09:30 S1", counted(2))],
            "09:10-09:20 S1",
            2,
        ),
        (
            "one of duplicates is no session",
            vec![("09:00-09:30 S1", duplicates)],
            "09:10-09:20 S1",
            2,
        ),
        (
            "one of events that wait is",
            vec![("09:00-09:30 S1", Recount { waiting: sold(1), ..Recount::default() })],
            "09:10-09:20 S1",
            1,
        ),
    ] {
        let mut snapshot = a_report(SESSIONS, "12:00");
        snapshot.recount = recounted.iter().map(|(text, recount)| (key(text), *recount)).collect();
        snapshot.stream = vec![(key(stream), sold(2), true)];
        assert_eq!(compare(&snapshot, &LineFilter::default()).lines.len(), lines, "{case}");
    }
    let mut snapshot = a_report(HOURS, "12:00");
    snapshot.recount = vec![(key("09:00-10:00 S1"), counted(2))];
    snapshot.stream = vec![(key("09:30-09:40 S1"), sold(2), true)];
    assert_eq!(
        compare(&snapshot, &LineFilter::default()).lines.len(),
        2,
        "windows of other kinds stand for themselves"
    );
}
