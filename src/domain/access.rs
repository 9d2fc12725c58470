//! Who may do what: scopes, the stores that a key is bound to, and what a new key is to be.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use super::{EventTime, InvalidText, KeyName, Span, StoreId, StoreReach};

/// What a key may do. What no scope of it allows is denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Post events and heartbeats.
    EventsWrite,
    /// Read queries, what they counted, and receipts.
    SalesRead,
    /// Read the reconciliation and what else finance asks for.
    Finance,
    /// Everything, every other scope included: queries, the quarantine, keys.
    Admin,
}

impl Scope {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::EventsWrite, Self::SalesRead, Self::Finance, Self::Admin];

    /// The word of the API and of the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::EventsWrite => "events:write",
            Self::SalesRead => "sales:read",
            Self::Finance => "finance",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that names no scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is none of `events:write`, `sales:read`, `finance` and `admin`")]
pub struct UnknownScope;

impl FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text).ok_or(UnknownScope)
    }
}

/// The public part of a key: 12 hexadecimal digits. It may be logged; the secret never is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(String);

impl KeyId {
    /// How many digits it has.
    pub const CHARS: usize = 12;

    /// The id as it stands in keys and addresses.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that cannot be the id of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is no key's id: 12 digits of 0-9 and a-f, the part between `tm_` and the secret")]
pub struct InvalidKeyId;

impl FromStr for KeyId {
    type Err = InvalidKeyId;

    fn from_str(text: &str) -> Result<Self, InvalidKeyId> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() == Self::CHARS && text.bytes().all(is_digit) {
            return Ok(Self(text.to_owned()));
        }
        Err(InvalidKeyId)
    }
}

/// What a key allows, and for which stores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    scopes: BTreeSet<Scope>,
    reach: StoreReach,
}

/// Scopes and stores that do not go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidGrant {
    /// A key that may do nothing.
    #[error("at least one scope is needed: `events:write`, `sales:read`, `finance` or `admin`")]
    NoScope,
    /// A list of stores without a store.
    #[error("a list of stores needs at least one; leave it out for every store")]
    NoStore,
    /// Whoever may make keys could make one for any store.
    #[error("a key with the scope `admin` cannot be bound to stores")]
    BoundAdmin,
}

impl Grant {
    /// These scopes, for these stores; without a list of stores, for every store.
    ///
    /// # Errors
    /// [`InvalidGrant`].
    pub fn new(
        scopes: BTreeSet<Scope>,
        stores: Option<BTreeSet<StoreId>>,
    ) -> Result<Self, InvalidGrant> {
        if scopes.is_empty() {
            return Err(InvalidGrant::NoScope);
        }
        if stores.as_ref().is_some_and(BTreeSet::is_empty) {
            return Err(InvalidGrant::NoStore);
        }
        if stores.is_some() && scopes.contains(&Scope::Admin) {
            return Err(InvalidGrant::BoundAdmin);
        }
        Ok(Self { scopes, reach: stores.map_or_else(StoreReach::default, StoreReach::only) })
    }

    /// Whether it allows what `scope` does; `admin` allows everything.
    pub fn allows(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope) || self.scopes.contains(&Scope::Admin)
    }

    /// Its scopes.
    pub const fn scopes(&self) -> &BTreeSet<Scope> {
        &self.scopes
    }

    /// The stores that it is for.
    pub const fn reach(&self) -> &StoreReach {
        &self.reach
    }
}

/// When a key ends to work: after a while, or at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// This long after it is made.
    After(Span),
    /// Then.
    At(EventTime),
}

/// A text that is no expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "is neither a duration such as `90 days`, at most 3,660 days, nor a moment such as `2027-01-31T00:00:00Z`"
)]
pub struct InvalidExpiry;

impl FromStr for Expiry {
    type Err = InvalidExpiry;

    fn from_str(text: &str) -> Result<Self, InvalidExpiry> {
        let span = text.parse().ok().filter(|span| *span > Span::ZERO).map(Self::After);
        span.or_else(|| text.parse().ok().map(Self::At)).ok_or(InvalidExpiry)
    }
}

/// What a key is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKey {
    /// For people.
    pub name: KeyName,
    /// What it allows.
    pub grant: Grant,
    /// When it ends to work; nothing: never.
    pub expiry: Option<Expiry>,
}

/// Reads a list of stores, as requests and stored keys have it.
///
/// # Errors
/// The first that cannot be a store's id.
pub fn stores_of(ids: Vec<String>) -> Result<BTreeSet<StoreId>, InvalidText> {
    ids.into_iter().map(StoreId::try_from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_allows_itself_and_admin_allows_everything() {
        for has in Scope::ALL {
            let grant = Grant::new([has].into(), None).expect("a scope");
            for asked in Scope::ALL {
                let allowed = has == asked || has == Scope::Admin;
                assert_eq!(grant.allows(asked), allowed, "{has} for {asked}");
            }
            assert_eq!(has.as_str().parse(), Ok(has));
        }
    }

    #[test]
    fn a_grant_is_for_something_and_a_bound_key_cannot_make_keys() {
        let store: StoreId = "S1".parse().expect("an id");
        for (case, scopes, stores, refused) in [
            ("nothing", vec![], None, Some(InvalidGrant::NoScope)),
            ("no store", vec![Scope::SalesRead], Some(vec![]), Some(InvalidGrant::NoStore)),
            ("bound", vec![Scope::SalesRead], Some(vec![store.clone()]), None),
            ("bound admin", vec![Scope::Admin], Some(vec![store]), Some(InvalidGrant::BoundAdmin)),
        ] {
            let stores = stores.map(BTreeSet::from_iter);
            let grant = Grant::new(BTreeSet::from_iter(scopes), stores);
            assert_eq!(grant.err(), refused, "{case}");
        }
    }

    #[test]
    fn an_expiry_is_a_duration_or_a_moment() {
        for (text, is_one) in [
            ("90 days", true),
            ("P90D", true),
            ("2027-01-31T00:00:00Z", true),
            ("0 days", false),
            ("2027-01-31", false),
            ("never", false),
        ] {
            assert_eq!(text.parse::<Expiry>().is_ok(), is_one, "{text}");
        }
    }

    #[test]
    fn the_id_of_a_key_is_twelve_digits() {
        for (text, is_one) in
            [("0123456789ab", true), ("0123456789AB", false), ("0123456789abc", false), ("", false)]
        {
            assert_eq!(text.parse::<KeyId>().is_ok(), is_one, "{text}");
        }
    }
}
