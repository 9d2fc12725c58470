//! Request bodies, bounded in bytes and in time.

use std::future::poll_fn;
use std::pin::Pin;

use axum::body::{Body, HttpBody};
use axum::extract::{FromRef, FromRequest, Request};
use axum::http::{HeaderMap, header};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::HttpSettings;
use super::decompression::{Decompression, DecompressionError, Encoding, UnknownEncoding};
use super::media_type::media_type;
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
        let named = media_type(request.headers());
        if let Some(named) = named.as_ref().filter(|named| !named.is_utf8_of("application/json")) {
            let detail = format!("`{named}` is not accepted here; `application/json` in UTF-8 is.");
            return Err(Problem::new(ProblemKind::UnsupportedMediaType, detail));
        }
        refuse_encoding(request.headers())?;
        let bytes = read_in_time(request, Encoding::Identity, &settings).await?;
        if named.is_some() || bytes.is_empty() {
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

/// A body that says nothing: none, or an object without members.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoBody {}

impl<S> FromRequest<S> for NoBody
where
    S: Send + Sync,
    HttpSettings: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let body = JsonBody::from_request(request, state).await?;
        if body.0.is_empty() { Ok(Self {}) } else { body.read(ProblemKind::MalformedBody) }
    }
}

fn refuse_encoding(headers: &HeaderMap) -> Result<(), Problem> {
    let named = match Encoding::of(headers) {
        Ok(Encoding::Identity) => return Ok(()),
        Ok(known) => known.to_string(),
        Err(UnknownEncoding(named)) => named,
    };
    let detail =
        format!("`content-encoding: {named}` is not accepted here; send the body as it is.");
    Err(Problem::new(ProblemKind::UnsupportedMediaType, detail))
}

/// Reads a body within its time and its bounds, before and after decompression.
pub(super) async fn read_in_time(
    request: Request,
    encoding: Encoding,
    settings: &HttpSettings,
) -> Result<Vec<u8>, Problem> {
    let reading = read(request, encoding, settings.body_bytes_max);
    tokio::time::timeout(settings.body_timeout.to_duration(), reading)
        .await
        .map_err(|_| Problem::of(ProblemKind::BodyTimeout))?
}

async fn read(request: Request, encoding: Encoding, bytes_max: usize) -> Result<Vec<u8>, Problem> {
    let waits_for_consent = request.headers().contains_key(header::EXPECT);
    let mut body = request.into_body();
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > bytes_max && waits_for_consent {
        return Err(too_large(bytes_max, Encoding::Identity));
    }
    let drain_max = bytes_max.saturating_mul(DRAIN_FACTOR);
    let mut taking = Decompression::begin(encoding, bytes_max, announced.min(ROOM_AT_FIRST))
        .map_err(|error| refused(error, encoding, bytes_max));
    let mut length = 0_usize;
    while let Some(data) = next_data(&mut body).await? {
        length = length.saturating_add(data.len());
        if length > drain_max {
            break;
        }
        // What is refused already is read on, so that the client gets to hear why.
        taking = if length > bytes_max {
            Err(too_large(bytes_max, Encoding::Identity))
        } else {
            taking.and_then(|mut taking| match taking.take(&data) {
                Ok(()) => Ok(taking),
                Err(error) => Err(refused(error, encoding, bytes_max)),
            })
        };
    }
    taking?.finish().map_err(|error| refused(error, encoding, bytes_max))
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

/// The problem of a body that cannot be decompressed.
fn refused(error: DecompressionError, encoding: Encoding, bytes_max: usize) -> Problem {
    match error {
        DecompressionError::TooLarge => too_large(bytes_max, encoding),
        DecompressionError::Damaged { encoding, source } => {
            let detail =
                format!("The body is not the {encoding} that `content-encoding` says: {source}.");
            Problem::new(ProblemKind::MalformedBody, detail)
        }
    }
}

fn too_large(bytes_max: usize, encoding: Encoding) -> Problem {
    let when = if encoding == Encoding::Identity { "" } else { " when decompressed" };
    let detail =
        format!("The body has more than {bytes_max} bytes{when}; send the events in parts.");
    Problem::new(ProblemKind::TooLarge, detail)
}
