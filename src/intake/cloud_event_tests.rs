use crate::domain::IdentifiedEvent;
use crate::intake::{BodyFormat, BodyLimits, EventDefaults, InvalidItem, events};

const DATA: &str = r#"{"order_id":"1001","status":"placed","amount":"20.00"}"#;

/// A CloudEvent whose attributes are JSON texts by name; an empty text leaves one out.
fn cloud_event(changed: &[(&str, &str)]) -> String {
    let attributes = [
        ("specversion", r#""1.0""#),
        ("id", r#""e-1""#),
        ("source", r#""till-7""#),
        ("type", r#""com.example.order.placed""#),
        ("time", r#""2026-10-01T09:05:00Z""#),
        ("data", DATA),
    ];
    let is_changed = |name: &str| changed.iter().any(|(changed, _)| *changed == name);
    let kept = attributes.iter().filter(|(name, _)| !is_changed(name));
    let members = kept.chain(changed).filter(|(_, json)| !json.is_empty());
    let members: Vec<String> = members.map(|(name, json)| format!("\"{name}\":{json}")).collect();
    format!("{{{}}}", members.join(","))
}

fn checked(changed: &[(&str, &str)]) -> Result<IdentifiedEvent, InvalidItem> {
    let json = cloud_event(changed);
    let defaults = EventDefaults { currency: "USD".parse().expect("a currency") };
    let limits = BodyLimits::default();
    let items = events(json.as_bytes(), BodyFormat::CloudEvent, &defaults, &limits);
    items.expect(&json).remove(0).outcome
}

/// `DATA` with further members.
fn data_with(members: &str) -> String {
    DATA.replacen('{', &format!("{{{members},"), 1)
}

#[test]
fn the_envelope_gives_the_id_and_stands_in_for_till_and_time() {
    let event = checked(&[]).expect("a sale").event;
    assert_eq!(event.event_id.as_str(), "e-1");
    assert_eq!(event.till_id.map(|id| id.to_string()).as_deref(), Some("till-7"));
    assert_eq!(event.event_time.to_string(), "2026-10-01T09:05:00Z");
}

#[test]
fn what_data_names_itself_goes_before_the_envelope() {
    let data = data_with(r#""event_id":"e-1","till_id":"T1","event_time":"2026-10-01T10:00:00Z""#);
    let far = format!("\"https://example.com/{}\"", "x".repeat(300));
    for changed in [&[("data", data.as_str())][..], &[("data", &data), ("source", &far)]] {
        let event = checked(changed).expect("a sale").event;
        assert_eq!(event.event_id.as_str(), "e-1");
        assert_eq!(event.till_id.map(|id| id.to_string()).as_deref(), Some("T1"));
        assert_eq!(event.event_time.to_string(), "2026-10-01T10:00:00Z");
    }
    let nulls = data_with(r#""event_id":null,"till_id":null,"event_time":null"#);
    assert_eq!(checked(&[("data", &nulls)]), checked(&[]), "null names nothing");
}

#[test]
fn what_a_broker_adds_on_the_way_changes_nothing() {
    let added = [
        ("subject", r#""order 1001""#),
        ("dataschema", r#""https://example.com/order.json""#),
        ("datacontenttype", r#""application/vnd.shop+json; charset=utf-8""#),
        ("traceparent", r#""00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01""#),
        ("partition", "7"),
        ("replayed", "true"),
        ("tenant", "null"),
        ("data_base64", "null"),
    ];
    assert_eq!(checked(&added), checked(&[]));
}

/// A changed attribute, where the fault is and the code it is refused with.
type Refused = (&'static str, &'static str, &'static str, &'static str);

const BAD: &[Refused] = &[
    ("specversion", "", "/specversion", "missing"),
    ("specversion", "1.0", "/specversion", "wrong_type"),
    ("specversion", r#""0.3""#, "/specversion", "invalid"),
    ("id", "", "/id", "missing"),
    ("id", "null", "/id", "missing"),
    ("id", r#""""#, "/id", "empty"),
    ("id", "17", "/id", "wrong_type"),
    ("source", "", "/source", "missing"),
    ("source", r#""""#, "/source", "empty"),
    ("source", "[]", "/source", "wrong_type"),
    ("source", r#""\ud800""#, "/source", "invalid"),
    ("source", r#""\u0000""#, "/source", "invalid"),
    ("type", "", "/type", "missing"),
    ("type", r#""""#, "/type", "empty"),
    ("subject", r#""""#, "/subject", "empty"),
    ("dataschema", "1", "/dataschema", "wrong_type"),
    ("time", "", "/data/event_time", "missing"),
    ("time", "null", "/data/event_time", "missing"),
    ("time", "1790845500", "/time", "wrong_type"),
    ("time", r#""2026-10-01T09:05:00""#, "/time", "invalid"),
    ("datacontenttype", r#""text/xml""#, "/datacontenttype", "invalid"),
    ("datacontenttype", r#""json""#, "/datacontenttype", "invalid"),
    ("data", "", "/data", "missing"),
    ("data", "null", "/data", "missing"),
    ("data", r#""{}""#, "/data", "wrong_type"),
    ("data", "[]", "/data", "wrong_type"),
    ("data_base64", r#""e30=""#, "/data_base64", "invalid"),
    ("amount", "1", "/amount", "misplaced"),
    ("currency", r#""EUR""#, "/currency", "misplaced"),
    ("event_id", r#""e-1""#, "/event_id", "misplaced"),
    ("Tenant", "1", "/Tenant", "unknown_field"),
    ("tenant_id", "1", "/tenant_id", "unknown_field"),
    ("tenant", "{}", "/tenant", "wrong_type"),
    (r"\ud800", "1", "", "invalid"),
];

#[test]
fn an_attribute_that_is_wrong_is_named_with_the_kind_of_its_fault() {
    for (name, json, pointer, code) in BAD {
        let refused = checked(&[(name, json)]).expect_err(json);
        let faults: Vec<_> =
            refused.faults.iter().map(|fault| (fault.pointer.as_str(), fault.code)).collect();
        assert_eq!(faults, [(*pointer, *code)], "{name}: {json}");
    }
}

#[test]
fn faults_of_the_envelope_and_of_the_event_are_told_together() {
    let data =
        r#"{"event_id":"e-2","order_id":1001,"status":"","attributes":{"a/b":1},"colour":1}"#;
    let refused = checked(&[("data", data), ("type", ""), ("time", "5")]).expect_err(data);
    assert_eq!(refused.event_id.as_deref(), Some("e-1"));
    let faults: Vec<_> =
        refused.faults.iter().map(|fault| (fault.pointer.as_str(), fault.code)).collect();
    let expected = [
        ("/type", "missing"),
        ("/data/colour", "unknown_field"),
        ("/time", "wrong_type"),
        ("/data/event_id", "conflicting_fields"),
        ("/data/status", "empty"),
        ("/data/amount", "missing"),
        ("/data/attributes/a~1b", "wrong_type"),
    ];
    assert_eq!(faults, expected);
}

#[test]
fn a_source_that_stands_in_for_the_till_is_as_long_as_a_till_may_be() {
    let source = |chars: usize| format!("\"{}\"", "x".repeat(chars));
    assert!(checked(&[("source", &source(200))]).is_ok());
    let refused = checked(&[("source", &source(201))]).expect_err("too long");
    assert_eq!(refused.faults[0].detail, "`source` has 201 characters; at most 200 are allowed");
}

#[test]
fn an_attribute_written_twice_is_refused() {
    let twice = [("id", r#""e-1""#), ("id", r#""e-2""#)];
    let refused = checked(&twice).expect_err("twice");
    assert_eq!(
        (refused.faults[0].pointer.as_str(), refused.faults[0].code),
        ("/id", "duplicate_key")
    );
}
