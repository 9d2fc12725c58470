//! Example bodies for the API description: the worked example, as its last post leaves it.

use serde_json::{Value, json};

pub(super) const REQUEST_ID: &str = "6b1f4c9e-2f0a-4d5c-9a53-0d7f7f1f3f10";

/// An event of 1 October 2026.
pub(super) fn event(order_id: &str, status: &str, clock: &str, amount: &str) -> Value {
    json!({
        "event_id": format!("{order_id}-{status}"),
        "order_id": order_id,
        "status": status,
        "amount": amount,
        "event_time": format!("2026-10-01T{clock}Z"),
    })
}

/// The first post of the worked example, in part.
pub(super) fn events() -> Value {
    json!([
        event("1001", "placed", "09:05:00", "20.00"),
        event("1002", "placed", "09:20:00", "30.50"),
    ])
}

/// The same as NDJSON.
pub(super) fn lines() -> String {
    let events = events();
    events.as_array().into_iter().flatten().map(|event| format!("{event}\n")).collect()
}

/// An order of 1 October 2026, placed at a till that speaks CloudEvents.
pub(super) fn cloud_event(order_id: &str, clock: &str, amount: &str) -> Value {
    json!({
        "specversion": "1.0",
        "id": format!("{order_id}-placed"),
        "source": "till-7",
        "type": "com.example.order.placed",
        "time": format!("2026-10-01T{clock}Z"),
        "data": { "order_id": order_id, "status": "placed", "amount": amount },
    })
}

pub(super) fn cloud_events() -> Value {
    json!([cloud_event("1001", "09:05:00", "20.00"), cloud_event("1002", "09:20:00", "30.50")])
}

fn ingest(counts: [u8; 4], results: &Value) -> Value {
    let [accepted, duplicates, conflicts, rejected] = counts;
    json!({
        "accepted": accepted, "duplicates": duplicates, "conflicts": conflicts, "quarantined": 0,
        "rejected": rejected, "results": results,
    })
}

fn missing_amount(index: u8) -> Value {
    json!({
        "index": index, "event_id": "1003-placed", "status": "rejected", "seq": null,
        "errors": [{ "pointer": "/amount", "code": "missing", "detail": "`amount` is required" }],
    })
}

pub(super) fn ingest_accepted() -> Value {
    let duplicate =
        json!({ "index": 1, "event_id": "1002-placed", "status": "duplicate", "seq": 2 });
    ingest([1, 1, 0, 0], &json!([duplicate]))
}

pub(super) fn ingest_mixed() -> Value {
    ingest([2, 0, 0, 1], &json!([missing_amount(2)]))
}

pub(super) fn ingest_rejected() -> Value {
    ingest([0, 0, 0, 1], &json!([missing_amount(0)]))
}

pub(super) fn ingest_conflict() -> Value {
    let conflict = json!({
        "index": 0, "event_id": "1001-placed", "status": "conflict", "seq": 1,
        "detail": format!(
            "The event at seq 1 has this id and other content, and stays: the hash of its content is \
             {}, that of this one {}.", "3f".repeat(32), "a0".repeat(32)),
    });
    ingest([0, 0, 1, 0], &json!([conflict]))
}

/// The rule of `hourly_sales`.
pub(super) fn rule() -> Value {
    json!({
        "filter": { "status": ["placed"] },
        "window": { "kind": "tumbling", "size": "1 hour", "offset": "0 seconds" },
        "watermark_delay": "1 hour",
        "group_by": [],
        "deduplicate": null,
        "output_mode": "append",
        "trigger": { "kind": "continuous" },
        "max_events_per_batch": 100_000,
        "start": "earliest",
        "idle_timeout": null,
    })
}

pub(super) fn with(mut object: Value, members: Value) -> Value {
    if let (Some(object), Value::Object(members)) = (object.as_object_mut(), members) {
        object.extend(members);
    }
    object
}

pub(super) fn query() -> Value {
    let named = with(json!({ "name": "hourly_sales" }), rule());
    with(
        named,
        json!({
            "status": "running", "error": null, "watermark": "2026-10-01T11:40:00.000Z",
            "batch_id": 5, "position": 9, "lag_events": 0, "open_windows": 2, "state_bytes": 212, "poison_events": 0,
            "last_progress": entry_without_data(), "idle": true,
        }),
    )
}

