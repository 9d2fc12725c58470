//! Request bodies: JSON alone, bounded in bytes and in time.

use std::future::poll_fn;
use std::pin::Pin;

use axum::body::{Body, HttpBody};
use axum::extract::{FromRef, FromRequest, Request};
use axum::http::{HeaderMap, header};
use serde::de::DeserializeOwned;

use super::HttpSettings;
use super::problem::Problem;
use super::problem_kind::ProblemKind;
use crate::domain::Object;

/// How many times the limit is read and thrown away, so that the client gets to hear the answer
/// instead of a connection that breaks while it still sends.
const DRAIN_FACTOR: usize = 8;

/// Bytes set aside before any has come; an announced length alone gets no more.
const ROOM_AT_FIRST: usize = 64 * 1024;

/// The bytes of a body that says it is JSON. Without a body it is empty.
#[derive(Debug)]
pub(super) struct JsonBody(pub(super) Vec<u8>);

impl<S> FromRequest<S> for JsonBody
where
    S: Send + Sync,
    HttpSettings: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let settings = HttpSettings::from_ref(state);
        let names_json = says_json(request.headers())?;
        refuse_encoding(request.headers())?;
        let reading = read(request, settings.body_bytes_max);
        let bytes = tokio::time::timeout(settings.body_timeout.to_duration(), reading)
            .await
            .map_err(|_| Problem::of(ProblemKind::BodyTimeout))??;
        if names_json || bytes.is_empty() {
            Ok(Self(bytes))
        } else {
            Err(Problem::new(
                ProblemKind::UnsupportedMediaType,
                "The request names no content type; `application/json` is accepted.",
            ))
        }
    }
}

impl JsonBody {
    /// The body, an object, as a `T`.
    ///
    /// # Errors
    /// What is not JSON is a malformed body; JSON that is no `T` is a problem of `kind`.
    pub(super) fn read<T: DeserializeOwned>(&self, kind: ProblemKind) -> Result<T, Problem> {
        serde_json::from_slice(&self.0).map(|Object(value)| value).map_err(|error| {
            let kind = if error.is_data() { kind } else { ProblemKind::MalformedBody };
            Problem::new(kind, format!("The body cannot be read: {error}."))
        })
    }
}

/// Whether the headers say that the body is JSON; a fault when they say that it is something else.
fn says_json(headers: &HeaderMap) -> Result<bool, Problem> {
    let Some(content_type) = headers.get(header::CONTENT_TYPE) else { return Ok(false) };
    let text = content_type.to_str().unwrap_or_default();
    let mut parts = text.split(';').map(|part| part.trim().to_ascii_lowercase());
    let is_json = parts.next().as_deref() == Some("application/json");
    if is_json && parts.all(|part| part.is_empty() || is_utf8(&part)) {
        return Ok(true);
    }
    let detail = format!("`{text}` is not accepted here; `application/json` in UTF-8 is.");
    Err(Problem::new(ProblemKind::UnsupportedMediaType, detail))
}

fn is_utf8(parameter: &str) -> bool {
    matches!(parameter, "charset=utf-8" | "charset=\"utf-8\"" | "charset=utf8")
}

fn refuse_encoding(headers: &HeaderMap) -> Result<(), Problem> {
    let encoding = headers.get(header::CONTENT_ENCODING);
    match encoding.map(|encoding| encoding.to_str().unwrap_or_default()) {
        None | Some("" | "identity") => Ok(()),
        Some(encoding) => Err(Problem::new(
            ProblemKind::UnsupportedMediaType,
            format!("`content-encoding: {encoding}` is not accepted; send the body as it is."),
        )),
    }
}

async fn read(request: Request, bytes_max: usize) -> Result<Vec<u8>, Problem> {
    let waits_for_consent = request.headers().contains_key(header::EXPECT);
    let mut body = request.into_body();
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > bytes_max && waits_for_consent {
        return Err(too_large(bytes_max));
    }
    let drain_max = bytes_max.saturating_mul(DRAIN_FACTOR);
    let mut bytes = Vec::with_capacity(announced.min(ROOM_AT_FIRST));
    let mut length = 0_usize;
    while let Some(data) = next_data(&mut body).await? {
        length = length.saturating_add(data.len());
        if length > drain_max {
            break;
        }
        if length <= bytes_max {
            bytes.extend_from_slice(&data);
        }
    }
    if length > bytes_max { Err(too_large(bytes_max)) } else { Ok(bytes) }
}

async fn next_data(body: &mut Body) -> Result<Option<axum::body::Bytes>, Problem> {
    loop {
        match poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await {
            None => return Ok(None),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
            Some(Err(_)) => {
                let detail = "The body broke off before its end.";
                return Err(Problem::new(ProblemKind::MalformedBody, detail));
            }
        }
    }
}

fn too_large(bytes_max: usize) -> Problem {
    let detail = format!("The body has more than {bytes_max} bytes; send the events in parts.");
    Problem::new(ProblemKind::TooLarge, detail)
}
