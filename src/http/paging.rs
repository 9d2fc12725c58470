//! Lists page by page: opaque cursors and the link to the next page.

use axum::http::{Uri, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde::de::DeserializeOwned;
use utoipa::IntoParams;

use super::json::Json;

/// Which page of a list: up to `limit` entries after `after`.
#[derive(Debug)]
pub(super) struct Page<C> {
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
        read.last().filter(|_| more).map(|last| encode_cursor(&cursor(last)))
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
    cursor: Option<String>,
}

fn encode_cursor(cursor: &impl Serialize) -> String {
    // Plain texts and numbers: writing them cannot fail.
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(cursor).unwrap_or_default())
}

/// What a cursor stands for; nothing when it is none of ours.
pub(super) fn decode_cursor<C: DeserializeOwned>(text: &str) -> Option<C> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()
}

/// The address of a list, from which that of its next page is made.
#[derive(Debug, Clone)]
pub(super) struct PageLink {
    path: String,
    /// The parameters as they came, without the cursor.
    parameters: Vec<String>,
}

impl PageLink {
    /// The address that was asked for.
    pub(super) fn of(uri: &Uri) -> Self {
        let parameters = uri.query().unwrap_or_default().split('&');
        let others = parameters.filter(|one| !one.is_empty() && !one.starts_with("cursor="));
        Self { path: uri.path().to_owned(), parameters: others.map(str::to_owned).collect() }
    }

    fn next(mut self, cursor: &str) -> String {
        self.parameters.push(format!("cursor={cursor}"));
        format!("<{}?{}>; rel=\"next\"", self.path, self.parameters.join("&"))
    }

    /// The answer with this body, and the link when the body has a next page.
    pub(super) fn answer(self, next_cursor: Option<&str>, body: &impl Serialize) -> Response {
        match next_cursor {
            Some(cursor) => ([(header::LINK, self.next(cursor))], Json(body)).into_response(),
            None => Json(body).into_response(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_full_to_the_brim_has_no_next_one() {
        let page = Page { limit: 2, after: None::<i64> };
        for (mut read, kept, next) in
            [(vec![1, 2], vec![1, 2], None), (vec![1, 2, 3], vec![1, 2], Some(2))]
        {
            let cursor = page.cut(&mut read, |last| *last);
            assert_eq!(read, kept);
            assert_eq!(cursor.and_then(|text| decode_cursor::<i64>(&text)), next);
        }
    }

    #[test]
    fn the_next_page_keeps_every_parameter_but_the_cursor() {
        let uri = "/v1/list?limit=2&cursor=old&a=%2B".parse().expect("an address");
        assert_eq!(
            PageLink::of(&uri).next("new"),
            "</v1/list?limit=2&a=%2B&cursor=new>; rel=\"next\""
        );
    }
}
