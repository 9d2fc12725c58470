//! Example bodies for keys. None of them works anywhere.

use serde_json::{Value, json};

use super::examples::with;

pub(super) fn new_key() -> Value {
    json!({
        "name": "tills of Porto", "scopes": ["events:write"], "store_ids": ["S1"],
        "expires": "365 days",
    })
}

pub(super) fn new_admin_key() -> Value {
    json!({ "name": "head office", "scopes": ["admin"] })
}

fn key() -> Value {
    json!({
        "key_id": "5f0c9a1be27d", "name": "tills of Porto", "scopes": ["events:write"],
        "store_ids": ["S1"], "status": "live", "created_at": "2026-10-01T08:00:00.118204Z",
        "expires_at": "2027-10-01T08:00:00.118204Z", "last_used_at": null, "revoked_at": null,
        "rotated_from": null,
    })
}

fn second_key() -> Value {
    let new = json!({ "key_id": "a81c44f09b3e", "rotated_from": "5f0c9a1be27d" });
    with(key(), new)
}

fn whole(key: Value, secret_digit: &str) -> Value {
    let id = key["key_id"].as_str().unwrap_or_default();
    let text = format!("tm_{id}_{}", secret_digit.repeat(64));
    with(key, json!({ "key": text }))
}

pub(super) fn made_key() -> Value {
    whole(key(), "0")
}

pub(super) fn rotated_key() -> Value {
    whole(second_key(), "1")
}

pub(super) fn keys() -> Value {
    let used = json!({ "last_used_at": "2026-10-01T12:40:01.920417Z" });
    json!({ "keys": [with(key(), used), second_key()], "next_cursor": null })
}
