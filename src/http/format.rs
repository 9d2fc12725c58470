//! The form of an answer: JSON, CSV or NDJSON, by `format` or else by `Accept`.

use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse as _, Response};
use utoipa::IntoParams;

use super::params::Params;
use super::problem::Problem;
use super::problem_kind::ProblemKind;

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Format {
    /// One object, page by page.
    Json,
    /// The CSV dialect of [`table`](crate::table), with a header row.
    Csv,
    /// An object a row, each on its line.
    NdJson,
}

/// Documents `format`; [`Format::of`] reads it.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "read by `Format::of`; this documents it")]
pub(super) struct FormatParams {
    /// The form of the answer: `json`, `csv` or `ndjson`. Left out: what the header `Accept` asks for, JSON
    /// unless that is `text/csv` or `application/x-ndjson`. As CSV and NDJSON a list comes whole, as a
    /// stream, unless `limit` is given.
    #[param(pattern = "^(json|csv|ndjson)$", default = "json", example = "json")]
    format: Option<String>,
}

const WORDS: [(&str, Format); 3] =
    [("json", Format::Json), ("csv", Format::Csv), ("ndjson", Format::NdJson)];

/// What a part of `Accept` may name, and what it means, the first preferred among equals.
const MEDIA_RANGES: [(&str, Format); 7] = [
    ("application/json", Format::Json),
    ("application/x-ndjson", Format::NdJson),
    ("application/ndjson", Format::NdJson),
    ("text/csv", Format::Csv),
    ("*/*", Format::Json),
    ("application/*", Format::Json),
    ("text/*", Format::Csv),
];

impl Format {
    /// The form that a request asks for. An unknown `format` is a fault of `params`.
    ///
    /// # Errors
    /// A problem when nothing that `Accept` names can be had.
    pub(super) fn of(params: &mut Params, headers: &HeaderMap) -> Result<Self, Problem> {
        if params.has("format") {
            let word = params.word("format", &WORDS.map(|(word, _)| word));
            let named = WORDS.into_iter().find(|(name, _)| word == Some(*name));
            return Ok(named.map_or(Self::Json, |(_, format)| format));
        }
        params.word("format", &[]);
        let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|one| one.to_str().ok());
        let accepted: Vec<&str> = accepted.collect();
        if accepted.is_empty() {
            return Ok(Self::Json);
        }
        accepted_form(&accepted.join(",")).ok_or(Problem::of(ProblemKind::NotAcceptable))
    }

    /// The content type of answers in this form.
    pub(super) const fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Csv => "text/csv; charset=utf-8; header=present",
            Self::NdJson => "application/x-ndjson",
        }
    }
}

/// An answer that another `Accept` would have in another form.
pub(super) fn vary_by_accept(answer: Response) -> Response {
    ([(header::VARY, "accept")], answer).into_response()
}

/// The form that `Accept` prefers: by quality, and among equals by exactness.
fn accepted_form(accept: &str) -> Option<Format> {
    let mut best: Option<(u16, bool, Format)> = None;
    for part in accept.split(',') {
        let mut pieces = part.split(';').map(|piece| piece.trim().to_ascii_lowercase());
        let range = pieces.next().unwrap_or_default();
        let quality =
            pieces.find_map(|piece| piece.strip_prefix("q=").map(quality)).unwrap_or(1000);
        let known = MEDIA_RANGES.into_iter().find(|(name, _)| *name == range);
        let Some((name, format)) = known.filter(|_| quality > 0) else { continue };
        let rank = (quality, !name.ends_with('*'));
        if best.is_none_or(|(quality, exact, _)| rank > (quality, exact)) {
            best = Some((rank.0, rank.1, format));
        }
    }
    best.map(|(_, _, format)| format)
}

/// A quality in thousandths; what is none counts as the highest.
pub(super) fn quality(text: &str) -> u16 {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let thousandths = format!("{part:0<3}");
    match (whole, thousandths.get(..3).and_then(|digits| digits.parse::<u16>().ok())) {
        ("0", Some(thousandths)) => thousandths,
        _ => 1000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_is_what_accept_prefers() {
        for (accept, format) in [
            ("*/*", Some(Format::Json)),
            ("text/csv", Some(Format::Csv)),
            ("Text/CSV; charset=utf-8", Some(Format::Csv)),
            ("application/x-ndjson", Some(Format::NdJson)),
            ("application/json, text/csv", Some(Format::Json)),
            ("application/json;q=0.5, text/csv;q=0.8", Some(Format::Csv)),
            ("*/*, text/csv", Some(Format::Csv)),
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", Some(Format::Json)),
            ("text/csv;q=0", None),
            ("text/html", None),
            ("application/problem+json", None),
            ("", None),
        ] {
            assert_eq!(accepted_form(accept), format, "{accept}");
        }
    }
}
