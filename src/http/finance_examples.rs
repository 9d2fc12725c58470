//! Example bodies of the finance reports on delays, after the worked example.

use serde_json::{Value, json};

fn duration(text: &str, ms: i64) -> Value {
    json!({ "duration": text, "ms": ms })
}

/// The worked example under two delays.
pub(super) fn delay_advice() -> Value {
    let late = json!({
        "USD": { "orders": 1, "revenue": "22.00", "missing": { "orders": 1, "revenue": "22.00" } },
    });
    json!({
        "query": "hourly_sales", "current_delay": duration("1 hour", 3_600_000),
        "cuts": "batches", "position": { "from": 0, "to": 9 }, "target": "99.9%",
        "advised_delay": "2 hours",
        "delays": [{
            "delay": duration("1 hour", 3_600_000), "batches": 6, "events_in": 8, "late_events": 1,
            "duplicates": 0, "rows_written": 2, "late": late, "share_counted": "87.5%", "reaches_target": false,
            "closed": {
                "windows": 2, "median": duration("90 minutes", 5_400_000), "median_resolution_ms": 1,
                "worst": duration("100 minutes", 6_000_000),
            },
            "state_windows_max": 3, "remembered_keys_max": 0,
        }, {
            "delay": duration("2 hours", 7_200_000), "batches": 6, "events_in": 8, "late_events": 0,
            "duplicates": 0, "rows_written": 1, "late": {}, "share_counted": "100%", "reaches_target": true,
            "closed": {
                "windows": 1, "median": duration("160 minutes", 9_600_000), "median_resolution_ms": 1,
                "worst": duration("160 minutes", 9_600_000),
            },
            "state_windows_max": 4, "remembered_keys_max": 0,
        }],
    })
}

fn distribution(longest: &Value) -> Value {
    let bounds = [
        ("0 seconds", 0),
        ("1 second", 1_000),
        ("10 seconds", 10_000),
        ("1 minute", 60_000),
        ("5 minutes", 300_000),
        ("15 minutes", 900_000),
        ("1 hour", 3_600_000),
        ("6 hours", 21_600_000),
        ("1 day", 86_400_000),
        ("7 days", 604_800_000),
    ];
    let longest_ms = longest["ms"].as_i64().unwrap_or_default();
    let mut counts = bounds.map(|(_, ms)| i64::from(ms == 0) * 7);
    if let Some(at) = bounds.iter().position(|(_, ms)| longest_ms <= *ms) {
        counts[at] += 1;
    }
    let buckets = bounds.iter().zip(counts);
    let mut histogram: Vec<Value> = buckets
        .map(|((text, ms), count)| json!({ "up_to": duration(text, *ms), "count": count }))
        .collect();
    histogram.push(json!({ "up_to": null, "count": 0 }));
    json!({
        "count": 8, "p50": duration("0 seconds", 0), "p90": longest, "p99": longest,
        "p99.9": longest, "p99.99": longest, "max": longest, "histogram": histogram,
    })
}

/// The worked example, each event received as it happened but for the one that was late.
pub(super) fn lateness() -> Value {
    let both = json!({
        "receipt_delay": distribution(&duration("170 minutes", 10_200_000)),
        "disorder": distribution(&duration("100 minutes", 6_000_000)),
        "released_from_quarantine": 0,
    });
    let mut source = json!({ "store_id": "S1", "till_id": null });
    if let (Some(source), Value::Object(both)) = (source.as_object_mut(), both.clone()) {
        source.extend(both);
    }
    json!({
        "query": "hourly_sales", "by": "store_id", "total": both, "sources": [source],
        "sources_count": 1,
        "newest": [{
            "heartbeats_of": null, "store_id": "S1", "till_id": null,
            "event_time": "2026-10-01T12:40:00Z", "received_at": "2026-10-01T12:40:01.920417Z",
        }],
    })
}
