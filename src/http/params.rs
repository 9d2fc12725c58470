//! The parameters of an address: nothing unknown, nothing twice, nothing ignored.

use std::fmt::Display;
use std::str::FromStr;

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::problem::{ErrorBody, Problem, ProblemKind};
use crate::domain::EventTime;

const LIMIT_DEFAULT: u32 = 100;
/// The most entries of one page.
pub(super) const LIMIT_MAX: u32 = 1_000;

/// The parameters of a request, taken out one by one.
#[derive(Debug, Default)]
pub(super) struct Params {
    pairs: Vec<(String, String)>,
    known: Vec<String>,
    errors: Vec<ErrorBody>,
}

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let Query(pairs) =
            Query::<Vec<(String, String)>>::try_from_uri(&parts.uri).map_err(|_| {
                Problem::new(
                    ProblemKind::BadRequest,
                    "The parameters of the address are not `name=value&…`.",
                )
            })?;
        Ok(Self { pairs, ..Self::default() })
    }
}

impl Params {
    /// Takes a parameter out.
    pub(super) fn take(&mut self, name: &str) -> Option<String> {
        self.known.push(name.to_owned());
        let mut found = Vec::new();
        self.pairs.retain(|(pair, value)| {
            let is_it = pair == name;
            if is_it {
                found.push(value.clone());
            }
            !is_it
        });
        if found.len() > 1 {
            self.error(name, "repeated", "is given more than once");
        }
        found.into_iter().next()
    }

    /// Takes a parameter out and reads it.
    pub(super) fn parse<T: FromStr<Err: Display>>(&mut self, name: &str) -> Option<T> {
        let text = self.take(name)?;
        match text.parse() {
            Ok(value) => Some(value),
            Err(error) => {
                self.error(name, "invalid", format!("`{text}` {error}"));
                None
            }
        }
    }

    /// `true` or `false`.
    pub(super) fn flag(&mut self, name: &str) -> Option<bool> {
        match self.take(name)?.as_str() {
            "true" => Some(true),
            "false" => Some(false),
            other => {
                self.error(name, "invalid", format!("`{other}` is neither `true` nor `false`"));
                None
            }
        }
    }

    /// A parameter that has only these values.
    pub(super) fn word(&mut self, name: &str, allowed: &[&str]) -> Option<String> {
        let value = self.take(name)?;
        if !allowed.contains(&value.as_str()) {
            self.error(name, "invalid", format!("`{value}` is none of: {}", allowed.join(", ")));
        }
        Some(value)
    }

    /// How many entries a page has.
    pub(super) fn limit(&mut self) -> u32 {
        let Some(text) = self.take("limit") else { return LIMIT_DEFAULT };
        match text.parse() {
            Ok(limit) if (1..=LIMIT_MAX).contains(&limit) => limit,
            _ => {
                self.error(
                    "limit",
                    "out_of_range",
                    format!("`{text}` is not a number from 1 to {LIMIT_MAX}"),
                );
                LIMIT_DEFAULT
            }
        }
    }

    /// The half-open range `[from, to)`.
    pub(super) fn range(&mut self) -> (Option<EventTime>, Option<EventTime>) {
        let (from, to) = (self.parse("from"), self.parse("to"));
        if let (Some(from), Some(to)) = (from, to)
            && from > to
        {
            self.error(
                "from",
                "out_of_range",
                "is after `to`; a range runs from `from` up to but without `to`",
            );
        }
        (from, to)
    }

    /// Where a page goes on.
    pub(super) fn cursor<T: DeserializeOwned>(&mut self) -> Option<T> {
        let text = self.take("cursor")?;
        let bytes = URL_SAFE_NO_PAD.decode(&text).ok();
        let cursor = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        if cursor.is_none() {
            self.error(
                "cursor",
                "invalid",
                "is not one that this address answered as `next_cursor`",
            );
        }
        cursor
    }

    /// Notes a fault of a parameter.
    pub(super) fn error(&mut self, name: &str, code: &'static str, detail: impl Into<String>) {
        self.errors.push(ErrorBody { pointer: format!("?{name}"), code, detail: detail.into() });
    }

    /// The problem of everything that was wrong, unknown parameters included.
    ///
    /// # Errors
    /// 400 when anything was.
    pub(super) fn finish(mut self) -> Result<(), Problem> {
        for (name, _) in std::mem::take(&mut self.pairs) {
            let known =
                if self.known.is_empty() { "none".to_owned() } else { self.known.join(", ") };
            self.error(
                &name,
                "unknown_parameter",
                format!("is not known here; known are: {known}"),
            );
        }
        match self.errors.first() {
            None => Ok(()),
            Some(first) => {
                let detail = format!("{} {}.", first.pointer.trim_start_matches('?'), first.detail);
                Err(Problem::new(ProblemKind::BadRequest, detail).with_errors(self.errors))
            }
        }
    }
}

/// An opaque cursor that [`Params::cursor`] reads.
pub(super) fn encode_cursor(cursor: &impl Serialize) -> String {
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(cursor).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(query: &str) -> Params {
        let uri = format!("http://localhost/x?{query}").parse().expect("an address");
        let Query(pairs) = Query::try_from_uri(&uri).expect("pairs");
        Params { pairs, ..Params::default() }
    }

    #[test]
    fn an_unknown_or_repeated_or_malformed_parameter_is_refused_by_name() {
        for (query, pointer, code) in [
            ("colour=red", "?colour", "unknown_parameter"),
            ("limit=5&limit=6", "?limit", "repeated"),
            ("limit=0", "?limit", "out_of_range"),
            ("limit=1001", "?limit", "out_of_range"),
            ("cursor=nonsense", "?cursor", "invalid"),
            ("from=2026-10-01T09:00:00", "?from", "invalid"),
            ("from=2026-10-01T09:00:00+02:00", "?from", "invalid"),
            ("from=2026-10-02T00:00:00Z&to=2026-10-01T00:00:00Z", "?from", "out_of_range"),
        ] {
            let mut params = params(query);
            params.limit();
            params.range();
            params.cursor::<i64>();
            assert_eq!(params.errors.len() + params.pairs.len(), 1, "{query}");
            let problem = params.finish();
            let text = format!("{problem:?}");
            assert!(
                problem.is_err() && text.contains(pointer) && text.contains(code),
                "{query}: {text}"
            );
        }
    }

    #[test]
    fn a_cursor_is_read_back_as_it_was_written() {
        let mut params = params(&format!("cursor={}", encode_cursor(&(7, "S1"))));
        assert_eq!(params.cursor::<(i64, String)>(), Some((7, "S1".to_owned())));
        assert!(params.finish().is_ok());
    }
}
