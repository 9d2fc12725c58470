//! API keys as they are stored: who they are and what they allow, never their secrets.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use sqlx::{Postgres, QueryBuilder};

use super::error::Doing;
use super::values::unreadable;
use super::{Database, DatabaseError};
use crate::domain::{EventTime, Expiry, Grant, KeyId, KeyName, NewKey, Scope, Span, stores_of};

/// The SHA-256 of a key's secret.
pub type SecretHash = [u8; 32];

/// A key as people look at it.
#[derive(Debug, Clone)]
pub struct StoredKey {
    /// Its public part.
    pub key_id: KeyId,
    /// For people.
    pub name: KeyName,
    /// What it allows.
    pub grant: Grant,
    /// When it was made, by the database's clock.
    pub created_at: DateTime<Utc>,
    /// When it ends to work; nothing: never.
    pub expires_at: Option<DateTime<Utc>>,
    /// When it was used last, give or take a minute.
    pub last_used_at: Option<DateTime<Utc>>,
    /// When it was revoked.
    pub revoked_at: Option<DateTime<Utc>>,
    /// The key whose place it takes.
    pub rotated_from: Option<KeyId>,
    /// Whether it was neither revoked nor has expired, by the database's clock.
    pub is_live: bool,
}

/// A key that works now, as requests are held against it.
#[derive(Debug, Clone)]
pub struct LiveKey {
    /// Its public part.
    pub key_id: KeyId,
    /// What its secret hashes to.
    pub secret_hash: SecretHash,
    /// What it allows.
    pub grant: Grant,
}

/// What a request is held against: the keys that work now.
#[derive(Debug, Clone, Default)]
pub struct LiveKeys {
    /// Whether there is any key at all, one that does not work any more included.
    pub any: bool,
    /// Those that work.
    pub keys: Vec<LiveKey>,
}

/// What became of a rotation.
#[derive(Debug, Clone)]
pub enum Rotated {
    /// There is a second key now.
    Done(StoredKey),
    /// There is no key of this id.
    NoSuchKey,
    /// It was revoked or has expired.
    NotLive,
    /// It has a living successor already, this one.
    Already(KeyId),
}

/// Where a page of keys goes on: after this one.
#[derive(Debug, Clone)]
pub struct KeyCursor {
    /// When the last key of the page before was made.
    pub created_at: DateTime<Utc>,
    /// Its id.
    pub key_id: KeyId,
}

const IS_LIVE: &str = "(revoked_at is null and coalesce(expires_at > now(), true)) as is_live";

#[derive(Debug, sqlx::FromRow)]
struct KeyColumns {
    key_id: String,
    secret_hash: Vec<u8>,
    name: String,
    scopes: Vec<String>,
    store_ids: Option<Vec<String>>,
    created_at: DateTime<Utc>,
    expires_at: Option<DateTime<Utc>>,
    last_used_at: Option<DateTime<Utc>>,
    revoked_at: Option<DateTime<Utc>>,
    rotated_from: Option<String>,
    is_live: bool,
}

impl KeyColumns {
    fn grant(&self) -> Result<Grant, DatabaseError> {
        let scopes = self.scopes.iter().map(|scope| scope.parse::<Scope>());
        let scopes: BTreeSet<Scope> =
            scopes.collect::<Result<_, _>>().map_err(|error| unreadable("scope", error))?;
        let stores = self.store_ids.clone().map(stores_of).transpose();
        let stores = stores.map_err(|error| unreadable("store_id", error))?;
        Grant::new(scopes, stores).map_err(|error| unreadable("key", error))
    }

    fn key_id(text: &str) -> Result<KeyId, DatabaseError> {
        text.parse().map_err(|error| unreadable("key_id", error))
    }

    fn live(self) -> Result<LiveKey, DatabaseError> {
        let (key_id, grant) = (Self::key_id(&self.key_id)?, self.grant()?);
        let secret_hash = SecretHash::try_from(self.secret_hash)
            .map_err(|_| unreadable("secret_hash", "it has not 32 bytes"))?;
        Ok(LiveKey { key_id, secret_hash, grant })
    }

    fn stored(self) -> Result<StoredKey, DatabaseError> {
        let grant = self.grant()?;
        Ok(StoredKey {
            key_id: Self::key_id(&self.key_id)?,
            name: self.name.try_into().map_err(|error| unreadable("name", error))?,
            grant,
            created_at: self.created_at,
            expires_at: self.expires_at,
            last_used_at: self.last_used_at,
            revoked_at: self.revoked_at,
            rotated_from: self.rotated_from.as_deref().map(Self::key_id).transpose()?,
            is_live: self.is_live,
        })
    }
}

impl Database {
    /// The keys that work now. Not through the pool for reads: a heavy report must not keep the
    /// tills from being let in.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`].
    pub async fn keys_live(&self) -> Result<LiveKeys, DatabaseError> {
        let rows: Vec<KeyColumns> = sqlx::query_as(
            "select *, true as is_live from api_keys
             where revoked_at is null and coalesce(expires_at > now(), true)",
        )
        .fetch_all(&self.readiness)
        .await
        .doing("read the API keys")?;
        let any = sqlx::query_scalar("select exists (select from api_keys)")
            .fetch_one(&self.readiness)
            .await
            .doing("look for any API key")?;
        // One damaged row must not keep everybody else out: its key does not work, and listing the keys
        // says why.
        let live = rows.into_iter().filter_map(|row| row.live().ok());
        Ok(LiveKeys { any, keys: live.collect() })
    }

