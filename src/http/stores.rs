//! What a key that is bound to stores may post and see.

use std::collections::BTreeSet;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::authorize::LetIn;
use super::problem::Problem;
use super::problem_kind::ProblemKind;
use crate::access::Caller;
use crate::database::{Receipt, ReceiptOutcome, StoredQuery};
use crate::domain::{EventField, Fault, GroupKey, StoreId};
use crate::intake::{BodyFormat, CheckedItem, InvalidItem};

/// The stores that the caller is bound to; nothing: every store.
#[derive(Debug, Clone)]
pub(super) struct Stores(Option<BTreeSet<StoreId>>);

/// Which part of a group key is a store, and which stores it may be.
#[derive(Debug)]
pub(super) struct OwnGroups {
    /// The place of `store_id` in the query's `group_by`.
    pub(super) index: usize,
    /// The stores.
    pub(super) stores: Vec<String>,
}

impl OwnGroups {
    /// Whether a group is of one of the stores.
    pub(super) fn hold(&self, group: &GroupKey) -> bool {
        let store = group.0.get(self.index).and_then(Option::as_ref);
        store.is_some_and(|store| self.stores.contains(store))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Stores {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let LetIn(caller) = LetIn::from_request_parts(parts, state).await?;
        Ok(Self::of(&caller))
    }
}

impl Stores {
    /// The stores of a caller.
    pub(super) fn of(caller: &Caller) -> Self {
        Self(caller.grant().and_then(|grant| grant.stores()).cloned())
    }

    /// Whether the caller is bound to stores.
    pub(super) const fn are_bound(&self) -> bool {
        self.0.is_some()
    }

    /// Their ids, for a look into the database; nothing: every store.
    pub(super) fn ids(&self) -> Option<Vec<String>> {
        self.0.as_ref().map(|stores| stores.iter().map(StoreId::to_string).collect())
    }

    /// Which groups of a query the caller may see; nothing: all of them.
    ///
    /// # Errors
    /// A problem for a bound caller, when the query does not tell stores apart.
    pub(super) fn groups_of(&self, query: &StoredQuery) -> Result<Option<OwnGroups>, Problem> {
        let Some(stores) = self.ids() else { return Ok(None) };
        let mut fields = query.spec.group_by.iter();
        let Some(index) = fields.position(|field| *field == EventField::StoreId) else {
            let detail = format!(
                "The key is bound to stores, and the query `{}` counts all stores together: its \
                 `group_by` has no `store_id`.",
                query.name
            );
            return Err(Problem::new(ProblemKind::OtherStores, detail));
        };
        Ok(Some(OwnGroups { index, stores }))
    }

    /// Makes a rejection of each item that is of another store, or of none.
    pub(super) fn reject_others(&self, items: &mut [CheckedItem], format: BodyFormat) {
        if !self.are_bound() {
            return;
        }
        let pointer = match format {
            BodyFormat::Json | BodyFormat::NdJson => "/store_id",
            BodyFormat::CloudEvent | BodyFormat::CloudEventBatch => "/data/store_id",
        };
        for item in items {
            let Ok(good) = &item.outcome else { continue };
            let (event_id, store) = (good.event.event_id.to_string(), &good.event.store_id);
            if self.hold(store.as_ref()) {
                continue;
            }
            let found = store.as_ref().map_or("is not there".to_owned(), |id| format!("is `{id}`"));
            let detail = format!("`store_id` {found}; the key is bound to {}", self.words());
            let faults = vec![Fault::new(pointer, "other_store", detail)];
            item.outcome = Err(InvalidItem { event_id: Some(event_id), faults });
        }
    }

    /// Whether something of `store` belongs to the caller.
    fn hold(&self, store: Option<&StoreId>) -> bool {
        let Some(stores) = &self.0 else { return true };
        store.is_some_and(|store| stores.contains(store))
    }

    fn words(&self) -> String {
        let ids = self.ids().unwrap_or_default();
        ids.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ")
    }

    /// The receipt, if its event is of a store of the caller; a bound caller is not told of the
    /// events of others that closed a window or were counted in its stead.
    pub(super) fn see(&self, receipt: Receipt) -> Option<Receipt> {
        if !self.are_bound() {
            return Some(receipt);
        }
        let mut receipt =
            Some(receipt).filter(|receipt| self.hold(receipt.event.store_id.as_ref()))?;
        for query in &mut receipt.queries {
            match &mut query.outcome {
                ReceiptOutcome::Late { closing, .. } => *closing = None,
                ReceiptOutcome::Duplicate { first } => *first = None,
                ReceiptOutcome::Counted { .. }
                | ReceiptOutcome::Waiting
                | ReceiptOutcome::Quarantined { .. } => {}
            }
        }
        Some(receipt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intake::{self, BodyLimits, EventDefaults};

    fn bound_to(stores: &[&str]) -> Stores {
        Stores(Some(stores.iter().map(|id| id.parse().expect("an id")).collect()))
    }

    #[test]
    fn events_of_other_stores_and_of_none_are_rejected_at_their_place() {
        let event = |store: &str| {
            format!(
                r#"{{"order_id":"1","status":"placed","amount":"1","event_time":"2026-10-01T09:00:00Z"{store}}}"#
            )
        };
        let body = format!(
            "[{},{},{}]",
            event(r#","store_id":"S1""#),
            event(r#","store_id":"S2""#),
            event("")
        );
        let defaults = EventDefaults { currency: "USD".parse().expect("ISO 4217") };
        let read = || {
            let limits = BodyLimits::default();
            intake::events(body.as_bytes(), BodyFormat::Json, &defaults, &limits).expect("JSON")
        };
        for (stores, good) in [
            (Stores(None), [true, true, true]),
            (bound_to(&["S1"]), [true, false, false]),
            (bound_to(&["S1", "S2"]), [true, true, false]),
        ] {
            let mut items = read();
            stores.reject_others(&mut items, BodyFormat::CloudEvent);
            let found: Vec<bool> = items.iter().map(|item| item.outcome.is_ok()).collect();
            assert_eq!(found, good, "{stores:?}");
            for fault in items.iter().filter_map(|item| item.outcome.as_ref().err()) {
                assert_eq!(fault.faults[0].pointer, "/data/store_id");
                assert!(fault.event_id.is_some());
            }
        }
    }

    #[test]
    fn a_group_without_a_store_is_of_no_store() {
        let groups = OwnGroups { index: 1, stores: vec!["S1".to_owned()] };
        for (group, is_own) in [
            (vec![None, Some("S1")], true),
            (vec![Some("S1"), Some("S2")], false),
            (vec![Some("S1"), None], false),
            (vec![Some("S1")], false),
        ] {
            let key = GroupKey(group.iter().map(|part| part.map(str::to_owned)).collect());
            assert_eq!(groups.hold(&key), is_own, "{group:?}");
        }
    }
}
