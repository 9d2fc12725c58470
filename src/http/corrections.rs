//! Corrections: late events of final windows, booked and listed.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::audit::NumberCursor;
use super::authorize::LetIn;
use super::body::JsonBody;
use super::booking_body::{BookingSchema, booking};
use super::figures::{Figures, GroupMembers, GroupMembersSchema, moment_text};
use super::json::Json;
use super::paging::PageParams;
use super::params::{NamedQuery, NoParams, Params, Range};
use super::problem::Problem;
use super::problem_docs::{BookingProblems, QueryProblems};
use super::stores::Stores;
use super::{App, correction_examples};
use crate::database::{Booked, Correction, CorrectionSelection, RecountRange};
use crate::domain::{EventField, WindowKey};

/// Book corrections.
///
/// Books the late events of final windows that no correction holds yet, one numbered correction a
/// window, group and currency. Rows are not changed: `view=corrected` adds what was booked, and the
/// reconciliation explains with it. Booking the same again books nothing. A key that is bound to stores
/// books theirs only, also with `all`.
#[utoipa::path(post, path = "/v1/queries/{name}/corrections", tag = "Finance", params(NamedQuery),
    request_body(content = BookingSchema, content_type = "application/json", examples(
        ("all" = (value = json!(correction_examples::booking_of_all()))),
        ("some" = (value = json!(correction_examples::booking_of_one()))))),
    responses(
        (status = 200, description = "There was nothing to book", body = BookedAnswer,
            example = json!(correction_examples::nothing_booked())),
        (status = 201, description = "Booked", body = BookedAnswer,
            example = json!(correction_examples::booked())),
        BookingProblems))]
pub(super) async fn book_corrections(
    State(app): State<App>,
    LetIn(caller): LetIn,
    stores: Stores,
    NamedQuery(name): NamedQuery,
    _: NoParams,
    body: JsonBody,
) -> Result<Response, Problem> {
    let query = app.database.query(&name).await?;
    let booking = booking(&body, &query, stores.of_query(&query)?)?;
    let booked = app.database.corrections_book(&name, &booking, caller.key_id()).await?;
    let status = if booked.numbers.is_some() { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(BookedAnswer::of(name.to_string(), &booked))).into_response())
}

/// List corrections.
///
/// The corrections of a query by their numbers; `from` and `to` mean the starts of windows.
#[utoipa::path(get, path = "/v1/queries/{name}/corrections", tag = "Finance",
    params(NamedQuery, Range, PageParams),
    responses(
        (status = 200, description = "A page of corrections", body = CorrectionsAnswer,
            example = json!(correction_examples::corrections())),
        QueryProblems))]
pub(super) async fn list_corrections(
    State(app): State<App>,
    stores: Stores,
    NamedQuery(name): NamedQuery,
    mut params: Params,
) -> Result<Response, Problem> {
    let (Range { from, to }, page) = (params.range(), params.page::<NumberCursor>());
    let link = params.finish()?;
    let query = app.database.query(&name).await?;
    let after = page.after.as_ref().map(|cursor| cursor.number);
    let range = RecountRange { from, to };
    let selection = CorrectionSelection { range, reach: stores.of_query(&query)? };
    let mut read = app.database.corrections(&query, &selection, after, page.read_limit()).await?;
    let next_cursor = page.cut(&mut read, |correction| NumberCursor { number: correction.number });
    let fields = &query.spec.group_by;
    let corrections =
        read.into_iter().map(|correction| CorrectionBody::of(correction, fields)).collect();
    let body = CorrectionsAnswer { query: name.to_string(), corrections, next_cursor };
    Ok(link.answer(body.next_cursor.as_deref(), &body))
}

/// What was booked.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct BookedAnswer {
    /// Whose windows.
    #[schema(example = "hourly_sales")]
    query: String,
    /// How many corrections.
    booked: i64,
    /// The number of the first; null when there was nothing to book.
    first_number: Option<i64>,
    /// The number of the last; null when there was nothing to book.
    last_number: Option<i64>,
    /// What they add, per currency.
    totals: BTreeMap<&'static str, Figures>,
}

impl BookedAnswer {
    fn of(query: String, booked: &Booked) -> Self {
        let totals = booked.totals.iter();
        let totals =
            totals.map(|(currency, totals)| (currency.code(), Figures::of(*totals, *currency)));
        Self {
            query,
            booked: booked
                .numbers
                .map_or(0, |(first, last)| last.saturating_sub(first).saturating_add(1)),
            first_number: booked.numbers.map(|(first, _)| first),
            last_number: booked.numbers.map(|(_, last)| last),
            totals: totals.collect(),
        }
    }
}

/// A page of corrections.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CorrectionsAnswer {
    /// Whose windows.
    #[schema(example = "hourly_sales")]
    query: String,
    /// The corrections, by number.
    corrections: Vec<CorrectionBody>,
    /// What to ask the next page with; null at the end.
    next_cursor: Option<String>,
}

/// A correction. The fields of the query's `group_by` are members of their own.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Correction)]
struct CorrectionBody {
    /// Its number within the query; given once, also across a reset.
    #[schema(example = 1)]
    number: i64,
    /// The first moment inside the window.
    #[schema(format = DateTime, example = "2026-10-01T09:00:00Z")]
    start: String,
    /// The first moment after the window.
    #[schema(format = DateTime, example = "2026-10-01T10:00:00Z")]
    end: String,
    #[serde(flatten)]
    #[schema(value_type = GroupMembersSchema)]
    group: GroupMembers,
    /// ISO 4217.
    #[schema(example = "USD")]
    currency: &'static str,
    /// The window's row with the corrections before this one.
    before: Figures,
    /// The same with this one.
    after: Figures,
    /// What this one adds.
    difference: Figures,
    /// The events that it books, in the order of the raw log.
    event_ids: Vec<String>,
    /// Why, in the words of whoever booked it.
    note: String,
    /// Who did.
    booked_by: String,
    /// When, by the database's clock.
    #[schema(format = DateTime)]
    booked_at: String,
}

impl CorrectionBody {
    fn of(correction: Correction, fields: &[EventField]) -> Self {
        let WindowKey { window, currency, group } = &correction.key;
        let figures = |totals| Figures::of(totals, *currency);
        Self {
            number: correction.number,
            start: window.start.to_string(),
            end: window.end.to_string(),
            group: GroupMembers::of(fields, group),
            currency: currency.code(),
            before: figures(correction.before),
            after: figures(correction.before.plus(correction.difference)),
            difference: figures(correction.difference),
            event_ids: correction.event_ids.iter().map(ToString::to_string).collect(),
            note: correction.note,
            booked_by: correction.booked_by,
            booked_at: moment_text(correction.booked_at),
        }
    }
}
