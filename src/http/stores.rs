//! What a key that is bound to stores may post and see.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::authorize::LetIn;
use super::problem::Problem;
use super::problem_kind::ProblemKind;
use crate::access::Caller;
use crate::database::{Receipt, ReceiptOutcome, StoredQuery};
use crate::domain::{EventField, Fault, StoreReach};
use crate::intake::{BodyFormat, CheckedItem, InvalidItem};

/// The stores of the caller. Of what a query counted, a handler gets at them through
/// [`of_query`](Self::of_query) alone.
#[derive(Debug, Clone)]
pub(super) struct Stores(StoreReach);

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
        Self(caller.grant().map_or_else(StoreReach::default, |grant| grant.reach().clone()))
    }

    /// Whether the caller is bound to stores.
    pub(super) const fn are_bound(&self) -> bool {
        self.0.is_bound()
    }

    /// The stores whose groups of a query the caller may see.
    ///
    /// # Errors
    /// A problem for a bound caller, when the query does not tell stores apart.
    pub(super) fn of_query(&self, query: &StoredQuery) -> Result<StoreReach, Problem> {
        if self.are_bound() && EventField::StoreId.place_in(&query.spec.group_by).is_none() {
            let detail = format!(
                "The key is bound to stores, and the query `{}` counts all stores together: its \
                 `group_by` has no `store_id`.",
                query.name
            );
            return Err(Problem::new(ProblemKind::OtherStores, detail));
        }
        Ok(self.0.clone())
    }

    /// Makes a rejection of each item that is of another store, or of none.
    pub(super) fn reject_others(&self, items: &mut [CheckedItem], format: BodyFormat) {
        let Some(own) = self.0.ids() else { return };
        let own: Vec<String> = own.iter().map(|id| format!("`{id}`")).collect();
        let own = own.join(", ");
        let pointer = match format {
            BodyFormat::Json | BodyFormat::NdJson => "/store_id",
            BodyFormat::CloudEvent | BodyFormat::CloudEventBatch => "/data/store_id",
        };
        for item in items {
            let Ok(good) = &item.outcome else { continue };
            let (event_id, store) = (good.event.event_id.to_string(), &good.event.store_id);
            if self.0.holds(store.as_ref()) {
                continue;
            }
            let found = store.as_ref().map_or("is not there".to_owned(), |id| format!("is `{id}`"));
            let detail = format!("`store_id` {found}; the key is bound to {own}");
            let faults = vec![Fault::new(pointer, "other_store", detail)];
            item.outcome = Err(InvalidItem { event_id: Some(event_id), faults });
        }
    }

    /// The receipt, if its event is of a store of the caller; a bound caller is not told of the
    /// events of others that closed a window or were counted in its stead.
    pub(super) fn see(&self, receipt: Receipt) -> Option<Receipt> {
        if !self.are_bound() {
            return Some(receipt);
        }
        let mut receipt =
            Some(receipt).filter(|receipt| self.0.holds(receipt.event.store_id.as_ref()))?;
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
        Stores(StoreReach::only(stores.iter().map(|id| id.parse().expect("an id")).collect()))
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
            (Stores(StoreReach::default()), [true, true, true]),
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
}
