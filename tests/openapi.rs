//! The OpenAPI document in the repository is the one that the service answers.

#[test]
fn the_openapi_document_in_the_repository_is_current() {
    let stored = include_str!("../openapi/openapi.json");
    assert!(
        stored.trim_end() == tillmark::http::openapi_json(),
        "openapi/openapi.json is out of date; rewrite it with: cargo run -- openapi > openapi/openapi.json"
    );
}
