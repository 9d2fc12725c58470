//! API keys in JSON.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::figures::moment_text;
use crate::access::KeyText;
use crate::database::StoredKey;
use crate::domain::{Expiry, Fault, Grant, InvalidGrant, KeyId, KeyName, NewKey, Scope, stores_of};

/// What a key is to be. A field that is not here is refused.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewKey)]
pub(super) struct NewKeyBody {
    /// Whose it is, or where it is used.
    #[schema(min_length = 1, max_length = 100, example = "tills of Porto")]
    name: String,
    /// What it allows: `events:write`, `sales:read`, `finance`; `admin` allows everything.
    #[schema(min_items = 1, example = json!(["events:write"]))]
    scopes: Vec<String>,
    /// The stores that it is bound to. Left out: every store.
    #[serde(default)]
    #[schema(min_items = 1, example = json!(["S1"]))]
    store_ids: Option<Vec<String>>,
    /// When it ends to work: a duration from now on, or a moment (RFC 3339). Left out: never.
    #[serde(default)]
    #[schema(example = "365 days")]
    expires: Option<String>,
}

impl TryFrom<NewKeyBody> for NewKey {
    type Error = Vec<Fault>;

    fn try_from(body: NewKeyBody) -> Result<Self, Vec<Fault>> {
        let mut faults = Vec::new();
        let name = KeyName::try_from(body.name).map_err(|error| {
            faults.push(Fault::new("/name", "invalid", format!("`name` {error}")))
        });
        let mut scopes = BTreeSet::new();
        for (index, text) in body.scopes.iter().enumerate() {
            match text.parse::<Scope>() {
                Ok(scope) => drop(scopes.insert(scope)),
                Err(error) => {
                    let detail = format!("`{text}` {error}");
                    faults.push(Fault::new(format!("/scopes/{index}"), "invalid", detail));
                }
            }
        }
        let stores = body.store_ids.map(stores_of).transpose().map_err(|error| {
            faults.push(Fault::new("/store_ids", "invalid", format!("a store's id {error}")));
        });
        let expiry = body.expires.map(|text| text.parse::<Expiry>().map_err(|error| (text, error)));
        let expiry = expiry.transpose().map_err(|(text, error)| {
            faults.push(Fault::new("/expires", "invalid", format!("`{text}` {error}")));
        });
        match (name, stores, expiry) {
            (Ok(name), Ok(stores), Ok(expiry)) if faults.is_empty() => {
                let grant = Grant::new(scopes, stores).map_err(|error| vec![of_grant(error)])?;
                Ok(Self { name, grant, expiry })
            }
            _ => Err(faults),
        }
    }
}

fn of_grant(error: InvalidGrant) -> Fault {
    let pointer = match error {
        InvalidGrant::NoScope => "/scopes",
        InvalidGrant::NoStore | InvalidGrant::BoundAdmin => "/store_ids",
    };
    Fault::new(pointer, "invalid", error.to_string())
}

/// A key, without its secret.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Key)]
pub(super) struct KeyBody {
    /// Its public part, the one between `tm_` and the secret.
    #[schema(example = "5f0c9a1be27d")]
    key_id: String,
    /// Whose it is, or where it is used.
    name: String,
    /// What it allows.
    scopes: Vec<&'static str>,
    /// The stores that it is bound to; null: every store.
    store_ids: Option<Vec<String>>,
    /// `live`, `revoked` or `expired`.
    #[schema(example = "live")]
    status: &'static str,
    /// When it was made, by the database's clock.
    #[schema(format = DateTime)]
    created_at: String,
    /// When it ends to work; null: never.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
    /// When it was used last, give or take a minute; null: never.
    #[schema(format = DateTime)]
    last_used_at: Option<String>,
    /// When it was revoked.
    #[schema(format = DateTime)]
    revoked_at: Option<String>,
    /// The key whose place it takes.
    rotated_from: Option<String>,
}

impl From<StoredKey> for KeyBody {
    fn from(key: StoredKey) -> Self {
        let store_ids = key.grant.reach().ids();
        Self {
            key_id: key.key_id.to_string(),
            name: key.name.to_string(),
            scopes: key.grant.scopes().iter().map(|scope| scope.as_str()).collect(),
            store_ids: store_ids.map(|ids| ids.into_iter().map(str::to_owned).collect()),
            status: match (key.revoked_at, key.is_live) {
                (Some(_), _) => "revoked",
                (None, true) => "live",
                (None, false) => "expired",
            },
            created_at: moment_text(key.created_at),
            expires_at: key.expires_at.map(moment_text),
            last_used_at: key.last_used_at.map(moment_text),
            revoked_at: key.revoked_at.map(moment_text),
            rotated_from: key.rotated_from.as_ref().map(KeyId::to_string),
        }
    }
}

/// A key that was just made, whole.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct MadeKey {
    /// What to send as `Authorization: Bearer <key>`. It is shown here and nowhere else.
    #[schema(example = "tm_5f0c9a1be27d_<secret>")]
    key: String,
    #[serde(flatten)]
    facts: KeyBody,
}

impl MadeKey {
    /// The key and what is stored of it.
    pub(super) fn of(key: StoredKey, text: &KeyText) -> Self {
        Self { key: text.to_string(), facts: key.into() }
    }
}

/// A page of keys.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct KeysAnswer {
    /// The keys, the oldest first.
    pub(super) keys: Vec<KeyBody>,
    /// What to ask the next page with; null at the end.
    pub(super) next_cursor: Option<String>,
}
