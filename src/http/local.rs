//! Requests from within the process, without a socket, through the same routes and layers.

use axum::Router;
use axum::body::Body;
use axum::http::{Request, header};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tower::ServiceExt as _;

use super::App;
use super::router;

/// Asks the API of this process.
#[derive(Debug, Clone)]
pub struct LocalClient {
    router: Router,
}

impl LocalClient {
    /// A client of the service with these parts.
    pub fn new(app: App) -> Self {
        Self { router: router(app) }
    }

    /// Sends a request and answers the body, `null` where it is no JSON.
    pub async fn ask(&self, method: &str, path: &str, body: Option<Value>) -> Value {
        let body = body.map_or_else(Body::empty, |json| Body::from(json.to_string()));
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::CONTENT_TYPE, "application/json")
            .body(body)
            .unwrap_or_default();
        let response = match self.router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        match response.into_body().collect().await {
            Ok(body) => serde_json::from_slice(&body.to_bytes()).unwrap_or_default(),
            Err(_) => Value::Null,
        }
    }
}
