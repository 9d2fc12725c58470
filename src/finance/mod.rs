//! Finance: what must add up, and why it may not yet.
//!
//! `reconcile` holds the stream against a recount of the raw log. It uses nothing of the engine: a
//! recount by the same code would prove nothing. `delay_advice` replays the engine on purpose.
//! `local_days` folds windows into the days that a shop closes its books by, `local_fit` says which
//! windows fold exactly.

pub mod delay_advice;
pub mod local_days;
pub mod local_fit;
pub mod reconcile;
