//! What a body says it is.

use std::fmt;

use axum::http::{HeaderMap, header};

/// A content type as it was sent.
#[derive(Debug)]
pub(super) struct MediaType(String);

/// The content type in the headers, where there is one.
pub(super) fn media_type(headers: &HeaderMap) -> Option<MediaType> {
    let content_type = headers.get(header::CONTENT_TYPE)?;
    Some(MediaType(content_type.to_str().unwrap_or_default().to_owned()))
}

impl MediaType {
    /// Whether it is `name`, such as `application/json`, in no other character set than UTF-8.
    pub(super) fn is_utf8_of(&self, name: &str) -> bool {
        let mut parts = self.0.split(';').map(|part| part.trim().to_ascii_lowercase());
        parts.next().as_deref() == Some(name) && parts.all(|part| part.is_empty() || is_utf8(&part))
    }
}

impl fmt::Display for MediaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_utf8(parameter: &str) -> bool {
    matches!(parameter, "charset=utf-8" | "charset=\"utf-8\"" | "charset=utf8")
}
