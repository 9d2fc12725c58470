//! Examples of corrections and the audit trail: the worked example, its late event booked.

use serde_json::{Value, json};

pub(super) fn booking_of_all() -> Value {
    json!({ "windows": "all", "note": "Till 7 was offline", "booked_by": "finance" })
}

pub(super) fn booking_of_one() -> Value {
    json!({
        "windows": [{ "start": "2026-10-01T09:00:00Z", "end": "2026-10-01T10:00:00Z", "currency": "USD" }],
        "note": "Till 7 was offline", "booked_by": "finance",
    })
}

fn one() -> Value {
    json!({ "orders": 1, "revenue": "22.00" })
}

pub(super) fn booked() -> Value {
    json!({
        "query": "hourly_sales", "booked": 1, "first_number": 1, "last_number": 1,
        "totals": { "USD": one() },
    })
}

pub(super) fn nothing_booked() -> Value {
    json!({
        "query": "hourly_sales", "booked": 0, "first_number": null, "last_number": null, "totals": {},
    })
}

pub(super) fn corrections() -> Value {
    json!({
        "query": "hourly_sales",
        "corrections": [{
            "number": 1, "start": "2026-10-01T09:00:00Z", "end": "2026-10-01T10:00:00Z",
            "currency": "USD", "before": { "orders": 3, "revenue": "68.50" },
            "after": { "orders": 4, "revenue": "90.50" }, "difference": one(),
            "event_ids": ["1006-placed"], "note": "Till 7 was offline", "booked_by": "finance",
            "booked_at": "2026-10-05T08:12:40.118204Z",
        }],
        "next_cursor": null,
    })
}

pub(super) fn audit() -> Value {
    json!({
        "audit": [{
            "number": 1, "at": "2026-10-05T08:12:40.120112Z", "action": "corrections_booked",
            "query": "hourly_sales", "event_id": null, "done_by": "finance", "key_id": null, "note": "Till 7 was offline",
            "details": { "numbers": { "first": 1, "last": 1 }, "totals": { "USD": one() } },
        }],
        "next_cursor": null,
    })
}
