use super::*;
use crate::domain::{Attributes, InvalidText, QueryName, QuerySpec, QuerySpecText};
use serde_json::{Value, json};

fn time(text: &str) -> EventTime {
    text.parse().expect("a time")
}

/// A moment of 1 October 2026.
fn at(clock: &str) -> EventTime {
    time(&format!("2026-10-01T{clock}Z"))
}

fn window(start: &str, end: &str) -> Window {
    Window { start: at(start), end: at(end) }
}

fn id<T: TryFrom<String, Error = InvalidText>>(text: &str) -> T {
    T::try_from(text.to_owned()).expect("an id")
}

fn event(event_time: EventTime) -> Event {
    Event {
        event_id: id("e2"),
        order_id: id("1001"),
        status: id("placed"),
        amount: "20.5".parse().expect("an amount"),
        currency: "USD".parse().expect("ISO 4217"),
        event_time,
        store_id: None,
        till_id: None,
        customer_id: None,
        item_count: None,
        attributes: Attributes::default(),
    }
}

fn spec(members: Value) -> QuerySpec {
    let mut rule = json!({
        "window": {"kind": "tumbling", "size": "1 hour"}, "watermark_delay": "1 hour",
        "output_mode": "append",
    });
    let (Some(rule_members), Value::Object(members)) = (rule.as_object_mut(), members) else {
        unreachable!("both are objects");
    };
    rule_members.extend(members);
    let text: QuerySpecText = serde_json::from_value(rule).expect("a rule");
    text.try_into().expect("a checked rule")
}

fn receipt(
    members: Value,
    windows: &[Window],
    missed: &[Window],
    outcome: ReceiptOutcome,
) -> QueryReceipt {
    let name: QueryName = "q".parse().expect("a name");
    QueryReceipt {
        name,
        spec: spec(members),
        outcome,
        windows: windows.to_vec(),
        missed_windows: missed.to_vec(),
        batch_id: Some(BatchId::new(4)),
    }
}

fn closing(clock: &str, record: Option<ClosingRecord>) -> Option<Closing> {
    let watermark = Watermark::EPOCH.advanced_by(at(clock), Span::ZERO);
    Some(Closing { watermark, record })
}

fn order(order_id: &str, event_time: EventTime) -> Option<ClosingRecord> {
    Some(ClosingRecord::Event { order_id: id(order_id), event_time })
}

#[test]
fn a_late_event_is_told_what_closed_its_window() {
    let nine = window("09:00:00", "10:00:00");
    let quiet: Span = "31 minutes".parse().expect("a span");
    let tomorrow = time("2026-10-02T11:30:00Z");
    for (record, sentence) in [
        (
            order("1005", at("11:30:00")),
            "late: the 09:00–10:00 window was closed at 10:30 by order 1005 of 11:30",
        ),
        (
            order("1005", tomorrow),
            "late: the 09:00–10:00 window was closed at 10:30 by order 1005 of 2026-10-02T11:30:00Z",
        ),
        (
            Some(ClosingRecord::Heartbeat { source: id("till-7"), event_time: at("12:40:30") }),
            "late: the 09:00–10:00 window was closed at 10:30 by a heartbeat of till-7 of 12:40:30",
        ),
        (
            Some(ClosingRecord::Idle { quiet }),
            "late: the 09:00–10:00 window was closed at 10:30 because nothing came for 31 minutes",
        ),
        (None, "late: the 09:00–10:00 window was closed at 10:30"),
    ] {
        let outcome = ReceiptOutcome::Late {
            rule: LateRule::WindowClosed(nine),
            closing: closing("10:30:00", record),
        };
        let late = receipt(json!({"idle_timeout": "30 minutes"}), &[], &[nine], outcome);
        assert_eq!(reason(&late, &event(at("09:50:00"))), sentence);
    }
}

#[test]
fn what_is_older_than_1970_was_late_from_the_start() {
    let event_time = time("1969-12-31T23:10:00Z");
    let window = Window { start: time("1969-12-31T23:00:00Z"), end: time("1970-01-01T00:00:00Z") };
    let outcome = ReceiptOutcome::Late {
        rule: LateRule::WindowClosed(window),
        closing: Some(Closing { watermark: Watermark::EPOCH, record: None }),
    };
    assert_eq!(
        reason(&receipt(json!({}), &[], &[window], outcome), &event(event_time)),
        "late: the 1969-12-31T23:00:00Z–1970-01-01T00:00:00Z window was closed from the start: \
         watermarks begin at 1970-01-01T00:00:00.000Z"
    );
}

