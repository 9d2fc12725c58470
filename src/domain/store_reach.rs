//! Which stores somebody may post for and see.

use std::collections::BTreeSet;

use super::{EventField, GroupKey, StoreId};

/// Every store, or only some of them. What is of no store is of none of the some.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct StoreReach(Option<BTreeSet<StoreId>>);

impl StoreReach {
    /// Only these stores; without any, none.
    pub const fn only(stores: BTreeSet<StoreId>) -> Self {
        Self(Some(stores))
    }

    /// Whether it is not every store.
    pub const fn is_bound(&self) -> bool {
        self.0.is_some()
    }

    /// The stores; nothing: every store.
    pub const fn stores(&self) -> Option<&BTreeSet<StoreId>> {
        self.0.as_ref()
    }

    /// The stores as text; nothing: every store.
    pub fn ids(&self) -> Option<Vec<&str>> {
        self.0.as_ref().map(|stores| stores.iter().map(StoreId::as_str).collect())
    }

    /// Whether something of `store`, or of none, lies within it.
    pub fn holds(&self, store: Option<&StoreId>) -> bool {
        let Some(stores) = &self.0 else { return true };
        store.is_some_and(|store| stores.contains(store))
    }

    /// Whether a group of a query that groups by these fields lies within it.
    pub fn holds_group(&self, group_by: &[EventField], group: &GroupKey) -> bool {
        let Some(stores) = &self.0 else { return true };
        let place = EventField::StoreId.place_in(group_by);
        let store = place.and_then(|place| group.0.get(place)?.as_deref());
        store.is_some_and(|store| stores.iter().any(|own| own.as_str() == store))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(ids: &[&str]) -> StoreReach {
        StoreReach::only(ids.iter().map(|id| id.parse().expect("an id")).collect())
    }

    #[test]
    fn what_is_of_no_store_is_of_none_of_some_stores() {
        let (every, some) = (StoreReach::default(), some(&["S1", "S2"]));
        for (store, is_own) in [(Some("S1"), true), (Some("S3"), false), (None, false)] {
            let store: Option<StoreId> = store.map(|id| id.parse().expect("an id"));
            assert_eq!(some.holds(store.as_ref()), is_own, "{store:?}");
            assert!(every.holds(store.as_ref()), "{store:?}");
        }
    }

    #[test]
    fn a_group_is_of_the_store_that_its_key_names() {
        let by_till_and_store = [EventField::TillId, EventField::StoreId];
        for (fields, group, is_own) in [
            (&by_till_and_store[..], vec![None, Some("S1")], true),
            (&by_till_and_store[..], vec![Some("S1"), Some("S2")], false),
            (&by_till_and_store[..], vec![Some("S1"), None], false),
            (&by_till_and_store[..], vec![Some("S1")], false),
            (&by_till_and_store[..1], vec![Some("S1")], false),
            (&[], vec![], false),
        ] {
            let key = GroupKey(group.iter().map(|part| part.map(str::to_owned)).collect());
            assert_eq!(some(&["S1"]).holds_group(fields, &key), is_own, "{fields:?} {group:?}");
            assert!(StoreReach::default().holds_group(fields, &key), "{fields:?} {group:?}");
        }
    }
}
