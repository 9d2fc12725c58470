//! The body of a post of events: its format, and its bytes as they were before compression.

use axum::extract::{FromRef, FromRequest, Request};
use axum::http::HeaderMap;

use super::HttpSettings;
use super::body::read_in_time;
use super::decompression::{Encoding, UnknownEncoding};
use super::media_type::media_type;
use super::problem::Problem;
use super::problem_kind::ProblemKind;
use crate::intake::BodyFormat;

/// Every format by its content type.
const FORMATS: [(&str, BodyFormat); 4] = [
    ("application/json", BodyFormat::Json),
    ("application/x-ndjson", BodyFormat::NdJson),
    ("application/cloudevents+json", BodyFormat::CloudEvent),
    ("application/cloudevents-batch+json", BodyFormat::CloudEventBatch),
];

/// A body of events.
#[derive(Debug)]
pub(super) struct PostedBody {
    /// How the events are written.
    pub(super) format: BodyFormat,
    /// Decompressed.
    pub(super) bytes: Vec<u8>,
}

impl<S> FromRequest<S> for PostedBody
where
    S: Send + Sync,
    HttpSettings: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let settings = HttpSettings::from_ref(state);
        let format = format_of(request.headers())?;
        let encoding = Encoding::of(request.headers())
            .map_err(|UnknownEncoding(named)| unknown_encoding(&named))?;
        let bytes = read_in_time(request, encoding, &settings).await?;
        Ok(Self { format, bytes })
    }
}

fn format_of(headers: &HeaderMap) -> Result<BodyFormat, Problem> {
    let named = media_type(headers);
    let known = named.as_ref().and_then(|named| {
        FORMATS.into_iter().find(|(content_type, _)| named.is_utf8_of(content_type))
    });
    known.map(|(_, format)| format).ok_or_else(|| {
        let found = named.map_or("The request names no content type".to_owned(), |named| {
            format!("`{named}` is not accepted here")
        });
        let [json, ndjson, cloud_event, batch] = FORMATS.map(|(content_type, _)| content_type);
        let detail =
            format!("{found}; `{json}`, `{ndjson}`, `{cloud_event}` and `{batch}`, in UTF-8, are.");
        Problem::new(ProblemKind::UnsupportedMediaType, detail)
    })
}

fn unknown_encoding(named: &str) -> Problem {
    let detail = format!("`content-encoding: {named}` is not accepted; `gzip` and `zstd` are.");
    Problem::new(ProblemKind::UnsupportedMediaType, detail)
}
