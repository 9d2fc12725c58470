//! What a key that is bound to stores may post and see: every address against another store's data.

use serde_json::{Value, json};

use super::key_scopes::{
    Bound, Keys, filled_in, need_of, operations, sale_of, service_with_two_stores,
};
use crate::support::{Answer, TestDatabase, TestService};

const REPORT_FORMS: [&str; 3] = ["format=json", "format=csv", "format=ndjson"];

/// What to ask of an address besides what it answers by itself. An address of queries that tell stores
/// apart has at least this: nothing more.
fn questions(path: &str, now: &str) -> Vec<String> {
    let path = path.strip_prefix("/v1/queries/{name}").unwrap_or(path);
    let as_of = format!("as_of={now}");
    let more: Vec<&str> = match path {
        "/windows" | "/v1/hourly-sales" => {
            let shapes = ["", "view=corrected", "granularity=P1D", &as_of, "limit=1", "final=true"];
            let both = [&*as_of, "view=corrected", "granularity=P1D"].join("&");
            return in_every_form(&shapes).chain([both]).collect();
        }
        "/dropped-events" => return in_every_form(&["", "reason=late", "limit=1"]).collect(),
        "/reconciliation" | "/v1/reconciliation" => {
            return in_every_form(&["", &as_of, "currency=USD"]).collect();
        }
        "/corrections" => vec!["", "limit=1", "from=2026-10-01T00:00:00Z"],
        "/lateness" => vec!["", "by=till_id", "by=none", "from=2026-10-01T09:00:00Z"],
        _ => vec![""],
    };
    more.into_iter().map(str::to_owned).collect()
}

fn in_every_form<'a>(shapes: &'a [&str]) -> impl Iterator<Item = String> + use<'a> {
    shapes.iter().flat_map(|shape| REPORT_FORMS.map(|form| format!("{shape}&{form}")))
}

fn text_of(answer: &Answer) -> String {
    answer.body.as_str().map_or_else(|| answer.body.to_string(), str::to_owned)
}

