use super::*;
use crate::domain::Revenue;

fn time(text: &str) -> EventTime {
    text.parse().expect(text)
}

fn lisbon_days() -> Calendar {
    Calendar {
        granularity: "P1D".parse().expect("a granularity"),
        zone: "Europe/Lisbon".parse().expect("a zone"),
        day_start: Default::default(),
    }
}

/// An hour with one order for its start and so many cents.
fn hour(start: &str, store: &str, cents: i128, closed_by: Option<&str>) -> WindowRow {
    let start = time(start);
    let totals = Totals { orders: 1, revenue: Revenue::from_ten_thousandths(cents * 100) };
    WindowRow {
        key: WindowKey {
            window: Window { start, end: start.plus("1 hour".parse().expect("a span")) },
            currency: "EUR".parse().expect("a currency"),
            group: GroupKey(vec![Some(store.to_owned())]),
        },
        totals,
        is_final: closed_by.is_some(),
        batch_id: Some(BatchId::new(i64::try_from(cents).expect("few"))),
        written_at: DateTime::from_timestamp(i64::try_from(cents).expect("few"), 0)
            .expect("a moment"),
        closed_by: closed_by.map(str::to_owned),
        late_since: totals,
        corrections: None,
    }
}

fn fold(range: FoldRange, complete_through: &str, rows: &[WindowRow]) -> Vec<FoldedRow> {
    let through = time(complete_through);
    let mut folding = Folding::new(lisbon_days(), range, Some(through));
    let mut folds: Vec<FoldedRow> = rows.iter().flat_map(|row| folding.take(row)).collect();
    folds.extend(folding.end());
    folds
}

#[test]
fn the_hours_of_a_day_of_25_hours_are_all_in_it() {
    let mut rows = vec![hour("2026-10-24T22:00:00Z", "S1", 1, None)];
    rows.extend((0..25).map(|n| {
        let start =
            time("2026-10-24T23:00:00Z").plus(format!("{n} hours").parse().expect("a span"));
        hour(&start.to_string(), "S1", 2, None)
    }));
    rows.push(hour("2026-10-26T00:00:00Z", "S1", 4, None));
    let folds = fold(FoldRange::default(), "2026-10-24T00:00:00Z", &rows);
    let told: Vec<(String, i64)> =
        folds.iter().map(|fold| (fold.period.date(), fold.totals.orders)).collect();
    let expected = [("2026-10-24", 1), ("2026-10-25", 25), ("2026-10-26", 1)];
    assert_eq!(told, expected.map(|(date, orders)| (date.to_owned(), orders)));
    assert_eq!(folds[1].late_since, folds[1].totals);
    assert_eq!(
        (folds[1].batch_id.map_or(0, BatchId::get), folds[1].written_at.timestamp()),
        (2, 2)
    );
}

#[test]
fn a_fold_is_final_when_its_last_hour_is_whether_or_not_that_has_a_row() {
    let day = [hour("2026-07-01T09:00:00Z", "S1", 1, Some("watermark"))];
    for (case, complete_through, to, is_final) in [
        ("an hour before the end", "2026-07-01T22:00:00Z", None, false),
        ("at the end", "2026-07-01T23:00:00Z", None, true),
        ("the part asked for is final", "2026-07-01T12:00:00Z", Some("2026-07-01T12:00:00Z"), true),
        ("the part asked for is not", "2026-07-01T11:00:00Z", Some("2026-07-01T12:00:00Z"), false),
    ] {
        let range = FoldRange { from: None, to: to.map(time) };
        let folds = fold(range, complete_through, &day);
        assert_eq!((folds.len(), folds[0].is_final()), (1, is_final), "{case}");
        assert_eq!(folds[0].closed_by, is_final.then_some(ClosedBy::Watermark), "{case}");
        assert_eq!(folds[0].is_partial(), to.is_some(), "{case}");
    }
    let idle = [&day[..], &[hour("2026-07-01T10:00:00Z", "S1", 1, Some("idle"))]].concat();
    let folds = fold(FoldRange::default(), "2026-07-02T00:00:00Z", &idle);
    assert_eq!(folds[0].closed_by, Some(ClosedBy::Idle));
    let folds = fold(FoldRange::default(), "2026-07-01T11:00:00Z", &idle);
    assert_eq!(folds[0].closed_by, None, "the rest of the day may still get events");
}

#[test]
fn stores_fold_apart_and_stand_in_order() {
    let rows = [
        hour("2026-07-01T09:00:00Z", "S2", 1, None),
        hour("2026-07-01T10:00:00Z", "S1", 2, None),
        hour("2026-07-01T10:00:00Z", "S2", 4, None),
        hour("2026-07-02T10:00:00Z", "S1", 8, None),
    ];
    let range = FoldRange { from: Some(time("2026-07-01T08:00:00Z")), to: None };
    let folds = fold(range, "2026-07-01T00:00:00Z", &rows);
    let told: Vec<(String, &str, i64, bool)> = folds
        .iter()
        .map(|fold| {
            let store = fold.group.0[0].as_deref().expect("a store");
            (fold.period.date(), store, fold.totals.orders, fold.is_partial())
        })
        .collect();
    let expected = [
        ("2026-07-01", "S1", 1, true),
        ("2026-07-01", "S2", 2, true),
        ("2026-07-02", "S1", 1, false),
    ];
    assert_eq!(told, expected.map(|(date, store, n, cut)| (date.to_owned(), store, n, cut)));
    assert_eq!(folds[0].covered.start, time("2026-07-01T08:00:00Z"));
}
