//! What settings must be together, which clap does not check.

use super::{DatabaseSettings, LimitSettings, Refusal, ReportSettings};

/// Not clap's to check: its refusals repeat the value, and an address may hold a password.
pub(super) fn check_database_url(settings: &DatabaseSettings) -> Result<(), Refusal> {
    let is_postgres =
        |url: &str| ["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme));
    if settings.url().is_none_or(is_postgres) {
        return Ok(());
    }
    let text = "DATABASE_URL is no address such as postgres://user:password@host/database. Correct it, \
                or leave it unset for a private Postgres.";
    Err(Refusal::Wrong(text.to_owned()))
}

/// A range that ends before it begins would be a report of nothing, without a difference.
pub(super) fn check_range(settings: &ReportSettings) -> Result<(), Refusal> {
    match (settings.from, settings.to) {
        (Some(from), Some(to)) if from.0 > to.0 => {
            Err(Refusal::Wrong("--from is after --to; exchange them".to_owned()))
        }
        _ => Ok(()),
    }
}

/// A request that is larger than the whole queue could be tried again for ever.
pub(super) fn check_queue(limits: &LimitSettings) -> Result<(), Refusal> {
    let refusal = |queue: &str, queue_max: u32, request: &str, request_max: u32| {
        let text = format!(
            "{queue} is {queue_max}, less than {request}, {request_max}: such a request would never be \
             stored. Raise the former or lower the latter."
        );
        if queue_max < request_max { Err(Refusal::Wrong(text)) } else { Ok(()) }
    };
    let (events, bytes) = ("TILLMARK_REQUEST_EVENTS_MAX", "TILLMARK_BODY_BYTES_MAX");
    refusal(
        "TILLMARK_QUEUE_EVENTS_MAX",
        limits.queue_events_max,
        events,
        limits.request_events_max,
    )?;
    refusal("TILLMARK_QUEUE_BYTES_MAX", limits.queue_bytes_max, bytes, limits.body_bytes_max)
}