pub(super) fn paused_query() -> Value {
    with(query(), json!({ "status": "paused" }))
}

pub(super) fn new_query() -> Value {
    with(
        query(),
        json!({
            "watermark": "1970-01-01T00:00:00.000Z", "batch_id": null, "position": 0, "lag_events": 9,
            "open_windows": 0, "state_bytes": 0, "last_progress": null, "idle": false,
        }),
    )
}

pub(super) fn queries() -> Value {
    json!({ "queries": [query()], "next_cursor": null })
}

pub(super) fn entry_with_data() -> Value {
    json!({
        "query": "hourly_sales", "batch_id": 4, "timestamp": "2026-10-01T12:40:02.118204Z",
        "events_in": 3, "late_events": 1, "duplicates": 0,
        "late_watermark": "2026-10-01T10:30:00.000Z", "watermark": "2026-10-01T10:30:00.000Z",
        "event_time": {
            "min": "2026-10-01T09:50:00Z", "max": "2026-10-01T12:40:00Z", "avg": "2026-10-01T11:05:00Z",
        },
        "rows_written": 0, "state": { "windows": 3, "updated": 2, "removed": 0 },
        "position": { "from": 6, "to": 9 },
        "duration_ms": { "read": 0.412, "compute": 0.021, "commit": 1.873, "total": 2.341 },
        "events_per_second": 1281.5, "closed_by": null,
    })
}

fn entry_without_data() -> Value {
    json!({
        "query": "hourly_sales", "batch_id": 5, "timestamp": "2026-10-01T12:40:02.121977Z",
        "events_in": 0, "late_events": 0, "duplicates": 0,
        "late_watermark": "2026-10-01T10:30:00.000Z", "watermark": "2026-10-01T11:40:00.000Z",
        "event_time": null,
        "rows_written": 1, "state": { "windows": 2, "updated": 1, "removed": 1 },
        "position": { "from": 9, "to": 9 },
        "duration_ms": { "read": 0.302, "compute": 0.009, "commit": 1.702, "total": 2.044 },
        "events_per_second": 0.0, "closed_by": "watermark",
    })
}

pub(super) fn progress() -> Value {
    json!({ "progress": [entry_without_data(), entry_with_data()], "next_cursor": null })
}

pub(super) fn run() -> Value {
    json!({ "progress": [entry_with_data(), entry_without_data()] })
}

fn figures(orders: i64, revenue: &str) -> Value {
    json!({ "orders": orders, "revenue": revenue })
}

pub(super) fn row() -> Value {
    json!({
        "start": "2026-10-01T09:00:00Z", "end": "2026-10-01T10:00:00Z", "currency": "USD",
        "orders": 3, "revenue": "68.50", "final": true, "batch_id": 3,
        "written_at": "2026-10-01T11:30:01.530118Z", "closed_by": "watermark",
        "late_since": figures(1, "22.00"),
    })
}

fn windows_with(row: &Value) -> Value {
    json!({
        "query": "hourly_sales", "watermark": "2026-10-01T11:40:00.000Z",
        "complete_through": "2026-10-01T11:00:00Z", "range": { "from": null, "to": null }, "rows": [row],
        "next_cursor": null,
    })
}

pub(super) fn windows() -> Value {
    windows_with(&row())
}

pub(super) fn hourly_sales() -> Value {
    windows_with(&with(json!({ "hour": "2026-10-01T09:00:00Z" }), row()))
}

/// The row of the worked example in a local day.
fn day() -> Value {
    let bounds = json!({
        "date": "2026-10-01", "start": "2026-09-30T23:00:00Z", "end": "2026-10-01T23:00:00Z",
        "from": "2026-09-30T23:00:00Z", "to": "2026-10-01T23:00:00Z", "partial": false,
    });
    let open = json!({ "final": false, "closed_by": null });
    with(with(row(), bounds), open)
}

pub(super) fn days() -> Value {
    windows_with(&day())
}

