//! Advice on the watermark delay in JSON.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use super::figures::{DurationBody, Figures};
use crate::database::ReplayCuts;
use crate::domain::{Currency, Percent};
use crate::finance::delay_advice::{Ask, Closings, DelayAdvice, LateMoney, Trial};

/// What other watermark delays would have done to the same log.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DelayAdvice)]
pub(super) struct DelayAdviceBody {
    /// Whose log.
    #[schema(example = "hourly_sales")]
    query: String,
    /// The delay that the query has now.
    current_delay: DurationBody,
    /// Where the log was cut into micro-batches: `batches`, as the query's were, or `events`, after every
    /// record.
    #[schema(example = "batches")]
    cuts: &'static str,
    /// What was replayed.
    position: ReplayedBody,
    /// The share that must be counted.
    #[schema(example = "99.9%")]
    target: String,
    /// The smallest of the delays that reaches the target; null when none does, and when there is
    /// nothing to count.
    #[schema(example = "1 hour")]
    advised_delay: Option<String>,
    /// What each delay would have done, in the order in which they were asked for.
    delays: Vec<TrialBody>,
}

/// A run of the raw log.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReplayedLog)]
struct ReplayedBody {
    /// What stands after this …
    from: i64,
    /// … up to and including this.
    to: i64,
}

/// What a delay would have done.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DelayTrial)]
struct TrialBody {
    /// The delay.
    delay: DurationBody,
    /// Micro-batches, those without data too.
    batches: u64,
    /// Events that pass the filter.
    events_in: u64,
    /// Events that would have missed at least one of their windows.
    late_events: u64,
    /// Events that would have been dropped as duplicates.
    duplicates: u64,
    /// Output rows that would have been written, each time that one was.
    rows_written: u64,
    /// The late events' money, per currency that has any: currencies are never added together.
    late: BTreeMap<&'static str, LateMoneyBody>,
    /// The share of the events, duplicates apart, that would have counted in every window they belong
    /// to: cut to four decimals, so that only all of them are 100%. Null when there are none.
    #[schema(example = "99.98%")]
    share_counted: Option<String>,
    /// Whether that reaches the target.
    reaches_target: bool,
    /// When windows would have closed.
    closed: ClosedBody,
    /// The most windows that would have been open after a micro-batch.
    state_windows_max: u64,
    /// The most keys that the duplicates rule would have remembered after a micro-batch.
    remembered_keys_max: u64,
}

/// The late events of one currency.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LateMoney)]
struct LateMoneyBody {
    #[serde(flatten)]
    events: Figures,
    /// What the rows would have missed: an event counts once for each window that it missed.
    missing: Figures,
}

/// When windows would have closed: from each window's end to the moment when the record was received
/// that moved the watermark past it. Less than nothing where a source's clock ran ahead.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WindowsClosed)]
struct ClosedBody {
    /// How many windows; one that several groups have counts once.
    windows: u64,
    /// Half of them closed so long after their end, or sooner; null when none closed.
    median: Option<DurationBody>,
    /// To how many milliseconds the median is exact: 1, unless there are more than 50,000 different
    /// values.
    median_resolution_ms: i64,
    /// The one that closed last after its end.
    worst: Option<DurationBody>,
}

impl DelayAdviceBody {
    /// The answer to `ask`.
    pub(super) fn of(ask: &Ask, advice: &DelayAdvice) -> Self {
        let query = &advice.query;
        Self {
            query: query.name.to_string(),
            current_delay: query.spec.watermark_delay.into(),
            cuts: match ask.cuts {
                ReplayCuts::Batches => "batches",
                ReplayCuts::Events => "events",
            },
            position: ReplayedBody { from: query.start_seq.get(), to: advice.end.get() },
            target: ask.target.to_string(),
            advised_delay: advice.smallest_reaching(ask.target).map(|delay| delay.to_string()),
            delays: advice.trials.iter().map(|trial| trial_body(trial, ask.target)).collect(),
        }
    }
}

fn trial_body(trial: &Trial, target: Percent) -> TrialBody {
    let late =
        trial.late.iter().map(|(currency, late)| (currency.code(), late_body(*currency, *late)));
    TrialBody {
        delay: trial.delay().into(),
        batches: trial.batches,
        events_in: trial.events_in,
        late_events: trial.late_events,
        duplicates: trial.duplicates,
        rows_written: trial.rows_written,
        late: late.collect(),
        share_counted: trial.share_counted().map(|share| share.to_string()),
        reaches_target: trial.reaches(target),
        closed: closed_body(&trial.closings),
        state_windows_max: trial.state_windows_max,
        remembered_keys_max: trial.remembered_keys_max,
    }
}

fn late_body(currency: Currency, late: LateMoney) -> LateMoneyBody {
    LateMoneyBody {
        events: Figures::of(late.events, currency),
        missing: Figures::of(late.missing, currency),
    }
}

fn closed_body(closings: &Closings) -> ClosedBody {
    ClosedBody {
        windows: closings.windows(),
        median: closings.median().map(DurationBody::from),
        median_resolution_ms: closings.resolution_ms(),
        worst: closings.worst().map(DurationBody::from),
    }
}
