//! How many events a key may post: told in headers, and refused beyond it.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::Response;

use super::problem::Problem;
use super::problem_kind::ProblemKind;
use crate::access::{Allowance, BURST_SECONDS, Caller};

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// What a key may post, as of this request; nothing where that is not limited.
#[derive(Debug, Clone, Copy)]
pub(super) struct RateLimit(Option<Allowance>);

impl RateLimit {
    /// Takes `events` from what the caller's key may post.
    ///
    /// # Errors
    /// A problem that says when to come again, when that is too many.
    pub(super) fn take(caller: &Caller, events: usize) -> Result<Self, Problem> {
        let Some(allowance) = caller.take(events) else { return Ok(Self(None)) };
        let Some(seconds) = allowance.retry_after_seconds else { return Ok(Self(Some(allowance))) };
        let rate = allowance.burst_events / BURST_SECONDS;
        let detail = format!(
            "The key may post {rate} events a second, {} at once, and {events} are too many now. \
             Nothing was stored; send them again in {seconds} s.",
            allowance.burst_events
        );
        let mut problem = Problem::new(ProblemKind::RateLimited, detail)
            .with_header(header::RETRY_AFTER, HeaderValue::from(seconds));
        for (name, value) in headers(allowance) {
            problem = problem.with_header(name, value);
        }
        Err(problem)
    }

    /// The answer, whichever it is, with what is left.
    pub(super) fn told_in(self, answer: Result<Response, Problem>) -> Result<Response, Problem> {
        let Some(allowance) = self.0 else { return answer };
        let told = headers(allowance).into_iter();
        match answer {
            Ok(mut response) => {
                response.headers_mut().extend(told.collect::<HeaderMap>());
                Ok(response)
            }
            Err(problem) => {
                Err(told.fold(problem, |problem, (name, value)| problem.with_header(name, value)))
            }
        }
    }
}

/// As in the IETF's draft "RateLimit header fields for HTTP".
fn headers(allowance: Allowance) -> [(HeaderName, HeaderValue); 2] {
    let Allowance { burst_events, left_events, full_in_seconds, .. } = allowance;
    let policy = format!("\"events\";q={burst_events};w={BURST_SECONDS}");
    let now = format!("\"events\";r={left_events};t={full_in_seconds}");
    // Plain ASCII, so neither is ever empty.
    let value = |text: &str| HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""));
    [(RATE_LIMIT_POLICY, value(&policy)), (RATE_LIMIT, value(&now))]
}
