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
