//! The only folder that knows HTTP: routes, statuses, the shape of answers and problems.
//!
//! A handler parses, calls, and answers. Around each of them: an id for the request, one log line,
//! a task of its own (so a client that goes away cancels nothing), a deadline, and problems in one
//! shape, whoever answered them.
//!
//! Absent on purpose: SQL, event-time rules, transactions.

mod bodies;
mod body;
mod dropped_events;
mod events;
mod local;
mod middleware;
mod openapi;
mod params;
mod problem;
mod progress;
mod queries;
mod reconciliation;
mod schemas;
mod serve;
mod service;
mod state;
mod windows;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};

pub use local::LocalClient;
pub use serve::serve;
pub use state::{AppState, HttpSettings};

use crate::domain::QueryName;
use problem::{Problem, ProblemKind};

/// The whole API.
fn router(state: AppState) -> Router {
    let docs = utoipa_swagger_ui::SwaggerUi::new("/docs")
        .config(utoipa_swagger_ui::Config::from("/openapi.json").use_base_layout());
    openapi::router()
        .merge(docs)
        .fallback(async || Problem::new(ProblemKind::NotFound, "No resource has this address."))
        .method_not_allowed_fallback(async || middleware::method_not_allowed())
        .layer(from_fn_with_state(state.clone(), middleware::detach))
        .layer(from_fn(middleware::identify))
        .with_state(state)
}

/// The OpenAPI document as it stands in `openapi/openapi.json`.
pub fn openapi_json() -> String {
    openapi::document().to_pretty_json().unwrap_or_default()
}

/// A query's name from an address; what cannot be one names no query.
fn query_name(text: &str) -> Result<QueryName, Problem> {
    text.parse().map_err(|_| Problem::no_such_query(text))
}
