use super::*;

const SALE: &str = r#"{"order_id":"1001","status":"placed","amount":20.00,"item_count":2,
    "event_time":"2026-10-01T09:05:00Z","attributes":{"a":"\u00e9","b":"é"}}"#;

fn defaults() -> EventDefaults {
    EventDefaults { currency: "USD".parse().expect("a currency") }
}

#[test]
fn a_bad_item_costs_nobody_but_itself() {
    let bad = r#"{"order_id":"\ud800","a":1e999,"a":[[[]]]}"#;
    let body = format!("[{SALE},{bad},{SALE}]");
    let limits = BodyLimits::default();
    let items = json_items(body.as_bytes(), &limits).expect("a list");
    let taken = items.iter().map(|item| event(item, &defaults(), &limits).is_ok());
    assert_eq!(taken.collect::<Vec<_>>(), [true, false, true]);
}

/// Changes one to three places of `body`.
fn damage(body: &mut Vec<u8>, random: &mut fastrand::Rng) {
    for _ in 0..random.usize(1..4) {
        let (at, other) = (random.usize(..body.len()), random.usize(..body.len()));
        match random.u8(..4) {
            0 => body[at] = random.u8(..),
            1 => body[at] = body[other],
            2 => drop(body.drain(at.min(other)..at.max(other))),
            _ => body.insert(at, b"{}[]\",:\\-0e.nu"[random.usize(..14)]),
        }
    }
}

#[test]
fn no_damage_to_a_body_causes_a_panic_or_a_refusal_without_a_reason() {
    let body = format!("{{\"events\":[{SALE},{}]}}", SALE.replace(r#""1001""#, "-5"));
    let limits = BodyLimits { events_max: 3, event_bytes_max: 400 };
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..20_000 {
        let mut damaged = body.clone().into_bytes();
        damage(&mut damaged, &mut random);
        for item in json_items(&damaged, &limits).unwrap_or_default() {
            if let Err(refused) = event(&item, &defaults(), &limits) {
                assert!(!refused.faults.is_empty(), "{}", item.text());
            }
        }
    }
}
