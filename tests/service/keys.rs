//! Who may do what: the life of a key, and how much it may post.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Answer, TestDatabase, TestService, a_sale};

/// Makes a key with the API; `maker` is empty while there is none.
async fn make_key(service: &TestService, maker: &str, what: Value) -> Value {
    let made = service.ask_as(maker, "POST", "/v1/keys", what).await;
    assert_eq!(made.status, 201, "{}", made.body);
    assert_eq!(made.header("cache-control"), "no-store");
    made.body
}

async fn key(service: &TestService, maker: &str, scope: &str, stores: Option<&[&str]>) -> String {
    let what = json!({ "name": "a test", "scopes": [scope], "store_ids": stores });
    make_key(service, maker, what).await["key"].as_str().unwrap().to_owned()
}

fn sale_of(store: Option<&str>, id: &str) -> Value {
    let mut sale = a_sale(id, "09:05:00", "20.00");
    sale["store_id"] = json!(store);
    sale
}

#[track_caller]
fn assert_problem(answer: &Answer, status: u16, name: &str) {
    assert_eq!(
        (answer.status, &answer.body["type"]),
        (status, &json!(format!("/problems/{name}"))),
        "{}",
        answer.body
    );
}

/// The output of `tillmark keys` on this database: its exit code, standard output and error.
fn keys_command(database: &TestDatabase, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tillmark"))
        .arg("keys")
        .args(arguments)
        .env("DATABASE_URL", &database.url)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_key_closes_the_service_and_revoking_it_does_not_open_it_again() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    assert_eq!(service.get("/v1/hourly-sales").await.status, 200);
    let first = make_key(&service, "", json!({ "name": "head office", "scopes": ["admin"] })).await;
    let admin = first["key"].as_str().unwrap();

    let without = service.get("/v1/hourly-sales").await;
    assert_problem(&without, 401, "unauthorized");
    assert_eq!(without.header("www-authenticate"), r#"Bearer realm="tillmark""#);
    assert_eq!(service.get_as(admin, "/v1/hourly-sales").await.status, 200);
    for path in ["/livez", "/readyz", "/openapi.json", "/problems/unauthorized", "/docs/"] {
        assert_eq!(service.get(path).await.status, 200, "{path}");
    }

    let (id, secret) = admin[3..].split_once('_').unwrap();
    let unknown = service.get_as(&format!("tm_ffffffffffff_{secret}"), "/v1/limits").await;
    let wrong = service.get_as(&format!("tm_{id}_{}", "0".repeat(64)), "/v1/limits").await;
    let nonsense = service.get_as("secret", "/v1/limits").await;
    for answer in [&unknown, &wrong, &nonsense] {
        assert_problem(answer, 401, "unauthorized");
        assert_eq!(answer.body["detail"], unknown.body["detail"]);
        assert!(answer.header("www-authenticate").contains("invalid_token"));
    }
    // A key in an address is a parameter that nobody knows, and the answer to it is 401 first.
    assert_eq!(service.get(&format!("/v1/limits?key={admin}")).await.status, 401);

    let revoked = service.ask_as(admin, "DELETE", &format!("/v1/keys/{id}"), Value::Null).await;
    assert_eq!(revoked.status, 204);
    assert_problem(&service.get_as(admin, "/v1/limits").await, 401, "unauthorized");
    assert_problem(&service.get("/v1/limits").await, 401, "unauthorized");
    let in_the_log = service.log();
    assert!(!in_the_log.contains(secret), "{in_the_log}");
    let stored = format!("select count(*) from api_keys k where k::text like '%{secret}%'");
    assert_eq!(database.number(&stored).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_revoked_on_one_replica_ends_to_work_on_the_other_within_ten_seconds() {
    let database = TestDatabase::create().await;
    let (one, other) = tokio::join!(TestService::start(&database), TestService::start(&database));
    let admin = key(&one, "", "admin", None).await;
    let what = json!({ "name": "a till", "scopes": ["sales:read"] });
    let mut made = Value::Null;
    for number in 0..5 {
        made = make_key(&one, &admin, what.clone()).await;
        let answer = other.get_as(made["key"].as_str().unwrap(), "/v1/hourly-sales").await;
        assert_eq!(answer.status, 200, "new key {number} works at once");
    }
    let (reader, id) = (made["key"].as_str().unwrap(), made["key_id"].as_str().unwrap());
    one.ask_as(&admin, "DELETE", &format!("/v1/keys/{id}"), Value::Null).await;
    assert_eq!(one.get_as(reader, "/v1/hourly-sales").await.status, 401);
    let ended = async {
        while other.get_as(reader, "/v1/hourly-sales").await.status != 401 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), ended).await.expect("it ends within 10 s");

    let listed = one.get_as(&admin, "/v1/keys").await;
    let listed = listed.body["keys"].as_array().unwrap();
    let revoked = listed.iter().find(|key| key["key_id"] == id).unwrap();
    assert_eq!(revoked["status"], "revoked");
    let used = async {
        while one.get_as(&admin, "/v1/keys").await.body["keys"][0]["last_used_at"].is_null() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), used).await.expect("that it was used is noted");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_keys_work_while_one_takes_the_place_of_the_other() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let admin = key(&service, "", "admin", None).await;
    let what = json!({
        "name": "tills", "scopes": ["sales:read"], "store_ids": ["S1"], "expires": "30 days",
    });
    let old = make_key(&service, &admin, what).await;
    let rotate = format!("/v1/keys/{}/rotate", old["key_id"].as_str().unwrap());
    let worded = service.ask_as(&admin, "POST", &rotate, json!({"expires_at": null})).await;
    assert_problem(&worded, 400, "malformed-body");
    let new = service.ask_as(&admin, "POST", &rotate, Value::Null).await;
    assert_eq!(new.status, 201, "{}", new.body);
    assert_eq!(new.body["rotated_from"], old["key_id"]);
    for same in ["name", "scopes", "store_ids"] {
        assert_eq!(new.body[same], old[same], "{same}");
    }
    assert_ne!(new.body["expires_at"], Value::Null);
    for one in [&old, &new.body] {
        let answer = service.get_as(one["key"].as_str().unwrap(), "/v1/limits").await;
        assert_eq!(answer.status, 200);
    }
    let again = service.ask_as(&admin, "POST", &rotate, Value::Null).await;
    assert_problem(&again, 409, "key-not-rotated");
    let delete = format!("/v1/keys/{}", old["key_id"].as_str().unwrap());
    service.ask_as(&admin, "DELETE", &delete, Value::Null).await;
    assert_eq!(service.get_as(old["key"].as_str().unwrap(), "/v1/limits").await.status, 401);
    assert_eq!(service.get_as(new.body["key"].as_str().unwrap(), "/v1/limits").await.status, 200);
    assert_problem(
        &service.ask_as(&admin, "POST", &rotate, Value::Null).await,
        409,
        "key-not-rotated",
    );
    let nobody = "/v1/keys/ffffffffffff/rotate";
    assert_problem(&service.ask_as(&admin, "POST", nobody, Value::Null).await, 404, "no-such-key");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_cannot_be_is_refused_at_its_place() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    for (what, pointer) in [
        (json!({ "name": "", "scopes": ["admin"] }), "/name"),
        (json!({ "name": "x", "scopes": [] }), "/scopes"),
        (json!({ "name": "x", "scopes": ["finance", "sales"] }), "/scopes/1"),
        (json!({ "name": "x", "scopes": ["finance"], "store_ids": [] }), "/store_ids"),
        (json!({ "name": "x", "scopes": ["finance"], "store_ids": [""] }), "/store_ids"),
        (json!({ "name": "x", "scopes": ["admin"], "store_ids": ["S1"] }), "/store_ids"),
        (json!({ "name": "x", "scopes": ["finance"], "expires": "soon" }), "/expires"),
        (
            json!({ "name": "x", "scopes": ["finance"], "expires": "2020-01-01T00:00:00Z" }),
            "/expires",
        ),
    ] {
        let answer = service.post("/v1/keys", what.clone()).await;
        assert_problem(&answer, 422, "invalid-key");
        assert_eq!(answer.body["errors"][0]["pointer"], pointer, "{what}: {}", answer.body);
    }
    assert_eq!(database.number("select count(*) from api_keys").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_made_and_revoked_on_the_command_line_too() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let (code, admin, said) =
        keys_command(&database, &["create", "--name", "head office", "--scope", "admin"]);
    let admin = admin.trim();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!((admin.len(), said.contains(admin)), (80, false), "{said}");
    assert_eq!(service.get_as(admin, "/v1/keys").await.status, 200);
    let id = &admin[3..15];
    let (code, second, _) = keys_command(&database, &["rotate", id]);
    assert_eq!((code, service.get_as(second.trim(), "/v1/keys").await.status), (Some(0), 200));
    assert_eq!(keys_command(&database, &["rotate", id]).0, Some(65));
    assert_eq!(keys_command(&database, &["revoke", id]).0, Some(0));
    let (code, listed, _) = keys_command(&database, &["list"]);
    assert_eq!((code, listed.lines().count()), (Some(0), 2), "{listed}");
    assert!(listed.contains("revoked ") && listed.contains(&format!("rotated from {id}")));
    assert_eq!(keys_command(&database, &["revoke", "ffffffffffff"]).0, Some(65));
    // What a terminal would obey is shown, not obeyed.
    keys_command(&database, &["create", "--name", "a\u{1b}[2J\nb \"é\"", "--scope", "finance"]);
    let (_, listed, _) = keys_command(&database, &["list"]);
    assert!(listed.contains(r#"  a\u{1b}[2J\nb "é"  scopes finance"#), "{listed}");
    assert_eq!(listed.lines().count(), 3, "{listed}");
    let bound = ["create", "--name", "x", "--scope", "admin", "--store", "S1"];
    assert_eq!(keys_command(&database, &bound).0, Some(64));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_others_can_reach_does_not_start_without_a_key() {
    let database = TestDatabase::create().await;
    let everywhere = [("DATABASE_URL", &*database.url), ("TILLMARK_LISTEN", "0.0.0.0:0")];
    let output = Command::new(env!("CARGO_BIN_EXE_tillmark")).envs(everywhere).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(64), "{said}");
    assert!(said.contains("TILLMARK_LISTEN is 0.0.0.0:"), "{said}");
    assert!(said.contains("tillmark keys create"), "{said}");
    keys_command(&database, &["create", "--name", "x", "--scope", "admin"]);
    let service = TestService::start_with(&everywhere).await;
    assert_eq!(service.get("/v1/limits").await.status, 401);
    // Nor does it open when somebody removes the keys by hand.
    database.execute("delete from api_keys").await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(service.get("/v1/limits").await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_over_its_rate_is_told_when_to_come_again() {
    let database = TestDatabase::create().await;
    let settings = [("DATABASE_URL", &*database.url), ("TILLMARK_KEY_EVENTS_PER_SECOND", "5")];
    let service = TestService::start_with(&settings).await;
    let free: Vec<Value> = (0..30).map(|n| sale_of(None, &format!("free-{n}"))).collect();
    service.post_events(&free).await;
    let admin = key(&service, "", "admin", None).await;
    let (one, other) = (
        key(&service, &admin, "events:write", None).await,
        key(&service, &admin, "events:write", None).await,
    );
    let post = async |key: &str, name: &str| {
        let events: Vec<Value> = (0..8).map(|n| sale_of(None, &format!("{name}-{n}"))).collect();
        service.ask_as(key, "POST", "/v1/events", json!(events)).await
    };
    // Told with every answer, also of what is not stored.
    let refused = service.ask_as(&one, "POST", "/v1/events", json!(5)).await;
    assert_eq!((refused.status, refused.header("ratelimit")), (422, r#""events";r=10;t=0"#));
    let heartbeat = json!({"source": "till-1", "event_time": "2026-10-01T08:00:00Z"});
    let beat = service.ask_as(&other, "POST", "/v1/heartbeats", heartbeat).await;
    assert_eq!((beat.status, beat.header("ratelimit")), (202, r#""events";r=9;t=1"#));
    let first = post(&one, "a").await;
    assert_eq!((first.status, first.header("ratelimit-policy")), (200, r#""events";q=10;w=2"#));
    assert_eq!(first.header("ratelimit"), r#""events";r=2;t=2"#);
    let second = post(&one, "b").await;
    assert_problem(&second, 429, "rate-limited");
    assert_eq!(
        second.header("retry-after").parse::<u32>().unwrap().clamp(1, 2).to_string(),
        second.header("retry-after")
    );
    assert!(second.header("ratelimit").starts_with(r#""events";r="#));
    assert_eq!(post(&other, "c").await.status, 200, "each key has its own");
    let waited = async {
        while post(&one, "b").await.status != 200 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), waited).await.expect("it may post again");
    assert_eq!(service.get_as(&admin, "/v1/limits").await.body["key_events_per_second"], 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_key_that_nobody_could_see_nothing_is_left_that_works() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let full = std::fs::File::create("/dev/full").unwrap();
    let mut create = Command::new(env!("CARGO_BIN_EXE_tillmark"));
    create.args(["keys", "create", "--name", "unseen", "--scope", "admin"]).stdout(full);
    assert_eq!(create.env("DATABASE_URL", &database.url).status().unwrap().code(), Some(74));
    assert_eq!(database.number("select count(*) from api_keys where revoked_at is null").await, 0);
    drop(service);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_row_that_is_none_is_refused_by_the_database() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let admin = key(&service, "", "admin", None).await;
    for damage in ["expires_at = 'infinity'", "store_ids = '{NULL}'", "last_used_at = '-infinity'"]
    {
        let update = format!("update api_keys set {damage}");
        let refused = sqlx::raw_sql(sqlx::AssertSqlSafe(update)).execute(&database.pool).await;
        assert!(refused.is_err(), "{damage}");
    }
    assert_eq!(service.get_as(&admin, "/v1/hourly-sales").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_trail_names_the_key_that_acted() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let admin = key(&service, "", "admin", None).await;
    let finance = key(&service, &admin, "finance", None).await;
    let id_of = |key: &str| json!(key.split('_').nth(1));
    service.ask_as(&admin, "POST", "/v1/queries/hourly_sales/reset", json!({})).await;
    service.ask_as(&admin, "DELETE", "/v1/queries/hourly_sales_live", json!({})).await;
    let trail = service.get_as(&finance, "/v1/audit").await.body["audit"].clone();
    let acts: Vec<_> =
        trail.as_array().unwrap().iter().map(|one| (&one["action"], &one["key_id"])).collect();
    let by = id_of(&admin);
    assert_eq!(acts, [(&json!("query_deleted"), &by), (&json!("query_reset"), &by)]);
}
