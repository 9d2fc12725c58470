//! A log that makes a query of any kind do everything that a commit can hold.

use serde_json::{Value, json};

use super::a_sale;

/// Records of one micro-batch.
pub const BATCH_EVENTS_MAX: u32 = 8;

/// Sales as `order clock store`, one micro-batch a line; after each stage the query runs until
/// nothing is left.
///
/// Order 1 comes again while it is remembered, and again after it was forgotten. 09:50 and 09:30 come
/// late. 10:30 comes while its hour is open for it and closed by the same batch; in store B it makes
/// one session of two. The watermark stays half an hour behind.
const STAGES: [&[&str]; 2] = [
    &["1 09:05 A, 2 09:20 B, 3 09:40 A, 1 09:05 A, 4 10:20 A, 5 09:55 B, 6 10:25 B, 7 10:40 A"],
    &[
        // Nothing of this passes the filter.
        "",
        "8 09:50 A, 9 10:45 A, 4 10:20 A, 10 11:10 B, 11 11:40 A, 12 10:50 B, 13 12:10 A, 14 11:15 B",
        "15 10:30 B, 16 09:30 A, 1 11:50 A, 17 12:20 A, 18 12:30 B, 19 12:45 A, 20 13:00 A, 21 12:05 B",
    ],
];

/// The events, stage by stage.
pub fn stages() -> Vec<Vec<Value>> {
    let mut number = 0;
    let mut batch = |text: &&str| -> Vec<Value> {
        let sales = text.split(", ").filter(|sale| !sale.is_empty());
        let mut sales: Vec<Value> = sales.map(sale).collect();
        while sales.len() < BATCH_EVENTS_MAX as usize {
            sales.push(sale("0 23:00 A"));
            sales.last_mut().unwrap()["status"] = "paid".into();
        }
        for sale in &mut sales {
            number += 1;
            sale["event_id"] = format!("event-{number}").into();
        }
        sales
    };
    STAGES.iter().map(|stage| stage.iter().flat_map(&mut batch).collect()).collect()
}

fn sale(text: &str) -> Value {
    let mut words = text.split(' ');
    let [order, clock, store] = [(); 3].map(|()| words.next().unwrap());
    let mut sale = a_sale(order, &format!("{clock}:00"), &format!("{order}.25"));
    sale["store_id"] = store.into();
    sale
}

/// A query that only runs when asked.
pub fn rule(window: &Value, output_mode: &str) -> Value {
    json!({
        "filter": {"status": ["placed"]}, "window": window, "watermark_delay": "30 minutes",
        "group_by": ["store_id"], "output_mode": output_mode, "trigger": {"kind": "manual"},
        "max_events_per_batch": BATCH_EVENTS_MAX,
    })
}

/// Windows of an hour.
pub fn hours() -> Value {
    json!({"kind": "tumbling", "size": "1 hour"})
}
