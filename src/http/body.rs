//! Request bodies: read within their bounds in size and time, as JSON only.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::problem::{Problem, ProblemKind};
use super::state::AppState;

/// A whole body that says it is JSON, not parsed yet; empty where none was sent.
#[derive(Debug)]
pub(super) struct JsonBody(pub(super) Bytes);

impl FromRequest<AppState> for JsonBody {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let limit = state.settings().body_bytes_max;
        let reading = Limited::new(body, limit).collect();
        let deadline = state.settings().body_timeout.to_duration();
        let Ok(read) = tokio::time::timeout(deadline, reading).await else {
            return Err(Problem::new(ProblemKind::BodyTimeout, "The body did not arrive in time."));
        };
        let bytes = read
            .map_err(|error| match error.downcast_ref::<LengthLimitError>() {
                Some(_) => {
                    let detail =
                        format!("The body has more than {limit} bytes; send the events in parts.");
                    Problem::new(ProblemKind::TooLarge, detail)
                }
                None => {
                    let cause =
                        error.source().map_or_else(|| error.to_string(), ToString::to_string);
                    Problem::new(ProblemKind::BadRequest, format!("The body broke off: {cause}."))
                }
            })?
            .to_bytes();
        if !bytes.is_empty() {
            check_kind(&parts.headers)?;
        }
        Ok(Self(bytes))
    }
}

fn check_kind(headers: &HeaderMap) -> Result<(), Problem> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("unreadable"));
    if let Some(encoding) =
        text(header::CONTENT_ENCODING).filter(|encoding| *encoding != "identity")
    {
        let detail =
            format!("`content-encoding: {encoding}` is not read here; send the body as it is.");
        return Err(Problem::new(ProblemKind::UnsupportedMediaType, detail));
    }
    let kind = text(header::CONTENT_TYPE).unwrap_or("none");
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let detail = format!(
        "The body's content-type is `{kind}`; send JSON with `content-type: application/json`."
    );
    Err(Problem::new(ProblemKind::UnsupportedMediaType, detail))
}