/// Signs of the other store: its id, its events, and its money alone or with that of S1.
fn signs_of_others(text: &str) -> Vec<&'static str> {
    let signs = ["S2", "other", "31.07", "51.07", "62.14", "82.14", "93.21"];
    signs.into_iter().filter(|sign| text.contains(sign)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bound_key_reads_nothing_of_other_stores_at_any_address() {
    let database = TestDatabase::create().await;
    let service = service_with_two_stores(&database).await;
    let keys = Keys::make(&service).await;
    let now = service.get_as(keys.of("finance", false), "/v1/reconciliation").await;
    let now = now.body["as_of"].as_str().unwrap().to_owned();
    let mut shown = 0;
    for (method, path) in operations() {
        let (scope, bound) = need_of(&method, &path);
        if method != "get" || bound != Bound::Own {
            continue;
        }
        for question in questions(&path, &now) {
            let address = filled_in(&method, &path);
            let sign = if address.contains('?') { '&' } else { '?' };
            let address =
                if question.is_empty() { address } else { format!("{address}{sign}{question}") };
            let all = service.get_as(keys.of(scope, false), &address).await;
            let own = service.get_as(keys.of(scope, true), &address).await;
            assert_eq!((all.status, own.status), (200, 200), "{address}: {}", own.body);
            let text = text_of(&own);
            assert_eq!(signs_of_others(&text), [""; 0], "{address}: {text}");
            shown += usize::from(!signs_of_others(&text_of(&all)).is_empty());
        }
    }
    assert!(shown > 40, "{shown} answers would have shown something of the other store");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bound_key_sees_all_of_its_own() {
    let database = TestDatabase::create().await;
    let service = service_with_two_stores(&database).await;
    let keys = Keys::make(&service).await;
    let (reader, finance) = (keys.of("sales:read", true), keys.of("finance", true));
    for (key, path, list, count) in [
        (reader, "/v1/queries/by_store/windows", "rows", 2),
        (reader, "/v1/queries/by_store/windows?store_id=S2", "rows", 0),
        (reader, "/v1/queries/by_store/windows?granularity=P1D", "rows", 1),
        (reader, "/v1/queries/by_store/dropped-events", "dropped_events", 2),
        (reader, "/v1/queries", "queries", 1),
        (finance, "/v1/queries/by_store/reconciliation", "windows", 3),
        (finance, "/v1/queries/by_store/corrections", "corrections", 1),
        (finance, "/v1/queries/by_store/lateness", "sources", 1),
    ] {
        let answer = service.get_as(key, path).await;
        let found = answer.body[list].as_array().map(Vec::len);
        assert_eq!(found, Some(count), "{path}: {}", answer.body);
    }
    let report = service.get_as(finance, "/v1/reconciliation?query=by_store").await.body;
    assert_eq!(report["totals"]["USD"]["recount"]["orders"], 4, "{report}");
    let lateness = service.get_as(finance, "/v1/queries/by_store/lateness?by=none").await.body;
    assert_eq!(lateness["total"]["disorder"]["count"], 4, "{lateness}");
    for (event, status) in [
        ("own-placed", 200),
        ("own-late-placed", 200),
        ("own-ahead-placed", 200),
        ("other-placed", 404),
        ("other-ahead-placed", 404),
        ("nobody", 404),
    ] {
        let answer = service.get_as(reader, &format!("/v1/events/{event}")).await;
        assert_eq!(answer.status, status, "{event}: {}", answer.body);
        assert!(!answer.body.to_string().contains("by order"), "{}", answer.body);
    }
    let query = service.get_as(reader, "/v1/queries/by_store").await;
    assert_eq!(query.body["last_progress"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_counts_all_stores_together_is_not_for_a_bound_key() {
    let database = TestDatabase::create().await;
    let service = service_with_two_stores(&database).await;
    let keys = Keys::make(&service).await;
    let mut refused = 0;
    for (method, path) in operations() {
        let (scope, bound) = need_of(&method, &path);
        let is_of_a_query = path.starts_with("/v1/queries/{name}")
            || matches!(&*path, "/v1/hourly-sales" | "/v1/reconciliation");
        if !is_of_a_query || bound != Bound::Own {
            continue;
        }
        let address = path.replace("{name}", "hourly_sales");
        let body = match &*method {
            "get" => Value::Null,
            _ => json!({ "windows": "all", "note": "x", "booked_by": "x" }),
        };
        let answer = service.ask_as(keys.of(scope, true), &method, &address, body).await;
        let found = (answer.status, answer.body["type"].as_str());
        assert_eq!(found, (403, Some("/problems/other-stores")), "{method} {address}");
        let detail = answer.body["detail"].as_str().unwrap();
        assert!(detail.contains("`hourly_sales` counts all stores together"), "{detail}");
        refused += 1;
    }
    assert!(refused >= 9, "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bound_key_posts_events_of_its_stores_only() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let keys = Keys::make(&service).await;
    let writer = keys.of("events:write", true);
    let post = async |address: &str, events: &Value| {
        service.ask_as(writer, "post", address, events.clone()).await
    };
    let sale = |id: &str, store| sale_of(store, id, "09:05:00", "20.00");
    let mixed = json!([sale("1", Some("S1")), sale("2", Some("S2")), sale("3", None)]);
    let atomic = post("/v1/events?atomic=true", &mixed).await;
    assert_eq!((atomic.status, database.number("select count(*) from raw_events").await), (422, 0));
    let answer = post("/v1/events", &mixed).await;
    assert_eq!((answer.status, &answer.body["accepted"]), (207, &json!(1)), "{}", answer.body);
    let results = answer.body["results"].as_array().unwrap();
    assert_eq!(results.len(), 2);
    for result in results {
        let error = &result["errors"][0];
        let found = (&error["pointer"], &error["code"]);
        assert_eq!(found, (&json!("/store_id"), &json!("other_store")));
    }
    assert_eq!(post("/v1/events", &sale("4", Some("S2"))).await.status, 422);
    assert_eq!(database.number("select count(*) from raw_events").await, 1);

    let other = sale("5", Some("S2"));
    let address = "/v1/events";
    let posted = service.ask_as(keys.of("events:write", false), "post", address, other).await;
    assert_eq!(posted.status, 200);
    let taken = sale("5", Some("S1"));
    let refused = post(address, &taken).await;
    assert_eq!(refused.status, 409);
    assert!(!refused.body.to_string().contains("hash"), "{}", refused.body);
    let refused = service.ask_as(keys.of("events:write", false), "post", address, taken).await;
    assert!(refused.body.to_string().contains("hash"), "{}", refused.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bound_key_books_corrections_of_its_stores_only() {
    let database = TestDatabase::create().await;
    let service = service_with_two_stores(&database).await;
    let keys = Keys::make(&service).await;
    let address = "/v1/queries/by_store/corrections";
    let book = async |is_bound, windows: Value| {
        let booking = json!({ "windows": windows, "note": "again", "booked_by": "S1" });
        service.ask_as(keys.of("finance", is_bound), "post", address, booking).await
    };
    let hour = |store: Value| {
        let (start, end) = ("2026-10-01T09:00:00Z", "2026-10-01T10:00:00Z");
        json!({ "start": start, "end": end, "store_id": store })
    };
    for (place, store) in [json!("S2"), Value::Null].into_iter().enumerate() {
        let mut windows = vec![hour(json!("S1")); place];
        windows.push(hour(store));
        let answer = book(true, json!(windows)).await;
        assert_eq!(answer.body["type"], "/problems/other-stores", "{}", answer.body);
        let pointer = format!("/windows/{place}/store_id");
        assert_eq!(answer.body["errors"][0]["pointer"], pointer, "{}", answer.body);
    }
    let own = book(true, json!("all")).await;
    assert_eq!((own.status, &own.body["booked"]), (201, &json!(1)), "{}", own.body);
    assert_eq!(own.body["totals"]["USD"]["revenue"], "20.00", "{}", own.body);
    let whole_hour = json!([{ "start": "2026-10-01T09:00:00Z", "end": "2026-10-01T10:00:00Z" }]);
    assert_eq!(book(true, whole_hour.clone()).await.body["booked"], 0);
    let rest = book(false, whole_hour).await;
    assert_eq!(rest.body["totals"]["USD"]["revenue"], "31.07", "{}", rest.body);
}