#[test]
fn a_sliding_event_is_told_what_it_missed_and_where_it_counts() {
    let all = [
        window("09:00:00", "10:00:00"),
        window("09:15:00", "10:15:00"),
        window("09:30:00", "10:30:00"),
        window("09:45:00", "10:45:00"),
    ];
    let rule = json!({"window": {"kind": "sliding", "size": "1 hour", "slide": "15 minutes"}});
    for (n_missed, sentence) in [
        (
            1,
            "late: the 09:00–10:00 window was closed at 10:20 by order 7 of 11:20; it counts in the \
             other 3 by batch 4",
        ),
        (
            3,
            "late: 3 of its windows were closed, the last of them, 09:30–10:30, at 10:20 by order 7 \
             of 11:20; it counts in the other one by batch 4",
        ),
        (
            4,
            "late: all of its 4 windows were closed, the last, 09:45–10:45, at 10:20 by order 7 of \
             11:20",
        ),
    ] {
        let (missed, counted) = all.split_at(n_missed);
        let outcome = ReceiptOutcome::Late {
            rule: LateRule::WindowClosed(missed[n_missed - 1]),
            closing: closing("10:20:00", order("7", at("11:20:00"))),
        };
        let late = receipt(rule.clone(), counted, missed, outcome);
        assert_eq!(reason(&late, &event(at("09:50:00"))), sentence);
    }
    for (n_final, sentence) in [
        (0, "counted: in 4 windows (09:00–10:00 to 09:45–10:45) by batch 4; all are still open"),
        (
            1,
            "counted: in 4 windows (09:00–10:00 to 09:45–10:45) by batch 4; the first is final \
             since batch 6",
        ),
        (
            4,
            "counted: in 4 windows (09:00–10:00 to 09:45–10:45) by batch 4; all are final since \
             batch 6",
        ),
    ] {
        let final_since = (n_final > 0).then(|| BatchId::new(6));
        let outcome = ReceiptOutcome::Counted { n_final, final_since };
        let counted = receipt(rule.clone(), &all, &[], outcome);
        assert_eq!(reason(&counted, &event(at("09:50:00"))), sentence);
    }
}

#[test]
fn an_event_can_be_too_late_to_tell_whether_it_is_a_duplicate() {
    let ten = window("10:00:00", "11:00:00");
    let outcome = ReceiptOutcome::Late {
        rule: LateRule::KeyForgotten,
        closing: closing("10:30:00", order("1005", at("11:30:00"))),
    };
    let late = receipt(json!({"deduplicate": {"keys": ["order_id"]}}), &[], &[ten], outcome);
    assert_eq!(
        reason(&late, &event(at("10:20:00"))),
        "late: whether it is a duplicate could no longer be told: its time, 10:20, was passed at \
         10:30 by order 1005 of 11:30"
    );
}

#[test]
fn a_duplicate_is_told_its_key_and_the_event_that_counted() {
    let nine = window("09:00:00", "10:00:00");
    for (keys, sentence) in [
        (
            json!(["order_id", "status"]),
            "duplicate: order 1001 with status placed was counted first, as event e1",
        ),
        (
            json!(["amount", "store_id", "order_id"]),
            "duplicate: order 1001 with amount 20.50 and no store_id was counted first, as event e1",
        ),
        (json!(["status"]), "duplicate: status placed was counted first, as event e1"),
    ] {
        let outcome = ReceiptOutcome::Duplicate { first: Some(id("e1")) };
        let rule = json!({"deduplicate": {"keys": keys}});
        let duplicate = receipt(rule, &[], &[nine], outcome);
        assert_eq!(reason(&duplicate, &event(at("09:05:00"))), sentence);
    }
}

#[test]
fn the_others_are_told_where_they_stand() {
    let nine = window("09:00:00", "10:00:00");
    let final_since = Some(BatchId::new(6));
    for (outcome, sentence) in [
        (
            ReceiptOutcome::Counted { n_final: 1, final_since },
            "counted: in the 09:00–10:00 session by batch 4; the session is final since batch 6",
        ),
        (
            ReceiptOutcome::Counted { n_final: 0, final_since: None },
            "counted: in the 09:00–10:00 session by batch 4; the session is still open",
        ),
        (ReceiptOutcome::Waiting, "waiting: the query has not read it yet"),
        (ReceiptOutcome::Quarantined { reason: "it is so".to_owned() }, "quarantined: it is so"),
    ] {
        let rule = json!({"window": {"kind": "session", "gap": "30 minutes"}});
        let told = receipt(rule, &[nine], &[], outcome);
        assert_eq!(reason(&told, &event(at("09:50:00"))), sentence);
    }
}