    /// Notes that these keys were used, in each row at most once a minute.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`].
    pub async fn keys_used(&self, used: &[KeyId]) -> Result<(), DatabaseError> {
        sqlx::query(
            "update api_keys set last_used_at = now()
             where key_id = any($1) and coalesce(last_used_at < now() - interval '1 minute', true)",
        )
        .bind(used.iter().map(KeyId::as_str).collect::<Vec<_>>())
        .execute(&self.readiness)
        .await
        .doing("note that keys were used")?;
        Ok(())
    }

    /// Up to `limit` keys, the oldest first, those that do not work any more included.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`] or [`DatabaseError::Unreadable`].
    pub async fn keys(
        &self,
        after: Option<&KeyCursor>,
        limit: u32,
    ) -> Result<Vec<StoredKey>, DatabaseError> {
        let mut select = QueryBuilder::<Postgres>::new("select *, ");
        select.push(IS_LIVE).push(" from api_keys where true");
        if let Some(KeyCursor { created_at, key_id }) = after {
            select.push(" and (created_at, key_id) > (").push_bind(*created_at);
            select.push(", ").push_bind(key_id.as_str()).push(")");
        }
        select.push(" order by created_at, key_id limit ").push_bind(i64::from(limit));
        let mut conn = self.reader().await?;
        let rows: Vec<KeyColumns> =
            select.build_query_as().fetch_all(&mut *conn).await.doing("list the API keys")?;
        rows.into_iter().map(KeyColumns::stored).collect()
    }

    /// Stores a new key; nothing when it would have expired already.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`].
    pub async fn key_create(
        &self,
        key_id: &KeyId,
        secret_hash: &SecretHash,
        key: &NewKey,
    ) -> Result<Option<StoredKey>, DatabaseError> {
        let (after, at) = match key.expiry {
            None => (None, None),
            Some(Expiry::After(span)) => (Some(Span::as_micros(span)), None),
            Some(Expiry::At(time)) => (None, Some(EventTime::to_utc(time))),
        };
        let row: Option<KeyColumns> = sqlx::query_as(
            "insert into api_keys (key_id, secret_hash, name, scopes, store_ids, expires_at)
             select $1, $2, $3, $4, $5, expires_at
             from (select coalesce($7, now() + $6 * interval '1 microsecond') as expires_at) expiry
             where coalesce(expires_at > now(), true)
             returning *, true as is_live",
        )
        .bind(key_id.as_str())
        .bind(secret_hash.as_slice())
        .bind(key.name.as_str())
        .bind(key.grant.scopes().iter().map(|scope| scope.as_str()).collect::<Vec<_>>())
        .bind(key.grant.reach().ids())
        .bind(after)
        .bind(at)
        .fetch_optional(&self.engine)
        .await
        .doing("store an API key")?;
        row.map(KeyColumns::stored).transpose()
    }

    /// Revokes a key, unless it is revoked already; nothing when there is none of this id.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`] or [`DatabaseError::Unreadable`].
    pub async fn key_revoke(&self, key_id: &KeyId) -> Result<Option<StoredKey>, DatabaseError> {
        let row: Option<KeyColumns> = sqlx::query_as(
            "update api_keys set revoked_at = coalesce(revoked_at, now()) where key_id = $1
             returning *, false as is_live",
        )
        .bind(key_id.as_str())
        .fetch_optional(&self.engine)
        .await
        .doing("revoke an API key")?;
        row.map(KeyColumns::stored).transpose()
    }

    /// Stores a second key beside `key_id` that allows the same, for as long again.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`] or [`DatabaseError::Unreadable`].
    pub async fn key_rotate(
        &self,
        key_id: &KeyId,
        new_id: &KeyId,
        secret_hash: &SecretHash,
    ) -> Result<Rotated, DatabaseError> {
        const DOING: &str = "rotate an API key";
        let mut transaction = self.engine.begin().await.doing(DOING)?;
        // The row stays locked, so that two rotations at a time do not make three keys.
        let mut select = QueryBuilder::<Postgres>::new("select *, ");
        select.push(IS_LIVE).push(" from api_keys where key_id = ").push_bind(key_id.as_str());
        select.push(" for update");
        let old: Option<KeyColumns> =
            select.build_query_as().fetch_optional(&mut *transaction).await.doing(DOING)?;
        match old {
            None => return Ok(Rotated::NoSuchKey),
            Some(old) if !old.is_live => return Ok(Rotated::NotLive),
            Some(_) => {}
        }
        let successor: Option<String> = sqlx::query_scalar(
            "select key_id from api_keys where rotated_from = $1 and revoked_at is null
                 and coalesce(expires_at > now(), true)",
        )
        .bind(key_id.as_str())
        .fetch_optional(&mut *transaction)
        .await
        .doing(DOING)?;
        if let Some(successor) = successor {
            return Ok(Rotated::Already(KeyColumns::key_id(&successor)?));
        }
        let row: KeyColumns = sqlx::query_as(
            "insert into api_keys (key_id, secret_hash, name, scopes, store_ids, expires_at, rotated_from)
             select $2, $3, name, scopes, store_ids, now() + (expires_at - created_at), key_id
             from api_keys where key_id = $1
             returning *, true as is_live",
        )
        .bind(key_id.as_str())
        .bind(new_id.as_str())
        .bind(secret_hash.as_slice())
        .fetch_one(&mut *transaction)
        .await
        .doing(DOING)?;
        transaction.commit().await.doing(DOING)?;
        row.stored().map(Rotated::Done)
    }
}
