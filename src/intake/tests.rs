use super::*;

const SALE: &str = r#"{"order_id":"1001","status":"placed","amount":20.00,"item_count":2,
    "event_time":"2026-10-01T09:05:00Z","attributes":{"a":"\u00e9","b":"é"}}"#;

fn defaults() -> EventDefaults {
    EventDefaults { currency: "USD".parse().expect("a currency") }
}

fn outcomes(body: &[u8], format: BodyFormat, limits: &BodyLimits) -> Vec<CheckedItem> {
    events(body, format, &defaults(), limits).unwrap_or_default()
}

#[test]
fn a_bad_item_costs_nobody_but_itself() {
    let bad = r#"{"order_id":"\ud800","a":1e999,"a":[[[]]]}"#;
    let line = SALE.replace('\n', "");
    for (format, body) in [
        (BodyFormat::Json, format!("[{SALE},{bad},{SALE}]")),
        (BodyFormat::NdJson, format!("{line}\n{bad}\r\n{line}\n")),
        (BodyFormat::NdJson, format!("{line}\n{{\n{line}")),
        (BodyFormat::CloudEventBatch, format!("[{0},{bad},{0}]", cloud_event())),
    ] {
        let items = outcomes(body.as_bytes(), format, &BodyLimits::default());
        let taken: Vec<_> = items.iter().map(|item| (item.index, item.outcome.is_ok())).collect();
        assert_eq!(taken, [(0, true), (1, false), (2, true)], "{body}");
    }
}

fn cloud_event() -> String {
    format!(r#"{{"specversion":"1.0","id":"e-1","source":"till-7","type":"sale","data":{SALE}}}"#)
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
    let (line, other) = (SALE.replace('\n', ""), SALE.replace(r#""1001""#, "-5"));
    let limits = BodyLimits { events_max: 3, event_bytes_max: 400 };
    let mut random = fastrand::Rng::with_seed(7);
    for (format, body) in [
        (BodyFormat::Json, format!("{{\"events\":[{SALE},{other}]}}")),
        (BodyFormat::NdJson, format!("{line}\n{line}\r\n\n{line}\n")),
        (BodyFormat::CloudEvent, cloud_event()),
        (BodyFormat::CloudEventBatch, format!("[{0},{0}]", cloud_event())),
    ] {
        for _ in 0..10_000 {
            let mut damaged = body.clone().into_bytes();
            damage(&mut damaged, &mut random);
            for item in outcomes(&damaged, format, &limits) {
                if let Err(refused) = item.outcome {
                    assert!(!refused.faults.is_empty(), "{}", String::from_utf8_lossy(&damaged));
                }
            }
        }
    }
}
