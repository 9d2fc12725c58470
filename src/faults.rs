//! Points at which `tests/campaign` has the service die. Without the feature `faults`, which nothing
//! that ships has, they are nothing.

/// A point in the path of the data that has a name. The service dies here, as `kill -9` would have it,
/// when the environment says so.
macro_rules! fault_point {
    ($name:literal) => {
        #[cfg(feature = "faults")]
        $crate::faults::pass($name);
    };
}

#[cfg(feature = "faults")]
mod plan;

#[cfg(feature = "faults")]
pub use plan::{FaultPlan, InvalidFaultPlan, arm, is_armed, pass};
