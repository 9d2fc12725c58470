//! Which profiles of a batch pass the filter, and which group each counts in.

use std::collections::BTreeMap;

use crate::domain::{Currency, GroupKey};

use super::batch::ProfileId;
use super::{Batch, Rules};

/// A currency and the group-by values.
pub(super) type Group = (Currency, GroupKey);

/// The groups of one batch, numbered.
#[derive(Debug, Default)]
pub(super) struct Groups {
    all: Vec<Group>,
    /// For each profile: its group, or nothing when the filter keeps it out.
    of_profile: Vec<Option<u32>>,
}

impl Groups {
    /// Judges every profile of `batch`.
    pub(super) fn of(rules: &Rules, batch: &Batch) -> Self {
        let mut groups = Self::default();
        let mut numbers: BTreeMap<Group, u32> = BTreeMap::new();
        for profile in batch.profiles() {
            let number = rules.passes(profile).then(|| {
                let keys = profile.values.iter().take(rules.group_by.len()).cloned().collect();
                let group = (profile.currency, GroupKey(keys));
                *numbers.entry(group).or_insert_with_key(|group| {
                    groups.all.push(group.clone());
                    u32::try_from(groups.all.len()).unwrap_or(u32::MAX).saturating_sub(1)
                })
            });
            groups.of_profile.push(number);
        }
        groups
    }

    /// The group that events of this profile count in; nothing when they do not pass.
    pub(super) fn number(&self, profile: ProfileId) -> Option<u32> {
        let index = usize::try_from(profile.0).ok()?;
        self.of_profile.get(index).copied().flatten()
    }

    /// The group of this number, which must be one of this batch.
    pub(super) fn get(&self, number: u32) -> Option<&Group> {
        self.all.get(usize::try_from(number).ok()?)
    }
}
