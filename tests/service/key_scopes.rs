//! Every address of the API description against every scope.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::{TestDatabase, TestService, a_sale};

pub(super) const SCOPES: [&str; 4] = ["events:write", "sales:read", "finance", "admin"];

/// What a key that is bound to stores may do at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    /// What other keys may.
    Same,
    /// What concerns its stores, of queries that tell stores apart.
    Own,
    /// Nothing.
    Refused,
}

/// Which scope an address needs, `any` key or none at all (`open`), and what a bound key may do there.
/// Written down anew here, for the service's own table would agree with itself; an address without a
/// line fails.
pub(super) fn need_of(method: &str, path: &str) -> (&'static str, Bound) {
    let query = path.strip_prefix("/v1/queries/{name}").unwrap_or(path);
    match (method, query) {
        ("get", "/livez" | "/readyz" | "/openapi.json" | "/problems/{name}") => {
            ("open", Bound::Same)
        }
        ("get", "/v1/version" | "/v1/limits") => ("any", Bound::Same),
        ("post", "/v1/events") => ("events:write", Bound::Own),
        ("post", "/v1/heartbeats") => ("events:write", Bound::Same),
        ("get", "/v1/events/{event_id}" | "/v1/queries" | "") => ("sales:read", Bound::Own),
        ("get", "/windows" | "/v1/hourly-sales" | "/dropped-events" | "/v1/stream") => {
            ("sales:read", Bound::Own)
        }
        ("get", "/progress" | "/v1/progress" | "/metrics") => ("sales:read", Bound::Refused),
        ("get", "/reconciliation" | "/v1/reconciliation") => ("finance", Bound::Own),
        ("get", "/lateness" | "/corrections") => ("finance", Bound::Own),
        ("post", "/corrections") => ("finance", Bound::Own),
        ("get", "/delay-advice" | "/v1/audit") => ("finance", Bound::Refused),
        ("put" | "delete", "") => ("admin", Bound::Refused),
        ("post", "/pause" | "/resume" | "/reset" | "/run") => ("admin", Bound::Refused),
        ("get", "/v1/quarantine" | "/v1/keys") => ("admin", Bound::Refused),
        ("post", "/v1/quarantine/{event_id}" | "/v1/keys") => ("admin", Bound::Refused),
        ("delete", "/v1/keys/{key_id}") => ("admin", Bound::Refused),
        ("post", "/v1/keys/{key_id}/rotate") => ("admin", Bound::Refused),
        _ => panic!("{method} {path} has no line here: who may ask there?"),
    }
}

/// Every method and path of the API description.
pub(super) fn operations() -> Vec<(String, String)> {
    let api: Value = serde_json::from_str(&tillmark::http::openapi_json()).unwrap();
    let paths = api["paths"].as_object().unwrap().iter();
    let operations = paths.flat_map(|(path, operations)| {
        operations.as_object().unwrap().keys().map(move |method| (method.clone(), path.clone()))
    });
    operations.collect()
}

