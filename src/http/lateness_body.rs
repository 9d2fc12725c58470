//! How late events come, in JSON.

use serde::Serialize;
use utoipa::ToSchema;

use super::figures::{DurationBody, moment_text};
use crate::database::{
    Delays, LATENESS_BUCKETS_MS, Lateness, LatenessBy, NewestOfSource, SourceLateness,
};
use crate::domain::{Lag, QueryName};

/// How late events came.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Lateness)]
pub(super) struct LatenessBody {
    /// Whose events.
    #[schema(example = "hourly_sales")]
    query: String,
    /// What a source is: `store_id`, `till_id` or `none`.
    #[schema(example = "store_id")]
    by: &'static str,
    /// All events of the range.
    total: DelaysOfBody,
    /// The sources, the worst first: by the 99% quantile of disorder, then its longest.
    sources: Vec<SourceBody>,
    /// How many sources have events in the range, whether or not they are listed.
    sources_count: usize,
    /// What was heard last of each source in the range, heartbeats too, the silent ones first.
    newest: Vec<NewestBody>,
}

/// Both delays of some events.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LatenessDelays)]
struct DelaysOfBody {
    /// From event time to receipt; less than nothing where a source's clock ran ahead.
    receipt_delay: DistributionBody,
    /// From an event's time to the newest time heard before it; nothing for events in order.
    disorder: DistributionBody,
    /// How many of the events were released from quarantine; their receipt is their release.
    released_from_quarantine: i64,
}

/// One source.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LatenessSource)]
struct SourceBody {
    /// The store; null for events that name none.
    #[schema(example = "S1")]
    store_id: Option<String>,
    /// The till; null for events that name none, and with `by=store_id`.
    till_id: Option<String>,
    #[serde(flatten)]
    delays: DelaysOfBody,
}

/// A delay over many events. Quantiles are those of `percentile_disc`, cut to milliseconds; null
/// without events.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LatenessDistribution)]
struct DistributionBody {
    /// How many events.
    count: i64,
    /// Half of the events took so long, or less.
    p50: Option<DurationBody>,
    /// 90% did.
    p90: Option<DurationBody>,
    /// 99% did.
    p99: Option<DurationBody>,
    /// 99.9% did.
    #[serde(rename = "p99.9")]
    p999: Option<DurationBody>,
    /// 99.99% did.
    #[serde(rename = "p99.99")]
    p9999: Option<DurationBody>,
    /// The longest.
    max: Option<DurationBody>,
    /// Events by how long they took.
    histogram: Vec<BucketBody>,
}

/// The events that took longer than the bucket before reaches.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LatenessBucket)]
struct BucketBody {
    /// Up to and including this; null for the last, which has no end.
    up_to: Option<DurationBody>,
    /// How many events.
    count: i64,
}

/// What was heard last of a source.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LatenessNewest)]
struct NewestBody {
    /// The `source` of heartbeats; null for a store or till, whose events these are.
    heartbeats_of: Option<String>,
    /// The store.
    store_id: Option<String>,
    /// The till.
    till_id: Option<String>,
    /// The newest event time.
    #[schema(format = DateTime)]
    event_time: String,
    /// When something was received last.
    #[schema(format = DateTime)]
    received_at: String,
}

impl LatenessBody {
    /// The report, with at most `limit` sources.
    pub(super) fn of(name: &QueryName, by: LatenessBy, lateness: &Lateness, limit: usize) -> Self {
        let source = |((store, till), delays): &((Option<String>, Option<String>), _)| SourceBody {
            store_id: store.clone(),
            till_id: till.clone(),
            delays: delays_of_body(delays),
        };
        Self {
            query: name.to_string(),
            by: match by {
                LatenessBy::None => "none",
                LatenessBy::Store => "store_id",
                LatenessBy::Till => "till_id",
            },
            total: delays_of_body(&lateness.total),
            sources: lateness.sources.iter().take(limit).map(source).collect(),
            sources_count: lateness.sources.len(),
            newest: lateness.newest.iter().take(limit).map(newest_body).collect(),
        }
    }
}

fn delays_of_body(source: &SourceLateness) -> DelaysOfBody {
    DelaysOfBody {
        receipt_delay: distribution_body(&source.receipt),
        disorder: distribution_body(&source.disorder),
        released_from_quarantine: source.released,
    }
}

fn distribution_body(delays: &Delays) -> DistributionBody {
    let duration = |ms: Option<i64>| ms.map(|ms| DurationBody::from(Lag::from_millis(ms)));
    let [p50, p90, p99, p999, p9999] = delays.quantiles_ms.map(duration);
    let ends = LATENESS_BUCKETS_MS.map(Some).into_iter().chain([None]);
    let counts = delays.histogram.iter().copied().chain(std::iter::repeat(0));
    let histogram = ends.zip(counts).map(|(end, count)| BucketBody { up_to: duration(end), count });
    DistributionBody {
        count: delays.count,
        p50,
        p90,
        p99,
        p999,
        p9999,
        max: duration(delays.max_ms),
        histogram: histogram.collect(),
    }
}

fn newest_body(newest: &NewestOfSource) -> NewestBody {
    let (store_id, till_id) = newest.source.clone();
    NewestBody {
        heartbeats_of: newest.heartbeats_of.clone(),
        store_id,
        till_id,
        event_time: newest.event_time.to_string(),
        received_at: moment_text(newest.received_at),
    }
}
