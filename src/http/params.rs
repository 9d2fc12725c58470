//! Query parameters: read by name, each at most once, none ignored.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Display;
use std::str::FromStr;

use axum::extract::{FromRef, FromRequestParts, Path};
use axum::http::Uri;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use utoipa::IntoParams;

use super::HttpSettings;
use super::paging::{Page, PageLink, decode_cursor};
use super::problem::Problem;
use super::problem_kind::ProblemKind;
use crate::domain::{EventField, EventId, EventTime, Fault, QueryName, RangeEnd};

const LIMIT_DEFAULT: u32 = 100;
/// The most faults that an answer names.
const FAULTS_MAX: usize = 20;
const FOREIGN_CURSOR: &str = "is not a cursor of this list; take it from `next_cursor` as it is";

/// The half-open range of a report. Both ends may be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Range {
    /// The first moment inside: RFC 3339 with `Z` or an offset (its `+` written `%2B`), from
    /// 1900-01-01T00:00:00Z to 2200-01-01T00:00:00Z.
    #[param(value_type = Option<String>, format = DateTime, example = "2026-10-01T00:00:00Z")]
    pub(super) from: Option<EventTime>,
    /// The first moment no longer inside, in the same form and bounds.
    #[param(value_type = Option<String>, format = DateTime, example = "2026-10-02T00:00:00Z")]
    pub(super) to: Option<EventTime>,
}

/// Documents the moment to read as of.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "read by `Params::as_of`; this documents it")]
pub(super) struct AsOfParams {
    /// As it stood at this moment, by the database's clock: not in the future, and not before the query
    /// was created or last reset. RFC 3339 with `Z` or an offset (its `+` written `%2B`). The answer is
    /// the same whenever it is asked for.
    #[param(value_type = Option<String>, format = DateTime, example = "2026-10-05T22:00:00Z")]
    as_of: Option<String>,
}

/// The query parameters of a request. What is not asked for by [`finish`](Self::finish) is a fault.
#[derive(Debug)]
pub(super) struct Params {
    link: PageLink,
    limit_max: u32,
    given: BTreeMap<String, String>,
    known: Vec<Cow<'static, str>>,
    faults: Vec<Fault>,
}

impl<S> FromRequestParts<S> for Params
where
    S: Send + Sync,
    HttpSettings: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Self::of(&parts.uri, HttpSettings::from_ref(state).list_limit_max)
    }
}

/// Whether a part of a query string says UTF-8: reading it would put other characters in place of what
/// does not.
fn is_utf8(pair: &str) -> bool {
    percent_encoding::percent_decode_str(pair).decode_utf8().is_ok()
}

impl Params {
    /// Of an address, whose lists may be asked for so many entries at most.
    ///
    /// # Errors
    /// [`ProblemKind::InvalidParameters`] where it is not UTF-8.
    pub(super) fn of(uri: &Uri, limit_max: u32) -> Result<Self, Problem> {
        let query = uri.query().unwrap_or_default();
        if let Some(broken) = query.split('&').find(|pair| !is_utf8(pair)) {
            let detail =
                format!("`{broken}` is not UTF-8 when its `%` are read; escape UTF-8 bytes.");
            return Err(Problem::new(ProblemKind::InvalidParameters, detail));
        }
        let pairs: Vec<_> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let link = PageLink::of(uri.path(), &pairs);
        let (given, known, faults) = (BTreeMap::new(), Vec::new(), Vec::new());
        let mut params = Self { link, limit_max, given, known, faults };
        for (name, value) in pairs {
            // Postgres cannot store it, so it would fail there instead.
            if value.contains('\0') {
                params.fault(&name, "invalid", "holds a NUL character");
            }
            if params.has(&name) {
                params.fault(&name, "repeated", "is there twice; give it once");
            }
            params.given.insert(name, value);
        }
        Ok(params)
    }

    /// The text of a parameter, which is known from now on.
    pub(super) fn text(&mut self, name: impl Into<Cow<'static, str>>) -> Option<String> {
        let name = name.into();
        let text = self.given.remove(&*name);
        self.known.push(name);
        text
    }

    /// Whether a parameter is there; to be asked before it is read.
    pub(super) fn has(&self, name: &str) -> bool {
        self.given.contains_key(name)
    }

    /// A parameter read as `T`.
    pub(super) fn parse<T: FromStr<Err: Display>>(&mut self, name: &'static str) -> Option<T> {
        let text = self.text(name)?;
        self.parse_text(name, &text)
    }

    /// A parameter read as `T`; `default` is read where it is left out.
    pub(super) fn parse_or<T: FromStr<Err: Display>>(
        &mut self,
        name: &'static str,
        default: &str,
    ) -> Option<T> {
        let text = self.text(name).unwrap_or_else(|| default.to_owned());
        self.parse_text(name, &text)
    }

