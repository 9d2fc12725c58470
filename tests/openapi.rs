//! Keeps `openapi/openapi.json` equal to what the service says of itself.

const COMMAND: &str = "cargo run -- openapi > openapi/openapi.json";

#[test]
fn the_api_description_in_the_repository_is_the_one_of_the_service() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi/openapi.json");
    let written = std::fs::read_to_string(path).unwrap_or_default();
    let made = tillmark::http::openapi_json() + "\n";
    let first_difference = made
        .lines()
        .zip(written.lines().chain(std::iter::repeat("")))
        .enumerate()
        .find(|(_, (made, written))| made != written);
    if let Some((index, (made, written))) = first_difference {
        panic!(
            "openapi/openapi.json differs in line {}:\n  service: {made}\n  file:    {written}\n\
             Write it anew with `{COMMAND}`, and look at what changed.",
            index + 1
        );
    }
    assert_eq!(
        made.len(),
        written.len(),
        "the file goes on too long; write it anew with `{COMMAND}`"
    );
}

#[test]
fn every_operation_is_described_with_an_example_for_every_status() {
    let api: serde_json::Value =
        serde_json::from_str(&tillmark::http::openapi_json()).expect("JSON");
    let mut faults = Vec::new();
    for (path, operations) in api["paths"].as_object().expect("paths") {
        for (method, operation) in operations.as_object().expect("operations") {
            let mut fault = |what: String| faults.push(format!("{method} {path}: {what}"));
            for member in ["summary", "tags"] {
                if operation[member].is_null() {
                    fault(format!("has no {member}"));
                }
            }
            let bodies = operation["responses"].as_object().expect("responses").iter();
            for (status, response) in
                bodies.chain([(&"body".to_owned(), &operation["requestBody"])])
            {
                for (_, content) in response["content"].as_object().into_iter().flatten() {
                    if content["example"].is_null() && content["examples"].is_null() {
                        fault(format!("{status} has no example"));
                    }
                }
            }
        }
    }
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}
