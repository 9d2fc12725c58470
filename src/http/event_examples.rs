//! Example bodies around single events: heartbeats, the quarantine, receipts.

use serde_json::{Value, json};

use super::examples::{event, with};

pub(super) fn heartbeat() -> Value {
    json!({ "source": "till-7", "event_time": "2026-10-01T12:40:00Z" })
}

pub(super) fn heartbeat_stored() -> Value {
    with(heartbeat(), json!({ "seq": 10 }))
}

pub(super) fn release() -> Value {
    json!({
        "action": "release", "event_time": "2026-10-01T12:50:00Z",
        "note": "the clock of till 7 was a day ahead",
    })
}

pub(super) fn reject() -> Value {
    json!({ "action": "reject", "note": "a test of the installer" })
}

/// An event as it is answered, defaults filled in.
fn whole_event(order_id: &str, clock: &str, amount: &str) -> Value {
    with(
        event(order_id, "placed", clock, amount),
        json!({
            "currency": "USD", "customer_id": null, "store_id": null, "till_id": null,
            "item_count": null, "attributes": {},
        }),
    )
}

fn from_the_future() -> Value {
    with(whole_event("1009", "12:50:00", "9.00"), json!({ "event_time": "2026-10-02T12:50:00Z" }))
}

fn waiting() -> Value {
    json!({
        "event": from_the_future(), "received_at": "2026-10-01T12:50:01.204711Z",
        "reason": "its event_time was more than 15 minutes ahead of the database's clock, \
                   2026-10-01T12:50:01.204711Z",
        "resolution": null,
    })
}

pub(super) fn quarantine() -> Value {
    json!({ "quarantine": [waiting()], "next_cursor": null })
}

pub(super) fn released() -> Value {
    let resolution = json!({
        "action": "release", "resolved_at": "2026-10-01T13:05:40.118204Z",
        "note": "the clock of till 7 was a day ahead", "event_time": "2026-10-01T12:50:00Z",
        "seq": 11,
    });
    with(waiting(), json!({ "resolution": resolution }))
}

fn hour(start: &str, end: &str) -> Value {
    json!({ "start": format!("2026-10-01T{start}:00Z"), "end": format!("2026-10-01T{end}:00Z") })
}

/// Of order 1006 of the worked example.
pub(super) fn receipt() -> Value {
    json!({
        "event": whole_event("1006", "09:50:00", "22.00"),
        "received_at": "2026-10-01T12:40:01.920417Z", "seq": 7, "quarantine": null,
        "queries": [{
            "query": "hourly_sales", "outcome": "late", "windows": [],
            "missed_windows": [hour("09:00", "10:00")], "batch_id": 4,
            "reason": "late: the 09:00–10:00 window was closed at 10:30 by order 1005 of 11:30",
        }],
    })
}
