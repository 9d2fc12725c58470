//! Lets in who may come in, before anything of a body is read.

use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::peer::Peer;
use super::problem::Problem;
use super::problem_kind::ProblemKind;
use super::scopes::{Bound, Need, Rule};
use crate::access::{Caller, Keyring, Refused};
use crate::domain::Scope;

/// Passes requests on with their [`Caller`], if the rule of their address allows them.
pub(super) async fn authorize(
    State(keyring): State<Keyring>,
    request: Request,
    next: Next,
) -> Response {
    let (mut head, body) = request.into_parts();
    match allowed(&keyring, &head).await {
        Ok(caller) => {
            head.extensions.insert(caller);
            next.run(Request::from_parts(head, body)).await
        }
        Err(problem) => problem.into_response(),
    }
}

async fn allowed(keyring: &Keyring, head: &Parts) -> Result<Caller, Problem> {
    let path = head.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let rule = Rule::of(&head.method, path);
    let scope = match rule.need {
        Need::Nothing => return Ok(Caller::ANYBODY),
        Need::AdminOrThisMachine if Peer::is_this_machine(head) => return Ok(Caller::ANYBODY),
        Need::AnyKey => None,
        Need::Scope(scope) => Some(scope),
        Need::AdminOrThisMachine => Some(Scope::Admin),
    };
    let caller = keyring.admit(bearer(&head.headers)).await?;
    let Some(grant) = caller.grant() else { return Ok(caller) };
    if let Some(scope) = scope.filter(|scope| !grant.allows(*scope)) {
        return Err(missing(scope));
    }
    if grant.stores().is_some() && rule.bound == Bound::Refused {
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
            Refused::Unknown(error) => error.into(),
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
