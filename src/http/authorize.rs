//! Lets in who may come in, before anything of a body is read.

use axum::extract::{FromRequestParts, MatchedPath, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};

use super::problem::Problem;
use super::problem_kind::ProblemKind;
use super::scopes::{Bound, Need, Rule};
use crate::access::{Caller, Keyring, Refused};
use crate::domain::Scope;

/// Who decides who is let in.
#[derive(Debug, Clone)]
pub(super) enum Door {
    /// The keys, by the rule of each address.
    Keys(Keyring),
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
            Self::Keys(keyring) => allowed(keyring, &head).await?,
            #[cfg(test)]
            Self::Open => Caller::ANYBODY,
        };
        head.extensions.insert(caller);
        Ok(Request::from_parts(head, body))
    }
}

async fn allowed(keyring: &Keyring, head: &Parts) -> Result<Caller, Problem> {
    // Where there is no address, there is nothing but a problem that says so.
    let Some(path) = head.extensions.get::<MatchedPath>() else { return Ok(Caller::ANYBODY) };
    let rule = Rule::of(&head.method, path.as_str());
    let scope = match rule.need {
        Need::Nothing => return Ok(Caller::ANYBODY),
        Need::AnyKey => None,
        Need::Scope(scope) => Some(scope),
    };
    let caller = keyring.admit(bearer(&head.headers)).await?;
    let Some(grant) = caller.grant() else { return Ok(caller) };
    if let Some(scope) = scope.filter(|scope| !grant.allows(*scope)) {
        return Err(missing(scope));
    }
    if grant.reach().is_bound() && rule.bound == Bound::Refused {
        return Err(Problem::of(ProblemKind::OtherStores));
    }
    Ok(caller)
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
