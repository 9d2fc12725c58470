//! Every address of the API description against every scope, and against other stores' data.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::{Answer, TestDatabase, TestService, a_sale};

const SCOPES: [&str; 4] = ["events:write", "sales:read", "finance", "admin"];

/// Which scope an address needs; `any` key; or `open`. Written down anew here: the service's own table
/// would agree with itself.
fn need_of(method: &str, path: &str) -> &'static str {
    match (method, path) {
        (_, "/livez" | "/readyz" | "/openapi.json" | "/problems/{name}" | "/metrics") => "open",
        (_, "/v1/version" | "/v1/limits") => "any",
        ("post", "/v1/events" | "/v1/heartbeats") => "events:write",
        (_, path) if path.ends_with("reconciliation") => "finance",
        (_, path) if path.starts_with("/v1/quarantine") || path.starts_with("/v1/keys") => "admin",
        ("get", _) => "sales:read",
        _ => "admin",
    }
}

/// Whether a key that is bound to stores may ask there, of a query that tells stores apart.
fn is_for_bound_keys(path: &str) -> bool {
    !path.ends_with("/progress")
}

struct Keys(BTreeMap<(&'static str, bool), String>);

async fn ask(service: &TestService, key: &str, method: &str, path: &str, body: Value) -> Answer {
    let method = method.to_uppercase().parse().unwrap();
    let mut request = service.client.request(method, service.url(path));
    if !key.is_empty() {
        request = request.bearer_auth(key);
    }
    Answer::of(if body.is_null() { request } else { request.json(&body) }).await
}

/// A key of every scope, bound to S1 and not bound.
async fn make_keys(service: &TestService) -> Keys {
    let make = async |maker: &str, scope: &str, stores: Option<&str>| {
        let stores = stores.map(|store| vec![store]);
        let what = json!({ "name": scope, "scopes": [scope], "store_ids": stores });
        let made = ask(service, maker, "post", "/v1/keys", what).await;
        assert_eq!(made.status, 201, "{}", made.body);
        made.body["key"].as_str().unwrap().to_owned()
    };
    let admin = make("", "admin", None).await;
    let mut keys = BTreeMap::new();
    for scope in SCOPES.into_iter().filter(|scope| *scope != "admin") {
        keys.insert((scope, false), make(&admin, scope, None).await);
        keys.insert((scope, true), make(&admin, scope, Some("S1")).await);
    }
    keys.insert(("admin", false), admin);
    Keys(keys)
}

impl Keys {
    fn of(&self, scope: &'static str, is_bound: bool) -> &str {
        &self.0[&(scope, is_bound)]
    }
}

async fn service_with_two_stores(database: &TestDatabase) -> TestService {
    let service = TestService::start(database).await;
    let by_store = json!({
        "window": { "kind": "tumbling", "size": "1 hour" }, "watermark_delay": "1 hour",
        "group_by": ["store_id"], "output_mode": "update",
    });
    assert_eq!(service.put("/v1/queries/by_store", by_store).await.status, 201);
    let sale = |id: &str, store: &str, clock: &str| {
        let mut sale = a_sale(id, clock, "20.00");
        sale["store_id"] = json!(store);
        sale
    };
    service.post_events(&[sale("own", "S1", "09:05:00"), sale("other", "S2", "09:05:00")]).await;
    service.post_events(&[sale("own-new", "S1", "12:05:00")]).await;
    service.run("by_store").await;
    service.wait_until_idle("by_store").await;
    // Too late by now, one of each.
    service
        .post_events(&[sale("own-late", "S1", "09:10:00"), sale("other-late", "S2", "09:10:00")])
        .await;
    service.run("by_store").await;
    service.wait_until_idle("by_store").await;
    service
}

fn operations() -> Vec<(String, String)> {
    let api: Value = serde_json::from_str(&tillmark::http::openapi_json()).unwrap();
    let paths = api["paths"].as_object().unwrap().iter();
    let operations = paths.flat_map(|(path, operations)| {
        operations.as_object().unwrap().keys().map(move |method| (method.clone(), path.clone()))
    });
    operations.collect()
}

/// The address with its parts filled in: what is there for reading, what is not for changing.
fn filled_in(method: &str, path: &str) -> String {
    let query = if method == "get" { "by_store" } else { "none" };
    let problem = if path.starts_with("/problems") { "not-found" } else { query };
    let filled = path.replace("{name}", problem).replace("{event_id}", "own-placed");
    let filled = filled.replace("{key_id}", "ffffffffffff");
    match path {
        "/v1/hourly-sales" | "/v1/reconciliation" => format!("{filled}?query=by_store"),
        _ => filled,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_address_lets_in_the_scopes_that_it_needs_and_no_other() {
    let database = TestDatabase::create().await;
    let service = service_with_two_stores(&database).await;
    let keys = make_keys(&service).await;
    let mut asked = 0;
    for (method, path) in operations() {
        let (need, address) = (need_of(&method, &path), filled_in(&method, &path));
        let body = if method == "get" { Value::Null } else { json!({}) };
        let nobody = ask(&service, "", &method, &address, body.clone()).await;
        assert_eq!(nobody.status == 401, need != "open", "{method} {address}: {}", nobody.body);
        for ((scope, is_bound), key) in &keys.0 {
            let answer = ask(&service, key, &method, &address, body.clone()).await;
            let has_scope = need == "open" || need == "any" || need == *scope || *scope == "admin";
            let is_let_in = has_scope && (!is_bound || is_for_bound_keys(&path));
            let case =
                format!("{method} {address} with {scope}, bound: {is_bound}: {}", answer.body);
            assert_eq!(answer.status != 403, is_let_in, "{case}");
            assert_ne!(answer.status, 401, "{case}");
            assert!(answer.status < 500, "{case}");
            if method == "get" && is_let_in {
                assert_eq!(answer.status, 200, "{case}");
            }
            if !has_scope {
                assert_eq!(answer.body["type"], "/problems/missing-scope", "{case}");
                let challenge = answer.header("www-authenticate");
                assert!(challenge.contains(&format!("scope=\"{need}\"")), "{case}: {challenge}");
            }
            asked += 1;
        }
    }
    assert!(asked > 25 * 7, "{asked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bound_key_sees_nothing_of_other_stores() {
    let database = TestDatabase::create().await;
    let service = service_with_two_stores(&database).await;
    let keys = make_keys(&service).await;
    for (path, scope, list) in [
        ("/v1/queries/by_store/windows", "sales:read", "rows"),
        ("/v1/hourly-sales?query=by_store", "sales:read", "rows"),
        ("/v1/queries/by_store/dropped-events", "sales:read", "dropped_events"),
        ("/v1/queries/by_store/reconciliation", "finance", "windows"),
        ("/v1/reconciliation?query=by_store", "finance", "windows"),
    ] {
        let all = ask(&service, keys.of(scope, false), "get", path, Value::Null).await;
        let own = ask(&service, keys.of(scope, true), "get", path, Value::Null).await;
        let lines = |answer: &Answer| answer.body[list].as_array().unwrap().len();
        assert!(lines(&all) > lines(&own) && lines(&own) > 0, "{path}: {}", own.body);
        let text = own.body.to_string();
        assert!(text.contains("S1") && !text.contains("S2") && !text.contains("other"), "{text}");
    }
    let finance = keys.of("finance", true);
    let report =
        ask(&service, finance, "get", "/v1/reconciliation?query=by_store", Value::Null).await;
    assert_eq!(report.body["totals"]["USD"]["recount"]["orders"], 3, "{}", report.body);

    let reader = keys.of("sales:read", true);
    for (event, status) in [("own-placed", 200), ("other-placed", 404), ("nobody", 404)] {
        let path = format!("/v1/events/{event}");
        assert_eq!(
            ask(&service, reader, "get", &path, Value::Null).await.status,
            status,
            "{event}"
        );
    }
    let late = ask(&service, reader, "get", "/v1/events/own-late-placed", Value::Null).await;
    assert!(!late.body.to_string().contains("by order"), "{}", late.body);
    for path in ["/v1/hourly-sales", "/v1/queries/hourly_sales", "/v1/queries/hourly_sales/windows"]
    {
        let answer = ask(&service, reader, "get", path, Value::Null).await;
        let found = (answer.status, answer.body["type"].as_str());
        assert_eq!(found, (403, Some("/problems/other-stores")), "{path}");
    }
    let queries = ask(&service, reader, "get", "/v1/queries", Value::Null).await;
    let queries = queries.body["queries"].as_array().unwrap();
    assert_eq!((queries.len(), &queries[0]["last_progress"]), (1, &Value::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bound_key_posts_events_of_its_stores_only() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let keys = make_keys(&service).await;
    let writer = keys.of("events:write", true);
    let sale = |id: &str, store: Option<&str>| {
        let mut sale = a_sale(id, "09:05:00", "20.00");
        sale["store_id"] = json!(store);
        sale
    };
    let mixed = json!([sale("1", Some("S1")), sale("2", Some("S2")), sale("3", None)]);
    let atomic = ask(&service, writer, "post", "/v1/events?atomic=true", mixed.clone()).await;
    assert_eq!((atomic.status, database.number("select count(*) from raw_events").await), (422, 0));
    let mixed = ask(&service, writer, "post", "/v1/events", mixed).await;
    assert_eq!((mixed.status, &mixed.body["accepted"]), (207, &json!(1)), "{}", mixed.body);
    let results = mixed.body["results"].as_array().unwrap();
    assert_eq!(results.len(), 2);
    for result in results {
        let error = &result["errors"][0];
        assert_eq!(
            (&error["pointer"], &error["code"]),
            (&json!("/store_id"), &json!("other_store"))
        );
    }
    assert_eq!(
        ask(&service, writer, "post", "/v1/events", sale("4", Some("S2"))).await.status,
        422
    );
    assert_eq!(database.number("select count(*) from raw_events").await, 1);
}
