//! Advice on the watermark delay: what others would have done to the same log.

use std::fmt::{self, Display};
use std::str::FromStr;

use axum::extract::State;
use utoipa::IntoParams;

use super::delay_advice_body::DelayAdviceBody;
use super::detach::Awaited;
use super::json::Json;
use super::params::{NamedQuery, Params};
use super::problem::Problem;
use super::problem_docs::QueryProblems;
use super::problem_kind::ProblemKind;
use super::{App, finance_examples};
use crate::database::ReplayCuts;
use crate::domain::{InvalidSpan, Percent, Span};
use crate::finance::delay_advice::{self, AdviceError, Ask, DELAYS_MAX};

const DELAYS_DEFAULT: &str = "1 minute,5 minutes,15 minutes,1 hour,6 hours,1 day";
const TARGET_DEFAULT: &str = "99.9%";

/// Documents what is asked.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "read by `ask`; this documents it")]
pub(super) struct AdviceParams {
    /// The delays to try, 1 to 12 different ones with commas between.
    #[param(
        default = "1 minute,5 minutes,15 minutes,1 hour,6 hours,1 day",
        example = "5 minutes,1 hour"
    )]
    delays: Option<String>,
    /// The share of the events that must be counted in every window they belong to: above 0, at most
    /// 100, with at most 4 decimals. Its `%` may be left out, and is written `%25` in an address.
    #[param(default = "99.9%", example = "99.9%")]
    target: Option<String>,
    /// Where the log is cut into micro-batches: `batches`, as the query's were; or `events`, after every
    /// record, as if each had been read the moment it came, which is the strictest.
    #[param(pattern = "^(batches|events)$", default = "batches", example = "batches")]
    cuts: Option<String>,
}

/// Advise on the delay.
///
/// Replays the real log through the query's rule under each delay and answers what would have become of
/// it: the late events and their money, the share counted, when the windows would have closed, the
/// state held, and the smallest of the delays that reaches the target. Nothing is estimated and
/// nothing is changed. With `cuts=batches` everything that the query has read is replayed; with
/// `cuts=events` the whole log from its start. A log too long for one request is answered with
/// `deadline-exceeded`, and the work stops.
#[utoipa::path(get, path = "/v1/queries/{name}/delay-advice", tag = "Finance",
    params(NamedQuery, AdviceParams),
    responses(
        (status = 200, description = "What each delay would have done", body = DelayAdviceBody,
            example = json!(finance_examples::delay_advice())),
        QueryProblems))]
pub(super) async fn delay_advice(
    State(app): State<App>,
    NamedQuery(name): NamedQuery,
    awaited: Awaited,
    params: Params,
) -> Result<Json<DelayAdviceBody>, Problem> {
    let ask = ask(params)?;
    let _place = app.report_place()?;
    let is_awaited = move || awaited.is_awaited();
    let advice = delay_advice::advise(&app.database, &name, &ask, is_awaited).await?;
    Ok(Json(DelayAdviceBody::of(&ask, &advice)))
}

fn ask(mut params: Params) -> Result<Ask, Problem> {
    let delays = params.parse_or::<Delays>("delays", DELAYS_DEFAULT);
    let target = params.parse_or::<Percent>("target", TARGET_DEFAULT);
    let cuts = match params.word("cuts", &["batches", "events"]) {
        Some("events") => ReplayCuts::Events,
        Some(_) | None => ReplayCuts::Batches,
    };
    params.finish()?;
    // Whatever could not be read is a fault, and with one `finish` does not come back.
    let (Some(Delays(delays)), Some(target)) = (delays, target) else {
        return Err(Problem::of(ProblemKind::InvalidParameters));
    };
    Ok(Ask { delays, target, cuts })
}

/// The delays to try.
#[derive(Debug)]
struct Delays(Vec<Span>);

/// Why a list of delays is none.
#[derive(Debug)]
enum InvalidDelays {
    Delay(String, InvalidSpan),
    Repeated(Span),
    TooMany,
}

impl Display for InvalidDelays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delay(text, error) => write!(f, "names `{text}`, which {error}"),
            Self::Repeated(delay) => write!(f, "names {delay} twice"),
            Self::TooMany => write!(f, "names more than {DELAYS_MAX} delays"),
        }
    }
}

impl FromStr for Delays {
    type Err = InvalidDelays;

    fn from_str(text: &str) -> Result<Self, InvalidDelays> {
        let mut delays = Vec::new();
        for part in text.split(',').map(str::trim) {
            let delay =
                part.parse().map_err(|error| InvalidDelays::Delay(part.to_owned(), error))?;
            if delays.contains(&delay) {
                return Err(InvalidDelays::Repeated(delay));
            }
            delays.push(delay);
        }
        if delays.len() > DELAYS_MAX { Err(InvalidDelays::TooMany) } else { Ok(Self(delays)) }
    }
}

impl From<AdviceError> for Problem {
    fn from(error: AdviceError) -> Self {
        match error {
            AdviceError::Database(error) => error.into(),
            AdviceError::Unawaited => Self::of(ProblemKind::DeadlineExceeded),
            AdviceError::Panicked => Self::of(ProblemKind::Internal),
        }
    }
}