/// A key of every scope, bound to S1 and not bound.
pub(super) struct Keys(BTreeMap<(&'static str, bool), String>);

impl Keys {
    pub(super) async fn make(service: &TestService) -> Self {
        let make = async |maker: &str, scope: &str, stores: Option<[&str; 1]>| {
            let what = json!({ "name": scope, "scopes": [scope], "store_ids": stores });
            let made = service.ask_as(maker, "post", "/v1/keys", what).await;
            assert_eq!(made.status, 201, "{}", made.body);
            made.body["key"].as_str().unwrap().to_owned()
        };
        let admin = make("", "admin", None).await;
        let mut keys = BTreeMap::new();
        for scope in SCOPES.into_iter().filter(|scope| *scope != "admin") {
            keys.insert((scope, false), make(&admin, scope, None).await);
            keys.insert((scope, true), make(&admin, scope, Some(["S1"])).await);
        }
        keys.insert(("admin", false), admin);
        Self(keys)
    }

    pub(super) fn of(&self, scope: &'static str, is_bound: bool) -> &str {
        &self.0[&(scope, is_bound)]
    }
}

/// A sale of a store, whose customer is called after it.
pub(super) fn sale_of(store: Option<&str>, id: &str, clock: &str, amount: &str) -> Value {
    let mut sale = a_sale(id, clock, amount);
    sale["store_id"] = json!(store);
    sale
}

/// A service with sales of S1, called `own…`, and of S2, called `other…`: counted, late, booked and
/// waiting in quarantine.
pub(super) async fn service_with_two_stores(database: &TestDatabase) -> TestService {
    let service = TestService::start(database).await;
    let by_store = json!({
        "window": { "kind": "tumbling", "size": "1 hour" }, "watermark_delay": "1 hour",
        "group_by": ["store_id"], "output_mode": "update",
    });
    assert_eq!(service.put("/v1/queries/by_store", by_store).await.status, 201);
    let both = |name: &str, clock: &str| {
        let own = sale_of(Some("S1"), &format!("own{name}"), clock, "20.00");
        [own, sale_of(Some("S2"), &format!("other{name}"), clock, "31.07")]
    };
    let read = async || {
        service.run("by_store").await;
        service.wait_until_idle("by_store").await;
    };
    service.post_events(&both("", "09:05:00")).await;
    service.post_events(&both("-new", "12:05:00")).await;
    read().await;
    // Too late by now, one of each.
    service.post_events(&both("-late", "09:10:00")).await;
    read().await;
    let booking = json!({ "windows": "all", "note": "counted by hand", "booked_by": "finance" });
    let booked = service.post("/v1/queries/by_store/corrections", booking).await;
    assert_eq!(booked.body["booked"], 2, "{}", booked.body);
    service.post_events(&both("-later", "09:15:00")).await;
    read().await;
    let mut ahead = both("-ahead", "09:05:00");
    for sale in &mut ahead {
        sale["event_time"] = json!("2150-01-01T00:00:00Z");
    }
    assert_eq!(service.post("/v1/events", json!(ahead)).await.body["quarantined"], 2);
    service
        .post(
            "/v1/heartbeats",
            json!({ "source": "other-till", "event_time": "2026-10-01T12:00:00Z" }),
        )
        .await;
    service
}

/// The address with its parts filled in: what is there for reading, what is not for changing.
pub(super) fn filled_in(method: &str, path: &str) -> String {
    let query = if method == "get" { "by_store" } else { "none" };
    let name = if path.starts_with("/problems") { "not-found" } else { query };
    let filled = path.replace("{name}", name).replace("{event_id}", "own-placed");
    let filled = filled.replace("{key_id}", "ffffffffffff");
    match path {
        "/v1/hourly-sales" | "/v1/reconciliation" | "/v1/stream" => {
            format!("{filled}?query=by_store")
        }
        _ => filled,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_address_lets_in_the_scopes_that_it_needs_and_no_other() {
    let database = TestDatabase::create().await;
    let service = service_with_two_stores(&database).await;
    let keys = Keys::make(&service).await;
    let mut asked = 0;
    for (method, path) in operations() {
        let ((need, bound), address) = (need_of(&method, &path), filled_in(&method, &path));
        let body = if method == "get" { Value::Null } else { json!({}) };
        let nobody = service.ask_as("", &method, &address, body.clone()).await;
        assert_eq!(nobody.status == 401, need != "open", "{method} {address}: {}", nobody.body);
        for ((scope, is_bound), key) in &keys.0 {
            let answer = service.ask_as(key, &method, &address, body.clone()).await;
            let has_scope = need == "open" || need == "any" || need == *scope || *scope == "admin";
            let is_let_in = has_scope && (!is_bound || bound != Bound::Refused);
            let case =
                format!("{method} {address} with {scope}, bound: {is_bound}: {}", answer.body);
            assert_eq!(answer.status != 403, is_let_in, "{case}");
            assert_ne!(answer.status, 401, "{case}");
            assert!(answer.status < 500, "{case}");
            if method == "get" && is_let_in {
                assert_eq!(answer.status, 200, "{case}");
            }
            let problem = &answer.body["type"];
            if !has_scope {
                assert_eq!(problem, "/problems/missing-scope", "{case}");
                let challenge = answer.header("www-authenticate");
                assert!(challenge.contains(&format!("scope=\"{need}\"")), "{case}: {challenge}");
            } else if !is_let_in {
                assert_eq!(problem, "/problems/other-stores", "{case}");
            }
            asked += 1;
        }
    }
    assert!(asked > 30 * 7, "{asked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_address_needs_no_key_and_a_method_that_is_not_taken_needs_admin() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let keys = Keys::make(&service).await;
    for (method, path, status) in [
        ("GET", "/docs/", 200),
        ("GET", "/docs/swagger-ui.css", 200),
        ("GET", "/v1/nowhere", 404),
        ("PATCH", "/v1/events", 401),
        ("OPTIONS", "/v1/events", 401),
        ("HEAD", "/v1/hourly-sales", 401),
    ] {
        let answer = service.ask_as("", method, path, Value::Null).await;
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.body);
    }
    for (scope, method, status) in
        [("events:write", "PATCH", 403), ("admin", "PATCH", 405), ("sales:read", "HEAD", 200)]
    {
        let path = "/v1/hourly-sales";
        let answer = service.ask_as(keys.of(scope, false), method, path, Value::Null).await;
        assert_eq!(answer.status, status, "{method} with {scope}: {}", answer.body);
    }
}
