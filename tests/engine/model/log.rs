//! The raw log as the model sees it, and the rule of a query over it.

/// One event; `fields` are its texts under the names that queries know them by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelEvent {
    pub(crate) seq: i64,
    pub(crate) micros: i64,
    pub(crate) money: i64,
    pub(crate) currency: String,
    pub(crate) fields: Vec<(&'static str, Option<String>)>,
}

impl ModelEvent {
    /// A field's value as a text, equal for equal values.
    pub(crate) fn value(&self, field: &str) -> Option<String> {
        match field {
            "amount" => Some(self.money.to_string()),
            "currency" => Some(self.currency.clone()),
            "event_time" => Some(self.micros.to_string()),
            _ => self.fields.iter().find(|(name, _)| *name == field)?.1.clone(),
        }
    }

    pub(crate) fn values(&self, fields: &[&'static str]) -> Vec<Option<String>> {
        fields.iter().map(|field| self.value(field)).collect()
    }
}

/// One record of the raw log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ModelRecord {
    Event(ModelEvent),
    Heartbeat { seq: i64, micros: i64 },
    IdleHeartbeat { seq: i64, micros: i64, quiet_millis: i64 },
}

impl ModelRecord {
    pub(crate) fn event(&self) -> Option<&ModelEvent> {
        match self {
            Self::Event(event) => Some(event),
            Self::Heartbeat { .. } | Self::IdleHeartbeat { .. } => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelMode {
    Append,
    Update,
    Complete,
}

/// How event time is cut; all in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelWindows {
    Tumbling { size: i64, offset: i64 },
    Sliding { size: i64, slide: i64, offset: i64 },
    Session { gap: i64 },
}

impl ModelWindows {
    pub(crate) fn are_sessions(self) -> bool {
        matches!(self, Self::Session { .. })
    }
}

/// The part of a query's rule that never changes.
#[derive(Debug, Clone)]
pub(crate) struct ModelRules {
    pub(crate) filter: Vec<(&'static str, Vec<String>)>,
    pub(crate) windows: ModelWindows,
    pub(crate) group_by: Vec<&'static str>,
    /// Empty: every event counts.
    pub(crate) deduplicate: Vec<&'static str>,
    pub(crate) mode: ModelMode,
}

impl ModelRules {
    /// Whether a query counts this event at all.
    pub(crate) fn matches(&self, event: &ModelEvent) -> bool {
        self.filter.iter().all(|(field, allowed)| {
            event.value(field).is_some_and(|value| allowed.contains(&value))
        })
    }

    pub(crate) fn closes(&self) -> bool {
        self.mode != ModelMode::Complete
    }

    pub(crate) fn has_duplicates_rule(&self) -> bool {
        !self.deduplicate.is_empty()
    }
}

/// The part that may change at a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ModelSettings {
    pub(crate) delay_millis: i64,
    pub(crate) idle_timeout_millis: Option<i64>,
}
