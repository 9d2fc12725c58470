//! What browsers are told: which pages may ask, and what the pages of the service may do.

use std::collections::BTreeSet;

use serde_json::json;

use crate::support::{Answer, TestDatabase, TestService};

const DASHBOARD: &str = "https://dashboard.example.com";

/// What a browser asks before it sends a request that is not plain.
async fn preflight(service: &TestService, origin: &str, path: &str) -> Answer {
    let request = service.client.request(reqwest::Method::OPTIONS, service.url(path));
    let request = request
        .header("origin", origin)
        .header("access-control-request-method", "PUT")
        .header("access-control-request-headers", "authorization,content-type");
    Answer::of(request).await
}

async fn get_from(service: &TestService, origin: &str, path: &str) -> Answer {
    Answer::of(service.client.get(service.url(path)).header("origin", origin)).await
}

/// The words of a header that lists some.
fn words(answer: &Answer, header: &str) -> BTreeSet<String> {
    answer.header(header).split(',').map(|word| word.trim().to_lowercase()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn unless_it_is_set_no_page_of_another_origin_may_read_anything() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let asked = preflight(&service, DASHBOARD, "/v1/queries/hourly_sales").await;
    assert_eq!(asked.status, 403);
    let read = get_from(&service, DASHBOARD, "/v1/hourly-sales").await;
    // Without a key nobody else tells a page of somebody else from those who may.
    assert_eq!((read.status, &read.body["type"]), (403, &json!("/problems/foreign-page")));
    let plain = service.client.post(service.url("/v1/queries/hourly_sales/reset"));
    let reset = Answer::of(plain.header("origin", DASHBOARD)).await;
    assert_eq!((reset.status, &reset.body["type"]), (403, &json!("/problems/foreign-page")));
    for answer in [asked, read, reset] {
        let cors = answer.headers.keys().find(|name| name.as_str().starts_with("access-control"));
        assert_eq!(cors, None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_the_origins_that_are_set_may_ask_and_read_also_what_went_wrong() {
    let database = TestDatabase::create().await;
    let service = TestService::start_with(&[
        ("DATABASE_URL", &database.url),
        ("TILLMARK_CORS_ORIGINS", "https://dashboard.example.com,http://localhost:3000"),
    ])
    .await;
    let made = json!({ "name": "head office", "scopes": ["admin"] });
    assert_eq!(service.post("/v1/keys", made).await.status, 201);

    for origin in [DASHBOARD, "http://localhost:3000"] {
        // A browser sends no key with its question.
        let asked = preflight(&service, origin, "/v1/queries/hourly_sales").await;
        assert_eq!(asked.status, 200);
        assert_eq!(asked.header("access-control-allow-origin"), origin);
        assert!(words(&asked, "access-control-allow-methods").contains("put"));
        let headers = words(&asked, "access-control-allow-headers");
        for header in ["authorization", "content-type", "if-none-match", "x-request-id"] {
            assert!(headers.contains(header), "{headers:?}");
        }
        assert!(words(&asked, "vary").contains("origin"));
        assert!(!asked.header("x-request-id").is_empty());
        assert_eq!(asked.header("access-control-allow-credentials"), "");
        for (path, status) in [("/livez", 200), ("/v1/hourly-sales", 401), ("/nowhere", 404)] {
            let read = get_from(&service, origin, path).await;
            assert_eq!(read.status, status, "{path}");
            assert_eq!(read.header("access-control-allow-origin"), origin, "{path}");
            assert!(words(&read, "vary").contains("origin"), "{path}");
            let seen = words(&read, "access-control-expose-headers");
            for header in ["x-request-id", "etag", "link", "retry-after"] {
                assert!(seen.contains(header), "{path}: {seen:?}");
            }
        }
    }
    for stranger in ["https://evil.example", "https://dashboard.example.com:444", "null"] {
        for answer in [
            preflight(&service, stranger, "/v1/queries/hourly_sales").await,
            get_from(&service, stranger, "/livez").await,
        ] {
            assert_eq!(answer.header("access-control-allow-origin"), "", "{stranger}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_answer_is_taken_for_anything_but_its_content_type() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    for path in [
        "/livez",
        "/v1/hourly-sales",
        "/v1/hourly-sales?format=csv",
        "/v1/hourly-sales?format=nonsense",
        "/nowhere",
        "/metrics",
        "/openapi.json",
        "/docs/",
        "/docs/swagger-ui.css",
    ] {
        let answer = service.get(path).await;
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_may_load_only_what_is_theirs_and_nobody_may_frame_them() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let page = service.get("/docs/").await;
    assert_eq!((page.status, page.header("content-type")), (200, "text/html"));
    let policy = page.header("content-security-policy").to_owned();
    for rule in
        ["default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"]
    {
        assert!(policy.split("; ").any(|found| found == rule), "{rule}: {policy}");
    }
    assert!(!policy.contains("unsafe-eval") && !policy.contains("script-src 'self' 'unsafe"));
    assert_eq!(page.header("referrer-policy"), "no-referrer");

    // What the page needs is what the policy allows: files of this service, and no script in the page.
    let html = page.body.as_str().unwrap();
    let files: Vec<&str> = html
        .split(['<', '>'])
        .filter(|tag| tag.starts_with("script") || tag.starts_with("link"))
        .map(|tag| {
            let file = ["src=\"", "href=\""].iter().find_map(|name| tag.split_once(name));
            file.unwrap_or_else(|| panic!("a script in the page: {tag}"))
                .1
                .split('"')
                .next()
                .unwrap()
        })
        .collect();
    assert!(files.len() >= 5, "{html}");
    for handler in ["onload=", "onclick=", "javascript:", "<style"] {
        assert!(!html.contains(handler), "{html}");
    }
    for file in files {
        assert!(!file.contains("//"), "{file} is of another origin");
        let loaded = service.get(&format!("/docs/{}", file.trim_start_matches("./"))).await;
        assert_eq!(loaded.status, 200, "{file}");
        let kind = if file.ends_with(".js") { "text/javascript" } else { "" };
        assert!(loaded.header("content-type").starts_with(kind), "{file}: {:?}", loaded.headers);
        assert_eq!(loaded.header("content-security-policy"), policy, "{file}");
    }
    assert_eq!(service.get("/v1/hourly-sales").await.header("content-security-policy"), "");
}
