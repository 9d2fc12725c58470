//! What an answer says of how long it holds: a strong tag, and how it may be kept; and whether a client
//! has it already.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use super::coding::Coding;
use super::format::Format;
use crate::database::Revision;
use crate::domain::StoreReach;

/// What of an answer a client may depend on: an `Accept`, a coding, and the stores of a key.
const VARY: &str = "accept, accept-encoding, authorization";

/// What makes one answer another than the next: equal sources make equal bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Source {
    /// What there was to show.
    pub(super) revision: Revision,
    /// The path and all parameters.
    pub(super) address: String,
    /// Its form.
    pub(super) format: Format,
    /// Whose rows.
    pub(super) reach: StoreReach,
}

impl Source {
    /// The strong tag (RFC 9110, 8.8.3) of these bytes in a coding, from this version of the service.
    pub(super) fn tag(&self, coding: Coding) -> HeaderValue {
        let mut hasher = DefaultHasher::new();
        (self, coding, env!("CARGO_PKG_VERSION")).hash(&mut hasher);
        let tag = format!("\"{:016x}\"", hasher.finish());
        // Sixteen digits in quotes, which every header may hold.
        HeaderValue::try_from(tag).unwrap_or(HeaderValue::from_static("\"\""))
    }
}

/// Whether a client has the answer of this tag (`If-None-Match`).
pub(super) fn is_known(headers: &HeaderMap, tag: &HeaderValue) -> bool {
    let tag = tag.as_bytes();
    let known = headers.get_all(header::IF_NONE_MATCH).iter();
    known.flat_map(|value| value.as_bytes().split(|byte| *byte == b',')).any(|known| {
        let known = known.trim_ascii();
        known == b"*" || known.strip_prefix(b"W/").unwrap_or(known) == tag
    })
}

/// How an answer may be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeping {
    /// Ask each time whether it still holds.
    Ask,
    /// Its rows never change again. What came too late for them may, and so may the watermark beside
    /// them: a minute later it is asked again.
    Final,
    /// It is of a moment in the past.
    Forever,
}

impl Keeping {
    const fn header(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Ask => "no-cache",
            Self::Final => "max-age=60, immutable",
            Self::Forever => "max-age=31536000, immutable",
        })
    }
}

/// The answer says how it may be kept, and its tag where it has one.
pub(super) fn validated(
    mut answer: Response,
    keeping: Keeping,
    tag: Option<HeaderValue>,
) -> Response {
    let headers = answer.headers_mut();
    headers.insert(header::VARY, HeaderValue::from_static(VARY));
    headers.insert(header::CACHE_CONTROL, keeping.header());
    if let Some(tag) = tag {
        headers.insert(header::ETAG, tag);
    }
    answer
}

/// The client has it already.
pub(super) fn not_modified(keeping: Keeping, tag: HeaderValue) -> Response {
    validated(StatusCode::NOT_MODIFIED.into_response(), keeping, Some(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_what_one_of_its_tags_names() {
        let tag = HeaderValue::from_static("\"a1\"");
        for (sent, known) in [
            (vec![], false),
            (vec!["\"a1\""], true),
            (vec!["W/\"a1\""], true),
            (vec!["\"b2\", \"a1\""], true),
            (vec!["\"b2\"", "\"a1\""], true),
            (vec!["*"], true),
            (vec!["\"b2\""], false),
            (vec!["a1"], false),
            (vec!["\"A1\""], false),
        ] {
            let mut headers = HeaderMap::new();
            for value in &sent {
                headers.append(header::IF_NONE_MATCH, HeaderValue::from_static(value));
            }
            assert_eq!(is_known(&headers, &tag), known, "{sent:?}");
        }
    }
}