    fn parse_text<T: FromStr<Err: Display>>(&mut self, name: &str, text: &str) -> Option<T> {
        match text.parse() {
            Ok(value) => Some(value),
            Err(error) => {
                self.fault(name, "invalid", format_args!("`{text}` {error}"));
                None
            }
        }
    }

    /// A parameter that is one of a few words.
    pub(super) fn word(
        &mut self,
        name: &'static str,
        words: &[&'static str],
    ) -> Option<&'static str> {
        let text = self.text(name)?;
        let word = words.iter().copied().find(|word| *word == text);
        if word.is_none() {
            let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            self.fault(name, "invalid", format_args!("`{text}` is not {}", words.join(" nor ")));
        }
        word
    }

    /// A parameter that is `true` or `false`.
    pub(super) fn flag(&mut self, name: &'static str) -> Option<bool> {
        self.word(name, &["true", "false"]).map(|word| word == "true")
    }

    /// The query that `?query=` names, or the one that every service has.
    pub(super) fn query_name(&mut self) -> Result<QueryName, Problem> {
        let name = self.text("query").unwrap_or_else(|| "hourly_sales".to_owned());
        name.parse().map_err(|fault| Problem::no_query_name(&name, &fault))
    }

    /// `from` and `to`.
    pub(super) fn range(&mut self) -> Range {
        let mut end = |name| self.parse(name).map(|RangeEnd(time)| time);
        let range = Range { from: end("from"), to: end("to") };
        if let (Some(from), Some(to)) = (range.from, range.to)
            && from > to
        {
            self.fault("from", "out_of_range", format_args!("{from} is after `to`, {to}"));
        }
        range
    }

    /// The moment to read as of.
    pub(super) fn as_of(&mut self) -> Option<EventTime> {
        self.parse("as_of").map(|RangeEnd(moment)| moment)
    }

    /// The values that fields of a query's `group_by` must have, by their places in it.
    pub(super) fn group(&mut self, fields: &[EventField]) -> Vec<(usize, String)> {
        let named = fields.iter().enumerate();
        named.filter_map(|(index, field)| Some((index, self.text(field.to_string())?))).collect()
    }

    /// `limit` and `cursor`, the latter read as what the list goes on after.
    pub(super) fn page<C: DeserializeOwned>(&mut self) -> Page<C> {
        let limit = self.limit();
        let after = self.text("cursor").and_then(|text| {
            let after = decode_cursor(self.link.path(), &text);
            if after.is_none() {
                self.foreign_cursor();
            }
            after
        });
        Page { list: self.link.path().to_owned(), limit, after }
    }

    /// `limit`.
    pub(super) fn limit(&mut self) -> u32 {
        let Some(text) = self.text("limit") else { return LIMIT_DEFAULT.min(self.limit_max) };
        // Rust reads `+5` too.
        let digits = Some(&text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        match digits.and_then(|digits| digits.parse().ok()) {
            Some(limit) if (1..=self.limit_max).contains(&limit) => limit,
            Some(_) | None => {
                let detail = format!("`{text}` is not a whole number from 1 to {}", self.limit_max);
                self.fault("limit", "out_of_range", detail);
                LIMIT_DEFAULT
            }
        }
    }

    /// Notes what is wrong with a parameter, unless that is known of enough of them.
    pub(super) fn fault(&mut self, name: &str, code: &'static str, detail: impl Display) {
        if self.faults.len() == FAULTS_MAX {
            return;
        }
        let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
        self.faults.push(Fault::new(pointer, code, format!("`{name}`: {detail}")));
    }

    /// Notes that a cursor was not made for this list.
    pub(super) fn foreign_cursor(&mut self) {
        self.fault("cursor", "invalid", FOREIGN_CURSOR);
    }

    /// The problem with a cursor that was not made for this list, as it turns out later.
    pub(super) fn problem_of_a_foreign_cursor() -> Problem {
        let fault = Fault::new("/cursor", "invalid", format!("`cursor`: {FOREIGN_CURSOR}"));
        Problem::with_faults(ProblemKind::InvalidParameters, vec![fault])
    }

    fn known_names(&self) -> String {
        let known: Vec<String> = self.known.iter().map(|name| format!("`{name}`")).collect();
        match known.as_slice() {
            [] => "no parameter is known here".to_owned(),
            names => format!("not known here; known are {}", names.join(", ")),
        }
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// A problem that names every parameter at fault, up to 20; among them those that nobody asked for.
    pub(super) fn finish(mut self) -> Result<PageLink, Problem> {
        if !self.given.is_empty() {
            let known = self.known_names();
            for name in std::mem::take(&mut self.given).into_keys() {
                self.fault(&name, "unknown", &known);
            }
        }
        match self.faults.first() {
            None => Ok(self.link),
            Some(first) => {
                let detail = format!("{}.", first.detail);
                let problem = Problem::new(ProblemKind::InvalidParameters, detail);
                Err(problem.and_faults(self.faults))
            }
        }
    }
}

/// No parameter at all: each that is there is a fault.
#[derive(Debug)]
pub(super) struct NoParams;

impl<S> FromRequestParts<S> for NoParams
where
    S: Send + Sync,
    HttpSettings: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Params::from_request_parts(parts, state).await?.finish()?;
        Ok(Self)
    }
}

