//! Lets in who may come in, before anything of a body is read.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath, Request};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, header};

use super::problem::Problem;
use super::problem_kind::ProblemKind;
use super::scopes::{Bound, Need, Rule};
use crate::access::{Caller, Keyring, Refused};
use crate::domain::{Origin, Scope};

/// Who decides who is let in.
#[derive(Debug, Clone)]
pub(super) enum Door {
    /// The keys, by the rule of each address; the pages of these origins may ask as well.
    Keys(Keyring, Arc<[Origin]>),
    /// Nobody: for the tests of what stands around the handlers.
    #[cfg(test)]
    Open,
}

impl Door {
    /// The request with its [`Caller`], if the rule of its address allows them.
    ///
    /// # Errors
    /// A problem for everybody else.
    pub(super) async fn let_in(&self, request: Request) -> Result<Request, Problem> {
        let (mut head, body) = request.into_parts();
        let caller = match self {
            Self::Keys(keyring, origins) => allowed(keyring, origins, &head).await?,
            #[cfg(test)]
            Self::Open => Caller::ANYBODY,
        };
        head.extensions.insert(caller);
        Ok(Request::from_parts(head, body))
    }
}

async fn allowed(keyring: &Keyring, origins: &[Origin], head: &Parts) -> Result<Caller, Problem> {
    // Where there is no address, there is nothing but a problem that says so.
    let Some(path) = head.extensions.get::<MatchedPath>() else { return Ok(Caller::ANYBODY) };
    let rule = Rule::of(&head.method, path.as_str());
    let scope = match rule.need {
        Need::Nothing => return Ok(Caller::ANYBODY),
        Need::AnyKey => None,
        Need::Scope(scope) => Some(scope),
    };
    let caller = keyring.admit(bearer(&head.headers)).await?;
    let Some(grant) = caller.grant() else {
        // No key keeps a page of somebody else from asking in the name of whoever looks at it.
        let is_foreign = is_foreign(&head.headers, origins, keyring.is_local());
        return if is_foreign { Err(Problem::of(ProblemKind::ForeignPage)) } else { Ok(caller) };
    };
    if let Some(scope) = scope.filter(|scope| !grant.allows(*scope)) {
        return Err(missing(scope));
    }
    if grant.reach().is_bound() && rule.bound == Bound::Refused {
        return Err(Problem::of(ProblemKind::OtherStores));
    }
    Ok(caller)
}

/// Whether a page asks that is neither of this service nor of the origins that may: its browser says so in
/// `Origin`. Where a name was made to lead here (DNS rebinding), `Host` is a name that only others give.
fn is_foreign(headers: &HeaderMap, origins: &[Origin], is_local: bool) -> bool {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let host = text(header::HOST).unwrap_or_default();
    let of_another = text(header::ORIGIN).is_some_and(|origin| {
        let of_host = origin.split_once("://").is_some_and(|(_, of)| of.eq_ignore_ascii_case(host));
        !of_host && origins.iter().all(|allowed| allowed.as_str() != origin)
    });
    of_another || (is_local && !host.is_empty() && !is_own_name(host))
}

/// Whether a host is an address, or the name of every machine for itself.
fn is_own_name(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost") || name.parse::<IpAddr>().is_ok()
}

/// The key of the header `Authorization`, if there is one; of a header that shows none as it should, a
/// text that is no key.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let text = values.next()?.to_str().unwrap_or_default();
    let (scheme, key) = text.split_once(' ').unwrap_or_default();
    let is_one = values.next().is_none() && scheme.eq_ignore_ascii_case("bearer");
    Some(if is_one { key.trim() } else { "" })
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::NoKey => unauthorized(false),
            Refused::WrongKey => unauthorized(true),
            Refused::Unknown => Self::of(ProblemKind::DatabaseAway),
        }
    }
}

/// The answer to everybody who shows no key that works (RFC 6750, section 3).
fn unauthorized(shows_one: bool) -> Problem {
    let (detail, challenge) = if shows_one {
        let detail = "The key in the header `Authorization` does not work: it is unknown, wrong, \
                      revoked or expired. It must stand there as `Bearer tm_<id>_<secret>`.";
        (detail, r#"Bearer realm="tillmark", error="invalid_token""#)
    } else {
        let detail =
            "The request shows no key. Send one in the header `Authorization: Bearer <key>`.";
        (detail, r#"Bearer realm="tillmark""#)
    };
    let problem = Problem::new(ProblemKind::Unauthorized, detail);
    problem.with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge))
}

fn missing(scope: Scope) -> Problem {
    let detail = format!("The key has not the scope `{scope}`, which this address needs.");
    let challenge =
        format!(r#"Bearer realm="tillmark", error="insufficient_scope", scope="{scope}""#);
    let problem = Problem::new(ProblemKind::MissingScope, detail);
    match HeaderValue::from_str(&challenge) {
        Ok(challenge) => problem.with_header(header::WWW_AUTHENTICATE, challenge),
        // A scope is a plain word, so this does not happen.
        Err(_) => problem,
    }
}

/// The caller, for a handler that wants to know; it fails where nobody was let in.
#[derive(Debug)]
pub(super) struct LetIn(pub(super) Caller);

impl<S: Send + Sync> FromRequestParts<S> for LetIn {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let caller = parts.extensions.get::<Caller>().cloned();
        caller.map(Self).ok_or(Problem::of(ProblemKind::Internal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_somebody_else_is_foreign_and_so_is_a_name_that_was_made_to_lead_here() {
        let allowed: Origin = "https://dashboard.example".parse().expect("an origin");
        for (host, origin, local, everywhere) in [
            ("localhost:8080", None, false, false),
            ("127.0.0.1:8080", None, false, false),
            ("[::1]:8080", None, false, false),
            ("tills.localhost", None, false, false),
            ("localhost:8080", Some("http://localhost:8080"), false, false),
            ("localhost:8080", Some("http://localhost:3000"), true, true),
            ("localhost:8080", Some("http://evil.example"), true, true),
            ("localhost:8080", Some("null"), true, true),
            ("localhost:8080", Some("https://dashboard.example"), false, false),
            ("evil.example", None, true, false),
            ("evil.example", Some("http://evil.example"), true, false),
            ("localhost.evil.example", None, true, false),
            ("", None, false, false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static(host));
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
            }
            let origins = std::slice::from_ref(&allowed);
            let found = [true, false].map(|is_local| is_foreign(&headers, origins, is_local));
            assert_eq!(found, [local, everywhere], "{host} {origin:?}");
        }
    }

    #[test]
    fn a_key_stands_alone_behind_the_word_bearer() {
        for (case, values, key) in [
            ("none", vec![], None),
            ("a key", vec!["Bearer tm_x"], Some("tm_x")),
            ("in small letters", vec!["bearer  tm_x"], Some("tm_x")),
            ("two", vec!["Bearer tm_x", "Bearer tm_y"], Some("")),
            ("a password", vec!["Basic dXNlcjpwYXNz"], Some("")),
            ("no scheme", vec!["tm_x"], Some("")),
        ] {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::AUTHORIZATION, HeaderValue::from_static(value));
            }
            assert_eq!(bearer(&headers), key, "{case}");
        }
    }
}