pub(super) fn dropped_events() -> Value {
    let event = with(
        event("1006", "placed", "09:50:00", "22.00"),
        json!({
            "currency": "USD", "customer_id": null, "store_id": null, "till_id": null,
            "item_count": null, "attributes": {},
        }),
    );
    json!({
        "query": "hourly_sales",
        "dropped_events": [{
            "seq": 7, "received_at": "2026-10-01T12:40:01.920417Z", "event": event, "reason": "late",
            "windows": [{ "start": "2026-10-01T09:00:00Z", "end": "2026-10-01T10:00:00Z" }],
            "watermark": "2026-10-01T10:30:00.000Z", "late_by": "100 minutes", "batch_id": 4,
        }],
        "next_cursor": null,
    })
}

/// What the last run of the worked example tells those who follow it.
pub(super) fn events_of_stream() -> String {
    let ten_o_clock = json!({
        "start": "2026-10-01T10:00:00Z", "end": "2026-10-01T11:00:00Z", "orders": 2, "revenue": "55.00",
        "batch_id": 5, "written_at": "2026-10-01T12:40:02.121977Z", "late_since": figures(0, "0.00"),
    });
    let windows = json!({
        "query": "hourly_sales", "batch_id": 5, "watermark": "2026-10-01T11:40:00.000Z",
        "complete_through": "2026-10-01T11:00:00Z", "rows": [with(row(), ten_o_clock)],
    });
    let late =
        json!({ "query": "hourly_sales", "dropped_events": dropped_events()["dropped_events"] });
    let event = |name: &str, batch: u8, data: &Value| {
        format!("event: {name}\nid: 1.1790845200000000.{batch}\ndata: {data}\n\n")
    };
    "retry: 1000\nid: 1.1790845200000000.3\n\n".to_owned()
        + &event("windows", 3, &windows)
        + &event("late", 3, &late)
        + &event("progress", 4, &entry_with_data())
        + &event("progress", 5, &entry_without_data())
}

fn other_parts() -> Value {
    let none = || figures(0, "0.00");
    json!({
        "open": none(), "waiting": none(), "repeats": none(), "duplicates": none(),
        "quarantined": none(), "corrections": none(),
    })
}

pub(super) fn reconciliation() -> Value {
    let sums = json!({
        "stream": figures(3, "68.50"), "recount": figures(4, "90.50"),
        "difference": figures(1, "22.00"),
    });
    let late = json!({ "orders": 1, "revenue": "22.00", "event_ids": ["1006-placed"] });
    let window = json!({
        "start": "2026-10-01T09:00:00Z", "end": "2026-10-01T10:00:00Z", "currency": "USD",
    });
    let line = with(with(window, sums.clone()), json!({ "late": late }));
    let line =
        with(with(line, other_parts()), json!({ "final": true, "status": "late", "findings": [] }));
    let totals = with(with(sums, json!({ "late": figures(1, "22.00") })), other_parts());
    json!({
        "query": "hourly_sales", "as_of": "2026-10-01T12:41:00.000512Z",
        "watermark": "2026-10-01T11:40:00.000Z", "complete_through": "2026-10-01T11:00:00Z",
        "range": { "from": null, "to": "2026-10-01T10:00:00Z" },
        "windows": [line], "totals": { "USD": totals }, "unexplained": 0, "findings": [],
    })
}

pub(super) fn limits() -> Value {
    json!({
        "request_events_max": 10_000, "body_bytes_max": 10_485_760, "event_bytes_max": 65_536,
        "queue_events_max": 100_000, "queue_bytes_max": 67_108_864,
        "max_future_skew": "15 minutes", "key_events_per_second": null, "list_limit_max": 1_000, "reports_max": 4, "streams_max": 256,
        "connections_max": 4_096,
        "header_timeout": "10 seconds", "body_timeout": "30 seconds", "request_timeout": "30 seconds",
    })
}

pub(super) fn explanation() -> Value {
    json!({
        "type": "/problems/no-such-query", "title": "There is no such query", "status": 404,
        "explanation": "No query has this name. `GET /v1/queries` lists those there are.",
    })
}
