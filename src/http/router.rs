//! All addresses, and the API description that is made from them.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;
use tower_http::cors::CorsLayer;
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use utoipa_swagger_ui::{Config, SwaggerUi};

use super::access_log::Watched;
use super::authorize::Door;
use super::browsers::{cors, kept_to_themselves, with_cors};
use super::detach::{Detached, detach};
use super::problem::Problem;
use super::problem_kind::ProblemKind;
use super::request_id::RequestId;
use super::secured::secured;
use super::traffic::Traffic;
use super::{
    App, audit, corrections, delay_advice, dropped_events, events, health, heartbeats, keys,
    lateness, metrics, progress, quarantine, queries, receipts, reconciliation, service, stream,
    windows,
};

/// What the API says of itself.
#[derive(Debug, utoipa::OpenApi)]
#[openapi(
    info(
        title = "Tillmark",
        description = "Keeps every order event of the tills and answers two questions: is this hour \
                       finished, and why does finance get another number?\n\n\
                       Times are RFC 3339 and answered in UTC. Money is decimal strings, exact, \
                       with its currency beside it. Ranges are half-open. Unknown parameters and \
                       fields are refused. Every answer has `x-request-id`; every 4xx and 5xx is \
                       `application/problem+json` (RFC 9457)."
    ),
    tags(
        (name = "Ingest", description = "Posting what happened at the tills"),
        (name = "Quarantine", description = "Events that claim to come from the future"),
        (name = "Queries", description = "The rules by which events are counted"),
        (name = "Reading", description = "What was counted, and what was not"),
        (name = "Finance", description = "The stream against a recount of the raw log"),
        (name = "Keys", description = "Who may do what"),
        (name = "Service", description = "The service itself"),
    ),
    components(schemas(super::problem::ProblemBody))
)]
struct Description;

fn addresses() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(Description::openapi())
        .routes(routes!(events::post_events))
        .routes(routes!(receipts::get_receipt))
        .routes(routes!(heartbeats::post_heartbeat))
        .routes(routes!(quarantine::list_quarantine))
        .routes(routes!(quarantine::decide))
        .routes(routes!(queries::list_queries))
        .routes(routes!(queries::put_query, queries::get_query, queries::delete_query))
        .routes(routes!(queries::pause_query))
        .routes(routes!(queries::resume_query))
        .routes(routes!(queries::reset_query))
        .routes(routes!(queries::run_query))
        .routes(routes!(windows::list_windows))
        .routes(routes!(windows::hourly_sales))
        .routes(routes!(progress::query_progress))
        .routes(routes!(progress::all_progress))
        .routes(routes!(dropped_events::list_dropped_events))
        .routes(routes!(stream::follow))
        .routes(routes!(reconciliation::query_reconciliation))
        .routes(routes!(reconciliation::hourly_reconciliation))
        .routes(routes!(lateness::lateness))
        .routes(routes!(delay_advice::delay_advice))
        .routes(routes!(corrections::book_corrections, corrections::list_corrections))
        .routes(routes!(audit::list_audit))
        .routes(routes!(keys::list_keys, keys::create_key))
        .routes(routes!(keys::revoke_key))
        .routes(routes!(keys::rotate_key))
        .routes(routes!(health::livez))
        .routes(routes!(health::readyz))
        .routes(routes!(metrics::metrics))
        .routes(routes!(service::version))
        .routes(routes!(service::limits))
        .routes(routes!(service::openapi_document))
        .routes(routes!(service::problem))
}

/// The API description (OpenAPI 3.1).
pub fn openapi() -> utoipa::openapi::OpenApi {
    secured(addresses().into_openapi())
}

/// The API description as it stands in `openapi/openapi.json`, without its last newline.
pub fn openapi_json() -> String {
    // Plain texts and numbers: writing them cannot fail.
    openapi().to_pretty_json().unwrap_or_default()
}

/// The whole service.
pub fn router(app: App) -> Router {
    let detached = Detached {
        work: app.work.clone(),
        request_timeout: app.settings.request_timeout,
        door: Door::Keys(app.keyring.clone(), app.origins.clone().into()),
    };
    let (addresses, _) = addresses().split_for_parts();
    let (traffic, cors) = (app.traffic.clone(), cors(&app.origins));
    let documentation = SwaggerUi::new("/docs").config(Config::from("/openapi.json"));
    let pages = kept_to_themselves(documentation.into());
    guarded(addresses.with_state(app).merge(pages), Way { detached, traffic, cors })
}

/// `routes` and everything that each request passes before it gets there.
pub(super) fn guarded(routes: Router, way: Way) -> Router {
    routes
        .fallback(async || Problem::of(ProblemKind::NotFound).into_response())
        .layer(from_fn_with_state(Arc::new(way), go))
}

/// What stands on the way of each request.
#[derive(Debug)]
pub(super) struct Way {
    /// The deadline, and who is let in.
    pub(super) detached: Detached,
    /// Its count.
    pub(super) traffic: Traffic,
    /// The pages of other origins, if any may ask.
    pub(super) cors: Option<CorsLayer>,
}

/// What each request passes, from the outside in. One middleware: each costs a copy of the request and
/// a place on the heap.
async fn go(State(way): State<Arc<Way>>, mut request: Request, next: Next) -> Response {
    let id = RequestId::give(&mut request);
    let watched = Watched::begin(&way.traffic, &request);
    let response = watched.context().scope(answer(&way, request, next)).await;
    id.answered(watched.answered(response))
}

async fn answer(way: &Way, request: Request, next: Next) -> Response {
    let Some(cors) = &way.cors else { return detach(&way.detached, request, next).await };
    let detached = way.detached.clone();
    let answering = move |request| {
        let (detached, next) = (detached.clone(), next.clone());
        async move { detach(&detached, request, next).await }.boxed()
    };
    Box::pin(with_cors(cors, request, answering)).await
}
