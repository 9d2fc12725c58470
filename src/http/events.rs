//! Posting events.

use axum::extract::State;
use axum::response::Response;
use utoipa::IntoParams;

use super::App;
use super::authorize::LetIn;
use super::event_answer::{IngestAnswer, Pending};
use super::event_body::{CloudEventBody, EventsBody};
use super::params::Params;
use super::posted_body::PostedBody;
use super::problem::Problem;
use super::problem_docs::IngestProblems;
use super::rate_limit::RateLimit;
use super::stores::Stores;
use super::{HttpSettings, examples};
use crate::intake::{self, BodyLimits, CheckedItem, EventDefaults};

/// From here on taking a body apart is work for milliseconds, for which nobody else is to wait.
const LARGE_BODY_BYTES: usize = 64 * 1024;

/// How a post is to be taken.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct PostParams {
    /// `true`: store either every event or, when any of them is rejected or in conflict, none.
    #[param(value_type = Option<bool>, default = false)]
    atomic: bool,
    /// `all`: list every item in `results`, the plainly accepted ones too.
    #[param(value_type = Option<String>, pattern = "^all$", example = "all")]
    results: Option<&'static str>,
}

/// Documents how a body may be compressed.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "read by `PostedBody`; this documents it")]
pub(super) struct EncodingParams {
    /// How the body is compressed. Its limit holds before and after decompression.
    #[param(rename = "content-encoding", value_type = String, required = false, pattern = "^(gzip|zstd)$")]
    content_encoding: Option<String>,
}

impl PostParams {
    fn read(mut params: Params) -> Result<Self, Problem> {
        let atomic = params.flag("atomic").unwrap_or(false);
        let results = params.word("results", &["all"]);
        params.finish()?;
        Ok(Self { atomic, results })
    }
}

/// Post events.
///
/// Answers once every good event of the body is on disk. All good events are stored in one atomic
/// step, or the answer is an error. A retry with the same ids is always safe: what is stored
/// already is a `duplicate`, which is a success.
///
/// An event without `event_id` gets a hash of its content for an id, so two genuine sales that are
/// equal in everything count once: tills should send ids.
///
/// NDJSON: every line is an event, and a bad line is rejected alone. `index` is the number of the
/// line from 0; blank lines are skipped, but counted. A final newline and CRLF are fine.
///
/// CloudEvents 1.0 in structured mode: `data` holds the event. `id` is its `event_id`; an `event_id`
/// in `data` must be equal. `source` is its `till_id` and `time` its `event_time` where `data` names
/// none. As with `event_id`, one `id` is one event, whatever its `source`. Other attributes and
/// extensions are let through and not kept. Pointers of errors look like `/data/amount`.
///
/// Of a key that is bound to stores, events of other stores, or of none, are rejected. Where keys are
/// limited (`key_events_per_second` of `GET /v1/limits`), the headers `RateLimit` and `RateLimit-Policy`
/// say what is left; of what is too much nothing is stored.
#[utoipa::path(post, path = "/v1/events", tag = "Ingest",
    params(PostParams, EncodingParams),
    request_body(content(
        (EventsBody = "application/json", examples(
            ("one event" = (value = json!(examples::event("1001", "placed", "09:05:00", "20.00")))),
            ("an array" = (value = json!(examples::events()))),
            ("an object" = (value = json!({ "events": examples::events() }))))),
        (String = "application/x-ndjson", example = json!(examples::lines())),
        (CloudEventBody = "application/cloudevents+json",
            example = json!(examples::cloud_event("1001", "09:05:00", "20.00"))),
        (Vec<CloudEventBody> = "application/cloudevents-batch+json",
            example = json!(examples::cloud_events())))),
    responses(
        (status = 200, description = "Every event is accepted or a duplicate", body = IngestAnswer,
            example = json!(examples::ingest_accepted())),
        (status = 207, description = "Some events are stored; `results` says which are not, and why",
            body = IngestAnswer, example = json!(examples::ingest_mixed())),
        IngestProblems))]
pub(super) async fn post_events(
    State(app): State<App>,
    LetIn(caller): LetIn,
    params: Params,
    body: PostedBody,
) -> Result<Response, Problem> {
    let params = PostParams::read(params)?;
    let (bytes, format) = (body.bytes.len(), body.format);
    let mut items = match check(body, &app.settings) {
        Ok(items) => items,
        Err(problem) => return RateLimit::take(&caller, 0)?.told_in(Err(problem)),
    };
    let rate_limit = RateLimit::take(&caller, items.len())?;
    let stores = Stores::of(&caller);
    stores.reject_others(&mut items, format);
    rate_limit.told_in(store(&app, &stores, &params, items, bytes).await)
}

/// Stores what is good, and answers what became of each item.
async fn store(
    app: &App,
    stores: &Stores,
    PostParams { atomic, results }: &PostParams,
    items: Vec<CheckedItem>,
    bytes: usize,
) -> Result<Response, Problem> {
    let (pending, good) = Pending::part(items, *atomic);
    let appended = app.intake.append(good, bytes, *atomic).await?;
    let ingested = pending.joined_with(appended);
    app.traffic.events(ingested.tally());
    let ingested = if stores.are_bound() { ingested.without_firsts() } else { ingested };
    ingested.answer(*atomic, results.is_some())
}

/// Takes the body apart and checks every item. The body ends here: it need not wait for the disk.
#[expect(clippy::needless_pass_by_value, reason = "so that its memory is free when this returns")]
fn check(body: PostedBody, settings: &HttpSettings) -> Result<Vec<CheckedItem>, Problem> {
    let limits =
        BodyLimits { events_max: settings.events_max, event_bytes_max: settings.event_bytes_max };
    let defaults = EventDefaults { currency: settings.currency };
    let take_apart = || intake::events(&body.bytes, body.format, &defaults, &limits);
    let items = if body.bytes.len() < LARGE_BODY_BYTES {
        take_apart()
    } else {
        tokio::task::block_in_place(take_apart)
    };
    Ok(items?)
}
