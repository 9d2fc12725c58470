//! Lists page by page: opaque cursors and the link to the next page.

use axum::http::header;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use utoipa::IntoParams;

use super::json::Json;

/// What is escaped in a query string: what RFC 3986 reserves, but for the colons of times.
const RESERVED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':');
/// Bytes that the parameters of most addresses fit into.
const ADDRESS_USUAL: usize = 128;

/// Which page of a list: up to `limit` entries after `after`.
#[derive(Debug)]
pub(super) struct Page<C> {
    /// The list's path, which its cursors name.
    pub(super) list: String,
    /// The most entries wanted.
    pub(super) limit: u32,
    /// Where the page before ended.
    pub(super) after: Option<C>,
}

impl<C: Serialize> Page<C> {
    /// How many entries to read: one more than wanted, to know whether there is a next page.
    pub(super) fn read_limit(&self) -> u32 {
        self.limit.saturating_add(1)
    }

    /// Cuts what was read to the page; the cursor of its last entry when there is more.
    pub(super) fn cut<T>(&self, read: &mut Vec<T>, cursor: impl Fn(&T) -> C) -> Option<String> {
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let more = read.len() > limit;
        read.truncate(limit);
        read.last().filter(|_| more).map(|last| encode_cursor(&self.list, &cursor(last)))
    }
}

/// Documents the parameters of [`Page`].
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "read by `Params::page`; these fields document it")]
pub(super) struct PageParams {
    /// The most entries of the answer.
    #[param(minimum = 1, maximum = 1000, default = 100, example = 100)]
    limit: Option<u32>,
    /// `next_cursor` of the page before, as it was.
    #[param(value_type = String, required = false, pattern = "^[A-Za-z0-9_-]+$")]
    cursor: Option<String>,
}

pub(super) fn encode_cursor(list: &str, cursor: &impl Serialize) -> String {
    // Plain texts and numbers: writing them cannot fail.
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(&(list, cursor)).unwrap_or_default())
}

/// What a cursor stands for; nothing when it is none of this list.
pub(super) fn decode_cursor<C: DeserializeOwned>(list: &str, text: &str) -> Option<C> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let (named, cursor): (String, C) = serde_json::from_slice(&bytes).ok()?;
    (named == list).then_some(cursor)
}

/// The address of a list, from which that of its next page is made.
#[derive(Debug, Clone)]
pub(super) struct PageLink {
    path: String,
    /// The parameters as they go into an address, without the cursor.
    parameters: String,
    cursor: Option<String>,
}

impl PageLink {
    /// The address that was asked for, by its path and its parameters as they are read: however a
    /// parameter was escaped, the cursor is known for what it is.
    pub(super) fn of(path: &str, parameters: &[(String, String)]) -> Self {
        let (mut others, mut cursor) = (String::with_capacity(ADDRESS_USUAL), None);
        for (name, value) in parameters {
            if name == "cursor" {
                cursor = Some(value.clone());
                continue;
            }
            if !others.is_empty() {
                others.push('&');
            }
            others.extend(escaped(name));
            others.push('=');
            others.extend(escaped(value));
        }
        Self { path: path.to_owned(), parameters: others, cursor }
    }

    /// The path of the list.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// The whole of what was asked for.
    pub(super) fn address(&self) -> String {
        let Self { path, parameters, cursor } = self;
        format!("{path}?{parameters}#{}", cursor.as_deref().unwrap_or_default())
    }

    /// The link to the page after this cursor.
    pub(super) fn to_next(&self, cursor: &str) -> String {
        let Self { path, parameters, .. } = self;
        let and = if parameters.is_empty() { "" } else { "&" };
        format!("<{path}?{parameters}{and}cursor={cursor}>; rel=\"next\"")
    }

    /// The answer with this body, and the link when the body has a next page.
    pub(super) fn answer(&self, next_cursor: Option<&str>, body: &impl Serialize) -> Response {
        self.with(next_cursor, Json(body).into_response())
    }

    /// The answer, and the link when there is a next page.
    pub(super) fn with(&self, next_cursor: Option<&str>, answer: Response) -> Response {
        match next_cursor {
            Some(cursor) => ([(header::LINK, self.to_next(cursor))], answer).into_response(),
            None => answer,
        }
    }
}

/// A text as a part of a query string.
fn escaped(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, RESERVED)
}

#[cfg(test)]
mod tests {
    use axum::http::Uri;

    use super::*;

    #[test]
    fn a_page_that_is_full_to_the_brim_has_no_next_one() {
        let page = Page { list: "/v1/list".to_owned(), limit: 2, after: None::<i64> };
        for (mut read, kept, next) in
            [(vec![1, 2], vec![1, 2], None), (vec![1, 2, 3], vec![1, 2], Some(2))]
        {
            let cursor = page.cut(&mut read, |last| *last);
            assert_eq!(read, kept);
            let decoded =
                |list| cursor.as_deref().and_then(|text| decode_cursor::<i64>(list, text));
            assert_eq!((decoded("/v1/list"), decoded("/v1/lists")), (next, None));
        }
    }

    #[test]
    fn the_next_page_keeps_every_parameter_but_the_cursor() {
        for (asked, next) in [
            ("limit=2&cursor=old&a=%2B", "limit=2&a=%2B&cursor=new"),
            ("%63ursor=old&limit=2", "limit=2&cursor=new"),
            (
                "from=2026-10-01T00:00:00Z&a%26b=%c3%A4+%3D",
                "from=2026-10-01T00:00:00Z&a%26b=%C3%A4%20%3D&cursor=new",
            ),
            ("&a&", "a=&cursor=new"),
            ("", "cursor=new"),
        ] {
            let uri: Uri = format!("/v1/list?{asked}").parse().expect("an address");
            let query = uri.query().unwrap_or_default();
            let pairs: Vec<_> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
            let link = PageLink::of(uri.path(), &pairs).to_next("new");
            assert_eq!(link, format!("</v1/list?{next}>; rel=\"next\""), "{asked}");
        }
    }
}