/// The query that an address names. A text that cannot be a name is a query that is not there.
#[derive(Debug, IntoParams)]
#[into_params(names("name"), parameter_in = Path)]
pub(super) struct NamedQuery(
    /// The query's name: `[a-z0-9][a-z0-9_-]{0,99}`.
    #[param(value_type = String, pattern = "^[a-z0-9][a-z0-9_-]{0,99}$", example = "hourly_sales")]
    pub(super) QueryName,
);

impl<S: Send + Sync> FromRequestParts<S> for NamedQuery {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(name) = Path::<String>::from_request_parts(parts, state)
            .await
            .map_err(|_| Problem::of(ProblemKind::NoSuchQuery))?;
        name.parse().map(Self).map_err(|fault| Problem::no_query_name(&name, &fault))
    }
}

/// The event that an address names, as far as its text can be an id.
#[derive(Debug, IntoParams)]
#[into_params(names("event_id"), parameter_in = Path)]
pub(super) struct NamedEvent(
    /// The event's id, percent-encoded where it holds anything but letters, digits and `-._~`.
    #[param(value_type = String, example = "1006-placed")]
    Option<EventId>,
);

impl<S: Send + Sync> FromRequestParts<S> for NamedEvent {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let id = Path::<String>::from_request_parts(parts, state).await.ok();
        Ok(Self(id.and_then(|Path(id)| id.parse().ok())))
    }
}

impl NamedEvent {
    /// The id; a text that cannot be one belongs to no event, which is a problem of `kind`.
    pub(super) fn or(self, kind: ProblemKind) -> Result<EventId, Problem> {
        self.0.ok_or(Problem::of(kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Vec<String> {
        let uri: Uri = format!("/v1/list?{query}").parse().expect("an address");
        let mut params = Params::of(&uri, 1_000).expect("UTF-8");
        params.range();
        params.flag("final");
        params.page::<i64>();
        let faults = params.finish().map_err(|problem| problem.errors().to_vec());
        faults.err().unwrap_or_default().into_iter().map(|fault| fault.detail).collect()
    }

    #[test]
    fn what_is_wrong_with_a_parameter_is_said_by_its_name() {
        for (query, detail) in [
            ("", None),
            ("limit=1&final=true&from=2026-10-01T00:00:00Z", None),
            ("limit=0", Some("`limit`: `0` is not a whole number from 1 to 1000")),
            ("limit=1001", Some("`limit`: `1001` is not a whole number from 1 to 1000")),
            ("limit=+5", Some("`limit`: ` 5` is not a whole number from 1 to 1000")),
            ("limit=%2B5", Some("`limit`: `+5` is not a whole number from 1 to 1000")),
            ("final=yes", Some("`final`: `yes` is not `true` nor `false`")),
            ("final=true&final=true", Some("`final`: is there twice; give it once")),
            (
                "store=S1",
                Some("`store`: not known here; known are `from`, `to`, `final`, `limit`, `cursor`"),
            ),
            (
                "from=2026-10-01T00:00:00+02:00",
                Some(
                    "`from`: `2026-10-01T00:00:00 02:00` has a space before its offset; a `+` in an \
                     address must be written `%2B`",
                ),
            ),
            (
                "from=2026-10-02T00:00:00Z&to=2026-10-01T00:00:00Z",
                Some("`from`: 2026-10-02T00:00:00Z is after `to`, 2026-10-01T00:00:00Z"),
            ),
            (
                "cursor=zzz",
                Some("`cursor`: is not a cursor of this list; take it from `next_cursor` as it is"),
            ),
            ("x=%00", Some("`x`: holds a NUL character")),
        ] {
            assert_eq!(read(query).first().map(String::as_str), detail, "{query}");
        }
    }

    #[test]
    fn an_answer_names_no_more_than_twenty_faults() {
        let query: Vec<String> = (0..1_000).map(|number| format!("p{number}=0")).collect();
        assert_eq!(read(&query.join("&")).len(), FAULTS_MAX);
    }
}
