use crate::domain::IdentifiedEvent;
use crate::intake::{BodyFormat, BodyLimits, EventDefaults, events};

const SALE: &str = r#"{"order_id":"1001","status":"placed","amount":"20.00","currency":"USD",
    "event_time":"2026-10-01T09:05:00Z","store_id":"S1","till_id":"T1","customer_id":"C1",
    "item_count":2,"attributes":{"channel":"web","coupon":"X"}}"#;

fn identified(json: &str) -> IdentifiedEvent {
    let defaults = EventDefaults { currency: "USD".parse().expect("a currency") };
    let limits = BodyLimits::default();
    let items = events(json.as_bytes(), BodyFormat::Json, &defaults, &limits).expect(json);
    items.into_iter().next().expect("one item").outcome.expect(json)
}

#[test]
fn the_same_event_written_differently_is_the_same_event() {
    let sale = identified(SALE);
    for (case, from, to) in [
        ("white space", "\n    ", ""),
        ("a shorter decimal", r#""20.00""#, r#""20.0""#),
        ("an amount as a number", r#""20.00""#, "20.00"),
        ("an amount without decimals", r#""20.00""#, "20"),
        ("an amount with zeros to spare", r#""20.00""#, r#""020.000000""#),
        ("another name of the amount", "amount", "total"),
        ("another offset", "09:05:00Z", "11:05:00+02:00"),
        ("zeros after the second", "09:05:00Z", "09:05:00.000Z"),
        ("digits beyond the sixth", "09:05:00Z", "09:05:00.0000009Z"),
        ("a till's clock at UTC", "09:05:00Z", "09:05:00-00:00"),
        ("the default currency left out", r#""currency":"USD","#, ""),
        ("the default currency null", r#""USD""#, "null"),
        ("an order id as an integer", r#""1001""#, "1001"),
        ("letters escaped", r#""placed""#, r#""\u0070laced""#),
        ("a name escaped", r#""status""#, r#""st\u0061tus""#),
        (
            "attributes in another order",
            r#""channel":"web","coupon":"X""#,
            r#""coupon":"X","channel":"web""#,
        ),
        (
            "fields in another order",
            r#"{"order_id":"1001","status":"placed","#,
            r#"{"status":"placed","order_id":"1001","#,
        ),
        ("an optional field null", r#""order_id""#, r#""event_id":null,"order_id""#),
    ] {
        let rewritten = SALE.replace(from, to);
        assert_ne!(rewritten, SALE, "{case} changes the text");
        assert_eq!(identified(&rewritten), sale, "{case}");
    }
}

#[test]
fn an_event_that_differs_in_anything_is_another_event() {
    let mut hashes = vec![("as it is", identified(SALE).content_hash)];
    for (case, from, to) in [
        ("order", "1001", "1002"),
        ("order with a zero before it", "1001", "01001"),
        ("status", "placed", "paid"),
        ("amount", "20.00", "20.0001"),
        ("refund", "20.00", "-20.00"),
        ("currency", "USD", "EUR"),
        ("time", "09:05:00Z", "09:05:00.000001Z"),
        ("offset", "09:05:00Z", "09:05:00+02:00"),
        ("store", "S1", "S2"),
        ("no store", r#""store_id":"S1","#, ""),
        ("till", "T1", "T2"),
        ("no till", r#""till_id":"T1","#, ""),
        ("customer", "C1", "c1"),
        ("no customer", r#""customer_id":"C1","#, ""),
        ("store and till exchanged", r#""S1","till_id":"T1""#, r#""T1","till_id":"S1""#),
        ("till named as store", r#""store_id":"S1","till_id":"T1""#, r#""store_id":"T1""#),
        ("a field's end in the next one", r#""S1","till_id":"T1""#, r#""S","till_id":"1T1""#),
        ("item count", r#""item_count":2"#, r#""item_count":3"#),
        ("item count of nothing", r#""item_count":2"#, r#""item_count":0"#),
        ("no item count", r#""item_count":2,"#, ""),
        ("an attribute's value", "web", "app"),
        ("an attribute's name", "channel", "channels"),
        ("an attribute less", r#""channel":"web","#, ""),
        ("an attribute more", r#""channel":"web","#, r#""channel":"web","b":"","#),
        ("a name's end in its value", r#""channel":"web""#, r#""channelw":"eb""#),
        ("no attributes", r#"{"channel":"web","coupon":"X"}"#, "{}"),
    ] {
        let other = SALE.replace(from, to);
        assert_ne!(other, SALE, "{case} changes the text");
        let hash = identified(&other).content_hash;
        for (earlier, known) in &hashes {
            assert_ne!(hash, *known, "{case} against {earlier}");
        }
        hashes.push((case, hash));
    }
}

#[test]
fn without_an_id_of_the_till_the_content_is_the_id() {
    let sale = identified(SALE);
    let id = sale.event.event_id.as_str();
    assert_eq!(id, format!("sha256:{}", sale.content_hash));
    assert_eq!(id.len(), "sha256:".len() + 64);
}

#[test]
fn the_id_of_the_till_is_kept_and_is_no_part_of_the_content() {
    let named = identified(&SALE.replacen('{', r#"{"event_id":"e-1","#, 1));
    assert_eq!(named.event.event_id.as_str(), "e-1");
    assert_eq!(named.content_hash, identified(SALE).content_hash);
}

#[test]
fn the_hash_of_a_stored_event_never_changes_from_version_to_version() {
    // Computed apart from this code, from the encoding as `Content::hash` describes it.
    let known = "560b9b606657acbf77cb1d96cf55b0adb9f2a3600f5183c3b65a12528091850d";
    assert_eq!(identified(SALE).content_hash.to_string(), known);
}
