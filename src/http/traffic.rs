//! What the HTTP side counts of itself: requests, how long they take, and what became of events.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::{Method, StatusCode};

use super::exposition::{self, Exposition, Unit};
use crate::telemetry::Histogram;

/// Upper bounds of the histogram of durations, in microseconds; those that OpenTelemetry advises.
const BOUNDS_US: [u64; 14] = [
    5_000, 10_000, 25_000, 50_000, 75_000, 100_000, 250_000, 500_000, 750_000, 1_000_000,
    2_500_000, 5_000_000, 7_500_000, 10_000_000,
];

/// The counts. Cheap to clone; all clones count together.
#[derive(Debug, Clone, Default)]
pub(super) struct Traffic(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    active: AtomicI64,
    requests: Mutex<BTreeMap<Kind, Histogram<14>>>,
    events: Mutex<BTreeMap<&'static str, u64>>,
}

/// Requests that are counted together. All of it comes from tables of ours, however odd the requests.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    route: String,
    method: &'static str,
    status: u16,
}

/// A request at work; it ends to count when dropped.
pub(super) struct Active(Traffic);

impl Drop for Active {
    fn drop(&mut self) {
        self.0.0.active.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Traffic {
    /// Counts a request that begins.
    pub(super) fn begin(&self) -> Active {
        self.0.active.fetch_add(1, Ordering::Relaxed);
        Active(self.clone())
    }

    /// Counts a request that was answered; `route` as the router knows it.
    pub(super) fn answered(
        &self,
        route: &str,
        method: &Method,
        status: StatusCode,
        duration_us: i64,
    ) {
        let kind = Kind { route: route.to_owned(), method: known(method), status: status.as_u16() };
        let mut requests = lock(&self.0.requests);
        let durations = requests.entry(kind).or_insert_with(|| Histogram::new(&BOUNDS_US));
        durations.count(duration_us.unsigned_abs());
    }

    /// Counts what became of posted events.
    pub(super) fn events(&self, outcomes: impl IntoIterator<Item = (&'static str, usize)>) {
        let mut events = lock(&self.0.events);
        for (outcome, count) in outcomes {
            *events.entry(outcome).or_default() += u64::try_from(count).unwrap_or(u64::MAX);
        }
    }

    /// Writes the counts.
    pub(super) fn write(&self, text: &mut Exposition) {
        use exposition::Kind::{Counter, Gauge, Histogram};
        let help = "Requests at work, this one included.";
        let active = self.0.active.load(Ordering::Relaxed);
        text.family("http_server_active_requests", Gauge, help).sample("", active);
        let help = "How long requests took.";
        let mut family = text.family("http_server_request_duration_seconds", Histogram, help);
        for (kind, durations) in lock(&self.0.requests).iter() {
            family.histogram(&kind.labels(), &durations.counted(), Unit::Seconds);
        }
        let help = "Posted events by what became of them.";
        let mut family = text.family("tillmark_events_total", Counter, help);
        for (outcome, count) in lock(&self.0.events).iter() {
            family.sample(&format!("outcome=\"{outcome}\""), count);
        }
    }
}

impl Kind {
    fn labels(&self) -> String {
        let Self { route, method, status } = self;
        format!(
            "http_route=\"{route}\",http_request_method=\"{method}\",http_response_status_code=\"{status}\""
        )
    }
}

/// The method, or `_OTHER` for one that clients made up.
fn known(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        "PATCH" => "PATCH",
        _ => "_OTHER",
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_counted_up_to_each_bound_and_methods_of_clients_together() {
        let traffic = Traffic::default();
        let odd = Method::from_bytes(b"BREW").expect("a method");
        for duration_us in [1, 5_000, 5_001, 20_000_000] {
            traffic.answered("/v1/events", &odd, StatusCode::OK, duration_us);
        }
        traffic.events([("accepted", 3), ("rejected", 1)]);
        traffic.events([("accepted", 2)]);
        let _active = traffic.begin();
        let mut text = Exposition::default();
        traffic.write(&mut text);
        let text = text.into_text();
        let labels = r#"http_route="/v1/events",http_request_method="_OTHER",http_response_status_code="200""#;
        let name = "http_server_request_duration_seconds";
        for line in [
            "http_server_active_requests 1".to_owned(),
            r#"tillmark_events_total{outcome="accepted"} 5"#.to_owned(),
            format!(r#"{name}_bucket{{{labels},le="0.005"}} 2"#),
            format!(r#"{name}_bucket{{{labels},le="0.01"}} 3"#),
            format!(r#"{name}_bucket{{{labels},le="10"}} 3"#),
            format!(r#"{name}_bucket{{{labels},le="+Inf"}} 4"#),
            format!(r#"{name}_sum{{{labels}}} 20.010002"#),
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}
