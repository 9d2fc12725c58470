//! The outermost part of the way: gives every request its id, and writes problems out with it.

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;
use uuid::Uuid;

use super::problem::Problem;
use super::problem_kind::ProblemKind;

/// The header.
pub(super) const HEADER: HeaderName = HeaderName::from_static("x-request-id");
const CHARS_MAX: usize = 200;

/// The id of a request: the caller's when it is sane, or a new one.
#[derive(Debug, Clone)]
pub(super) struct RequestId(HeaderValue);

impl RequestId {
    /// Gives a request its id.
    pub(super) fn give(request: &mut Request) -> Self {
        let given = request.headers().get(HEADER).filter(|given| is_sane(given));
        let made = || HeaderValue::from_str(&Uuid::new_v4().to_string()).ok();
        // A UUID is always fit for a header.
        let id = given.cloned().or_else(made).unwrap_or(HeaderValue::from_static("unknown"));
        request.extensions_mut().insert(Self(id.clone()));
        Self(id)
    }

    /// The id as text.
    pub(super) fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }

    /// The answer with the id; an error becomes a problem that names it.
    pub(super) fn answered(self, response: Response) -> Response {
        let mut response = write_problem(response, &self);
        response.headers_mut().insert(HEADER, self.0);
        // No browser shall take an answer for anything but what its content type says.
        let nosniff = HeaderValue::from_static("nosniff");
        response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
        response
    }
}

/// Whether an id is fit for headers, logs and JSON: 1 to 200 visible ASCII characters.
fn is_sane(value: &HeaderValue) -> bool {
    (1..=CHARS_MAX).contains(&value.len()) && value.as_bytes().iter().all(u8::is_ascii_graphic)
}

fn write_problem(response: Response, id: &RequestId) -> Response {
    let (mut head, body) = response.into_parts();
    let is_error = head.status.is_client_error() || head.status.is_server_error();
    match head.extensions.remove::<Problem>() {
        Some(problem) => problem.write(head, id.as_str()),
        None if is_error => {
            Problem::of(ProblemKind::of_status(head.status)).write(head, id.as_str())
        }
        None => Response::from_parts(head, body),
    }
}
