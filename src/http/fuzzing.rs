//! Addresses and compressed bodies, as bytes that can be anything.

use axum::http::{HeaderMap, HeaderValue, Uri, header};

use super::decompression::{Decompression, Encoding};
use super::folds::calendar;
use super::format::Format;
use super::paging::{decode_cursor, encode_cursor};
use super::params::Params;
use super::windows::RowCursor;

const BYTES_MAX: usize = 16 * 1024;

/// Decompresses a body whole and byte by byte: the same comes out, and never more than allowed.
pub(crate) fn compressed_body(bytes: &[u8]) {
    let encoding = match bytes.first() {
        Some(0) => Encoding::Gzip,
        Some(1) => Encoding::Zstd,
        Some(_) => Encoding::Identity,
        None => return,
    };
    let decompressed = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let mut body = Decompression::begin(encoding, BYTES_MAX, 0).ok()?;
        for piece in pieces {
            body.take(piece).ok()?;
        }
        body.finish().ok()
    };
    let whole = decompressed(&mut std::iter::once(&bytes[1..]));
    let pieced = decompressed(&mut bytes[1..].chunks(1));
    // Cut in pieces, libzstd lets pass a frame that names another length than it has, if its last block is
    // empty. What is in its blocks is there all the same.
    assert!(whole.is_none() || whole == pieced);
    assert!(pieced.is_none_or(|body| body.len() <= BYTES_MAX));
}

/// Reads an address's parameters as every list and report together would. The address of the next page
/// asks for the same.
pub(crate) fn query_parameters(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (accept, text) = text.split_once('\n').unwrap_or(("", text));
    let Ok(uri) = format!("/v1/list?{text}").parse::<Uri>() else { return };
    let Ok(mut params) = Params::of(&uri, 1_000) else { return };
    let mut headers = HeaderMap::new();
    if let Ok(accept) = HeaderValue::from_str(accept) {
        headers.append(header::ACCEPT, accept);
    }
    let range = params.range();
    let (_, _) = (params.as_of(), params.query_name());
    let _ = (params.flag("final"), params.parse::<crate::domain::Currency>("currency"));
    let _ = (params.parse::<crate::domain::Percent>("target"), calendar(&mut params));
    let _ = Format::of(&mut params, &headers);
    let page = params.page::<RowCursor>();
    let is_right = params.finish().is_ok();
    assert!(!is_right || (1..=1_000).contains(&page.limit));
    if let (true, Some(from), Some(to)) = (is_right, range.from, range.to) {
        assert!(from <= to);
    }
    if let Some(cursor) = page.after {
        let again = decode_cursor::<RowCursor>("/v1/list", &encode_cursor("/v1/list", &cursor));
        assert_eq!(again.map(|again| again.key()), Some(cursor.key()));
    }
}
