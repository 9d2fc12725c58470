//! API keys: made, listed, revoked, rotated.

use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use super::body::{JsonBody, NoBody};
use super::json::Json;
use super::key_body::{KeyBody, KeysAnswer, MadeKey, NewKeyBody};
use super::paging::{Page, PageParams};
use super::params::{NoParams, Params};
use super::problem::Problem;
use super::problem_docs::{KeyProblems, KeyRotateProblems, ListProblems, NewKeyProblems};
use super::problem_kind::ProblemKind;
use super::progress::CursorMoment;
use super::{App, key_examples};
use crate::access::{self, AccessError, KeyText};
use crate::database::{KeyCursor, StoredKey};
use crate::domain::{Fault, KeyId, NewKey};

/// List keys.
///
/// All keys, the oldest first, also those that were revoked or have expired. Their secrets are not
/// kept.
#[utoipa::path(get, path = "/v1/keys", tag = "Keys", params(PageParams),
    responses(
        (status = 200, description = "A page of keys", body = KeysAnswer,
            example = json!(key_examples::keys())),
        ListProblems))]
pub(super) async fn list_keys(
    State(app): State<App>,
    mut params: Params,
) -> Result<Response, Problem> {
    let page: Page<EntryCursor> = params.page();
    let link = params.finish()?;
    let after = page.after.clone().map(KeyCursor::from);
    let mut read = app.database.keys(after.as_ref(), page.read_limit()).await?;
    let next_cursor = page.cut(&mut read, EntryCursor::of);
    let body = KeysAnswer { keys: read.into_iter().map(KeyBody::from).collect(), next_cursor };
    Ok(link.answer(body.next_cursor.as_deref(), &body))
}

/// Create a key.
///
/// The answer is the only place where the whole key ever stands. As soon as there is a key, every
/// address under `/v1` needs one: let the first have the scope `admin`.
#[utoipa::path(post, path = "/v1/keys", tag = "Keys",
    request_body(content = NewKeyBody, content_type = "application/json", examples(
        ("a till's" = (value = json!(key_examples::new_key()))),
        ("an administrator's" = (value = json!(key_examples::new_admin_key()))))),
    responses(
        (status = 201, description = "The key, this once", body = MadeKey,
            example = json!(key_examples::made_key())),
        NewKeyProblems))]
pub(super) async fn create_key(
    State(app): State<App>,
    _: NoParams,
    body: JsonBody,
) -> Result<Response, Problem> {
    let body: NewKeyBody = body.read(ProblemKind::InvalidKey)?;
    let key = NewKey::try_from(body)
        .map_err(|faults| Problem::with_faults(ProblemKind::InvalidKey, faults))?;
    let made = access::create(&app.database, &key).await?;
    Ok(app.made(made).await)
}

/// Revoke a key.
///
/// It works for 8 seconds more at most, on every replica, and stays in the list. Revoking the last key
/// does not open the service again.
#[utoipa::path(delete, path = "/v1/keys/{key_id}", tag = "Keys", params(NamedKey),
    responses((status = 204, description = "The key is revoked, now or before"), KeyProblems))]
pub(super) async fn revoke_key(
    State(app): State<App>,
    named: NamedKey,
    _: NoParams,
) -> Result<StatusCode, Problem> {
    access::revoke(&app.database, &named.id()?).await?;
    app.reread_keys().await;
    Ok(StatusCode::NO_CONTENT)
}

/// Rotate a key.
///
/// Makes a second key that allows the same, for as long again. Both work until the first is revoked
/// or expires: give the new one to whoever has the old one, then revoke that.
#[utoipa::path(post, path = "/v1/keys/{key_id}/rotate", tag = "Keys", params(NamedKey),
    responses(
        (status = 201, description = "The new key, this once", body = MadeKey,
            example = json!(key_examples::rotated_key())),
        KeyRotateProblems))]
pub(super) async fn rotate_key(
    State(app): State<App>,
    named: NamedKey,
    _: NoParams,
    _: NoBody,
) -> Result<Response, Problem> {
    let made = access::rotate(&app.database, &named.id()?).await?;
    Ok(app.made(made).await)
}

impl App {
    /// The one answer that has a whole key in it.
    async fn made(&self, (key, text): (StoredKey, KeyText)) -> Response {
        self.reread_keys().await;
        let headers = [(header::CACHE_CONTROL, "no-store")];
        (StatusCode::CREATED, headers, Json(MadeKey::of(key, &text))).into_response()
    }

    /// A failure is only logged: the change is stored, and the keys are read again soon.
    async fn reread_keys(&self) {
        if let Err(error) = self.keyring.read().await {
            tracing::warn!(error = %error.chain(), "The change to the keys holds a little later");
        }
    }
}

impl From<AccessError> for Problem {
    fn from(error: AccessError) -> Self {
        let detail = format!("{}.", sentence(&error.to_string()));
        match error {
            AccessError::Database(error) => error.into(),
            AccessError::NoRandomness(error) => {
                tracing::error!(%error, "Could not make a key");
                Self::of(ProblemKind::Internal)
            }
            AccessError::ExpiryPassed => {
                let fault = Fault::new("/expires", "out_of_range", detail);
                Self::with_faults(ProblemKind::InvalidKey, vec![fault])
            }
            AccessError::NoSuchKey(_) => Self::new(ProblemKind::NoSuchKey, detail),
            AccessError::NotLive(_) | AccessError::RotatedAlready { .. } => {
                Self::new(ProblemKind::KeyNotRotated, detail)
            }
        }
    }
}

/// The text with a capital letter.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

/// The key that an address names, as far as its text can be an id.
#[derive(Debug, IntoParams)]
#[into_params(names("key_id"), parameter_in = Path)]
pub(super) struct NamedKey(
    /// The key's id: what stands between `tm_` and the secret. Never the whole key.
    #[param(value_type = String, pattern = "^[0-9a-f]{12}$", example = "5f0c9a1be27d")]
    Option<KeyId>,
);

impl<S: Send + Sync> FromRequestParts<S> for NamedKey {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let id = Path::<String>::from_request_parts(parts, state).await.ok();
        Ok(Self(id.and_then(|Path(id)| id.parse().ok())))
    }
}

impl NamedKey {
    /// The id; a text that cannot be one is not repeated, for it may be a whole key.
    fn id(self) -> Result<KeyId, Problem> {
        self.0.ok_or(Problem::of(ProblemKind::NoSuchKey))
    }
}

/// Where a page of keys ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryCursor {
    #[serde(rename = "t")]
    created_at: CursorMoment,
    #[serde(rename = "k")]
    key_id: CursorKey,
}

impl EntryCursor {
    fn of(key: &StoredKey) -> Self {
        let key_id = CursorKey(key.key_id.clone());
        Self { created_at: CursorMoment(key.created_at), key_id }
    }
}

impl From<EntryCursor> for KeyCursor {
    fn from(cursor: EntryCursor) -> Self {
        Self { created_at: cursor.created_at.0, key_id: cursor.key_id.0 }
    }
}

/// A key's id in a cursor.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
struct CursorKey(KeyId);

impl TryFrom<String> for CursorKey {
    type Error = crate::domain::InvalidKeyId;

    fn try_from(id: String) -> Result<Self, Self::Error> {
        id.parse().map(Self)
    }
}

impl From<CursorKey> for String {
    fn from(id: CursorKey) -> Self {
        id.0.to_string()
    }
}
