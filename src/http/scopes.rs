//! Which address needs which scope. What is not in the table needs `admin`.

use axum::http::Method;

use crate::domain::Scope;

/// Who may ask at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// Everybody, without a key.
    Nothing,
    /// Every key that works.
    AnyKey,
    /// A key with this scope, or with `admin`.
    Scope(Scope),
}

/// What a key that is bound to stores gets to see at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    /// The same as others: nothing there belongs to a store.
    Same,
    /// What belongs to its stores; the handler sees to that.
    OwnStores,
    /// Nothing: what is there is of all stores together.
    Refused,
}

/// The rule of one address.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    method: &'static str,
    path: &'static str,
    /// Who may ask.
    pub(super) need: Need,
    /// What a bound key sees.
    pub(super) bound: Bound,
}

const fn rule(method: &'static str, path: &'static str, need: Need, bound: Bound) -> Rule {
    Rule { method, path, need, bound }
}

const WRITE: Need = Need::Scope(Scope::EventsWrite);
const READ: Need = Need::Scope(Scope::SalesRead);
const FINANCE: Need = Need::Scope(Scope::Finance);
const ADMIN: Need = Need::Scope(Scope::Admin);

// An address a line: wrapped, nobody would see the whole of it.
#[rustfmt::skip]
const RULES: &[Rule] = &[
    rule("POST", "/v1/events", WRITE, Bound::OwnStores),
    // A heartbeat names no store; like an event it moves the watermarks.
    rule("POST", "/v1/heartbeats", WRITE, Bound::Same),
    rule("GET", "/v1/events/{event_id}", READ, Bound::OwnStores),
    rule("GET", "/v1/quarantine", ADMIN, Bound::Refused),
    rule("POST", "/v1/quarantine/{event_id}", ADMIN, Bound::Refused),
    rule("GET", "/v1/queries", READ, Bound::OwnStores),
    rule("GET", "/v1/queries/{name}", READ, Bound::OwnStores),
    rule("PUT", "/v1/queries/{name}", ADMIN, Bound::Refused),
    rule("DELETE", "/v1/queries/{name}", ADMIN, Bound::Refused),
    rule("POST", "/v1/queries/{name}/pause", ADMIN, Bound::Refused),
    rule("POST", "/v1/queries/{name}/resume", ADMIN, Bound::Refused),
    rule("POST", "/v1/queries/{name}/reset", ADMIN, Bound::Refused),
    rule("POST", "/v1/queries/{name}/run", ADMIN, Bound::Refused),
    rule("GET", "/v1/queries/{name}/windows", READ, Bound::OwnStores),
    rule("GET", "/v1/hourly-sales", READ, Bound::OwnStores),
    // Of a micro-batch there are only sums over all stores.
    rule("GET", "/v1/queries/{name}/progress", READ, Bound::Refused),
    rule("GET", "/v1/progress", READ, Bound::Refused),
    rule("GET", "/v1/queries/{name}/dropped-events", READ, Bound::OwnStores),
    // Without progress, which is of all stores together.
    rule("GET", "/v1/stream", READ, Bound::OwnStores),
    rule("GET", "/v1/queries/{name}/reconciliation", FINANCE, Bound::OwnStores),
    rule("GET", "/v1/reconciliation", FINANCE, Bound::OwnStores),
    rule("GET", "/v1/queries/{name}/lateness", FINANCE, Bound::OwnStores),
    // The log is replayed for all stores at once: one watermark judges them all.
    rule("GET", "/v1/queries/{name}/delay-advice", FINANCE, Bound::Refused),
    rule("POST", "/v1/queries/{name}/corrections", FINANCE, Bound::OwnStores),
    rule("GET", "/v1/queries/{name}/corrections", FINANCE, Bound::OwnStores),
    // Entries are of queries and events, of whatever store.
    rule("GET", "/v1/audit", FINANCE, Bound::Refused),
    rule("GET", "/v1/keys", ADMIN, Bound::Refused),
    rule("POST", "/v1/keys", ADMIN, Bound::Refused),
    rule("DELETE", "/v1/keys/{key_id}", ADMIN, Bound::Refused),
    rule("POST", "/v1/keys/{key_id}/rotate", ADMIN, Bound::Refused),
    rule("GET", "/v1/version", Need::AnyKey, Bound::Same),
    rule("GET", "/v1/limits", Need::AnyKey, Bound::Same),
    rule("GET", "/livez", Need::Nothing, Bound::Same),
    rule("GET", "/readyz", Need::Nothing, Bound::Same),
    // What is counted there is of all stores.
    rule("GET", "/metrics", READ, Bound::Refused),
    rule("GET", "/openapi.json", Need::Nothing, Bound::Same),
    rule("GET", "/problems/{name}", Need::Nothing, Bound::Same),
];

impl Rule {
    /// What holds where the table says nothing.
    const DENIED: Self = rule("", "", ADMIN, Bound::Refused);
    const OPEN: Self = rule("", "", Need::Nothing, Bound::Same);

    /// The rule of an address, by its path as the router knows it. `HEAD` is a `GET`.
    pub(super) fn of(method: &Method, path: &str) -> Self {
        // The pages of the description, which are in no description.
        if matches!(path, "/docs" | "/docs/" | "/docs/{*rest}") {
            return Self::OPEN;
        }
        let method = if method == Method::HEAD { "GET" } else { method.as_str() };
        Self::of_operation(method, path)
    }

    /// The rule of an operation of the description.
    pub(super) fn of_operation(method: &str, path: &str) -> Self {
        Self::written(method, path).unwrap_or(Self::DENIED)
    }

    fn written(method: &str, path: &str) -> Option<Self> {
        RULES.iter().find(|rule| rule.method == method && rule.path == path).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses() -> Vec<(String, String)> {
        let api: serde_json::Value =
            serde_json::from_str(&super::super::openapi_json()).expect("JSON");
        let paths = api["paths"].as_object().expect("paths").iter();
        let addresses = paths.flat_map(|(path, methods)| {
            let methods = methods.as_object().expect("operations").keys();
            methods.map(move |method| (method.to_uppercase(), path.clone()))
        });
        addresses.collect()
    }

    #[test]
    fn every_address_has_a_rule_and_every_rule_an_address() {
        let addresses = addresses();
        for (method, path) in &addresses {
            assert!(Rule::written(method, path).is_some(), "no rule for {method} {path}");
        }
        for Rule { method, path, .. } in RULES {
            let is_there = addresses.iter().any(|(m, p)| m == method && p == path);
            assert!(is_there, "nothing at {method} {path}");
        }
    }

    #[test]
    fn what_is_not_in_the_table_is_for_admins() {
        for (method, path, need) in [
            (Method::HEAD, "/v1/hourly-sales", READ),
            (Method::PATCH, "/v1/hourly-sales", ADMIN),
            (Method::GET, "/v1/secrets", ADMIN),
        ] {
            assert_eq!(Rule::of(&method, path).need, need, "{method} {path}");
        }
    }
}
