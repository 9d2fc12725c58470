//! JSON answers.

use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tracing::error;

use super::problem::Problem;
use super::problem_kind::ProblemKind;

/// An answer as JSON, ended by a newline, so that a terminal shows its prompt on a line of its own.
#[derive(Debug)]
pub(super) struct Json<T>(pub(super) T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        match json_line(&self.0) {
            Ok(body) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
            Err(error) => {
                error!(%error, "An answer could not be written as JSON");
                Problem::of(ProblemKind::Internal).into_response()
            }
        }
    }
}

/// `value` as one line of JSON, its newline included.
pub(super) fn json_line(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}
