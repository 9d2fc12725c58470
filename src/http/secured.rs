//! Describes who may ask: the key, and at each address the scope it needs, from the one table of scopes.

use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{OpenApi, RefOr};

use super::problem_docs::response_of;
use super::problem_kind::ProblemKind::{ForeignPage, MissingScope, OtherStores, Unauthorized};
use super::scopes::{Bound, Need, Rule};

const SCHEME: &str = "api_key";

/// The description with its keys.
pub(super) fn secured(mut api: OpenApi) -> OpenApi {
    for (path, item) in &mut api.paths.paths {
        let operations = [
            ("GET", &mut item.get),
            ("PUT", &mut item.put),
            ("POST", &mut item.post),
            ("DELETE", &mut item.delete),
        ];
        for (method, operation) in operations {
            if let Some(operation) = operation {
                secure(operation, Rule::of_operation(method, path));
            }
        }
    }
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .bearer_format("tm_<id>_<secret>")
        .description(Some(
            "A key made with `tillmark keys create` or `POST /v1/keys`. `admin` allows everything. \
             Needed as soon as there is a key; until then the service is open on its own machine.",
        ))
        .build();
    let components = api.components.get_or_insert_default();
    components.add_security_scheme(SCHEME, SecurityScheme::Http(bearer));
    api
}

fn secure(operation: &mut Operation, rule: Rule) {
    let scopes: &[&str] = match rule.need {
        Need::Nothing => return,
        Need::AnyKey => &[],
        Need::Scope(scope) => &[scope.as_str()],
    };
    let key = SecurityRequirement::new(SCHEME, scopes.iter().copied());
    operation.security = Some(vec![key, SecurityRequirement::default()]);
    let responses = &mut operation.responses.responses;
    responses.insert("401".to_owned(), RefOr::T(response_of(&[Unauthorized])));
    if scopes.is_empty() {
        return;
    }
    let kinds: &[_] = match rule.bound {
        Bound::Same => &[MissingScope, ForeignPage],
        Bound::OwnStores | Bound::Refused => &[MissingScope, OtherStores, ForeignPage],
    };
    responses.insert("403".to_owned(), RefOr::T(response_of(kinds)));
}
