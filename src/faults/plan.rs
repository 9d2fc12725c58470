//! Where this process dies; only there with the feature `faults`.

use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

static ARMED: OnceLock<FaultPlan> = OnceLock::new();
static PASSAGES: AtomicU32 = AtomicU32::new(0);

/// The passage of a point that the process does not survive, such as `ingest.committed:3`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultPlan {
    point: String,
    passage: u32,
}

/// What was given is no [`FaultPlan`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it must be the name of a point and the number of a passage, such as ingest.committed:3")]
pub struct InvalidFaultPlan;

impl FromStr for FaultPlan {
    type Err = InvalidFaultPlan;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (point, passage) = text.split_once(':').ok_or(InvalidFaultPlan)?;
        let passage = passage.parse().map_err(|_| InvalidFaultPlan)?;
        Ok(Self { point: point.to_owned(), passage })
    }
}

/// Sets the plan of this process, once.
pub fn arm(plan: Option<&FaultPlan>) {
    if let Some(plan) = plan {
        ARMED.get_or_init(|| plan.clone());
    }
}

/// Whether this point is the one of the plan.
pub fn is_armed(point: &str) -> bool {
    ARMED.get().is_some_and(|plan| plan.point == point)
}

/// Passes a point, or dies there: nothing is written, answered or dropped any more.
pub fn pass(point: &str) {
    let Some(plan) = ARMED.get().filter(|plan| plan.point == point) else { return };
    if PASSAGES.fetch_add(1, Ordering::Relaxed).saturating_add(1) == plan.passage {
        std::process::abort();
    }
}
