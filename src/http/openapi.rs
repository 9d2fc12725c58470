//! The OpenAPI document, and the routes it is made with.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use utoipa::OpenApi;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{Content, Ref, RefOr, Response, content::ContentBuilder};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::problem::{ProblemBody, example};
use super::state::AppState;
use super::{dropped_events, events, progress, queries, reconciliation, service, windows};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Tillmark",
        description = "Final sales hours with Apache Spark's event-time rules, and a reconciliation that adds up."
    ),
    components(schemas(ProblemBody)),
    tags(
        (name = "events", description = "Till apps post"),
        (name = "queries", description = "What is counted"),
        (name = "reading", description = "Dashboards poll"),
        (name = "finance", description = "What must add up"),
        (name = "operating", description = "Health and bounds")
    )
)]
struct Document;

/// Every route with its description.
fn routes() -> (axum::Router<AppState>, utoipa::openapi::OpenApi) {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(events::post_events))
        .routes(routes!(queries::list))
        .routes(routes!(queries::get, queries::put, queries::delete))
        .routes(routes!(queries::pause))
        .routes(routes!(queries::resume))
        .routes(routes!(queries::reset))
        .routes(routes!(queries::run))
        .routes(routes!(windows::of_query))
        .routes(routes!(windows::hourly_sales))
        .routes(routes!(progress::of_one))
        .routes(routes!(progress::of_all))
        .routes(routes!(dropped_events::of_query))
        .routes(routes!(reconciliation::of_query))
        .routes(routes!(reconciliation::hourly_sales))
        .routes(routes!(service::livez))
        .routes(routes!(service::readyz))
        .routes(routes!(service::version))
        .routes(routes!(service::limits))
        .routes(routes!(service::problem))
        .routes(routes!(service::openapi_document))
        .split_for_parts()
}

/// The routes without their description.
pub(super) fn router() -> axum::Router<AppState> {
    routes().0
}

/// The whole document: every failure has the shape and an example of its problem.
pub(super) fn document() -> utoipa::openapi::OpenApi {
    let mut document = routes().1;
    for item in document.paths.paths.values_mut() {
        let operations = [&mut item.get, &mut item.put, &mut item.post, &mut item.delete];
        for operation in operations.into_iter().flatten() {
            complete_failures(operation);
        }
    }
    document
}

/// Adds what every operation can answer, and gives each failure its content.
fn complete_failures(operation: &mut Operation) {
    let responses = &mut operation.responses.responses;
    for (status, description) in [
        ("500", "Something went wrong inside"),
        ("503", "The database is away, or the answer took too long"),
    ] {
        responses.entry(status.to_owned()).or_insert_with(|| RefOr::T(Response::new(description)));
    }
    let statuses: BTreeSet<String> = responses.keys().cloned().collect();
    for status in statuses {
        if let Some(RefOr::T(response)) = responses.get_mut(&status)
            && (status.starts_with('4') || status.starts_with('5'))
        {
            response
                .content
                .insert("application/problem+json".to_owned(), problem_content(&status).into());
        }
    }
}

fn problem_content(status: &str) -> Content {
    let example: Value = status.parse().ok().and_then(example).unwrap_or_else(|| json!({}));
    ContentBuilder::new()
        .schema(Some(Ref::from_schema_name("Problem")))
        .example(Some(example))
        .build()
}
