//! Windows folded into local hours, days, weeks and months: which are asked for, and reading them.

use std::collections::VecDeque;

use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::counted_body::CountedBody;
use super::figures::{Figures, GroupMembers, moment_text};
use super::params::Params;
use super::problem::Problem;
use super::row_stream::{PAGE_ROWS, Pages};
use crate::database::{DatabaseError, StoredQuery, WindowSelection, WindowSource};
use crate::domain::{BatchId, Calendar, DayStart, EventTime, Granularity, WindowKey, Zone};
use crate::finance::local_days::{FoldRange, FoldedRow, Folding};
use crate::finance::local_fit::Foldable;

/// Documents how windows are folded; [`calendar`] reads it.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "read by `calendar`; these fields document it")]
pub(super) struct FoldParams {
    /// Folds windows into local hours (`PT1H`), days (`P1D`), ISO weeks (`P1W`) or months (`P1M`). A day
    /// begins at the first moment when the local clock has reached `business_day_start`: where the clock
    /// jumps over it, at the jump; where it shows it twice, at the first. A date that the zone skipped has
    /// no row.
    #[param(pattern = "^(PT1H|P1D|P1W|P1M)$", example = "P1D")]
    granularity: Option<String>,
    /// The time zone, by its name in the IANA database; only with `granularity`.
    #[param(default = "UTC", example = "Europe/Lisbon")]
    time_zone: Option<String>,
    /// When a business day begins, by the local clock, and with it a week and a month; only with
    /// `granularity`, and not with hours.
    #[param(pattern = "^([01][0-9]|2[0-3]):[0-5][0-9]$", default = "00:00", example = "04:00")]
    business_day_start: Option<String>,
}

/// The calendar that is asked for, if any.
pub(super) fn calendar(params: &mut Params) -> Option<Calendar> {
    let is_asked = params.has("granularity");
    let granularity: Option<Granularity> = params.parse("granularity");
    let zone: Option<Zone> = params.parse("time_zone");
    let day_start: Option<DayStart> = params.parse("business_day_start");
    for (name, is_given) in
        [("time_zone", zone.is_some()), ("business_day_start", day_start.is_some())]
    {
        if is_given && !is_asked {
            params.fault(name, "incomplete", "means nothing without `granularity`");
        }
    }
    if granularity == Some(Granularity::Hour) && day_start.is_some() {
        let detail = "means nothing to hours; leave it out, or ask for days, weeks or months";
        params.fault("business_day_start", "contradiction", detail);
    }
    Some(Calendar {
        granularity: granularity?,
        zone: zone.unwrap_or(Zone::UTC),
        day_start: day_start.unwrap_or_default(),
    })
}

/// Reads folds page by page.
pub(super) struct FoldPages<Rows> {
    source: Rows,
    query: StoredQuery,
    /// The windows still to be read.
    selection: WindowSelection,
    folding: Folding,
    is_final: Option<bool>,
    /// Only folds after this one.
    after: Option<WindowKey>,
    is_done: bool,
}

impl<Rows: WindowSource> FoldPages<Rows> {
    /// The folds of `selection` in this calendar.
    ///
    /// # Errors
    /// A problem when windows lie across the calendar's boundaries, or the cursor is not of this list.
    pub(super) async fn new(
        mut source: Rows,
        query: &StoredQuery,
        calendar: &Calendar,
        mut selection: WindowSelection,
    ) -> Result<(Self, FoldRange), Problem> {
        let windows = Foldable::of(query.spec.window)?;
        let range = windows.range(selection.from, selection.to);
        let held = source.bounds(query, &selection).await?;
        let (from, to) = to_check(calendar, range, held, query);
        windows.check(calendar, from, to)?;
        let after = selection.after.take();
        let is_final = selection.is_final.take();
        if let Some(after) = &after {
            let start = after.window.start;
            if calendar.period_of(start).bounds != after.window {
                return Err(Params::problem_of_a_foreign_cursor());
            }
            selection.from = selection.from.max(Some(start));
        }
        let complete_through = query.complete_through();
        if let (Some(false), Some(through)) = (is_final, complete_through) {
            // Everything before is final.
            selection.from = selection.from.max(Some(calendar.period_of(through).bounds.start));
        }
        let folding = Folding::new(calendar.clone(), range, complete_through);
        let (query, is_done) = (query.clone(), false);
        Ok((Self { source, query, selection, folding, is_final, after, is_done }, range))
    }

    /// Up to so many folds.
    ///
    /// # Errors
    /// [`DatabaseError`] when they cannot be read.
    pub(super) async fn read(&mut self, limit: u32) -> Result<Vec<FoldedRow>, DatabaseError> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut folds = Vec::new();
        while folds.len() < limit {
            let Some(more) = self.next_folds().await? else { break };
            folds.extend(more);
        }
        folds.truncate(limit);
        Ok(folds)
    }

    /// What the next page of windows finishes; nothing at the end.
    async fn next_folds(&mut self) -> Result<Option<Vec<FoldedRow>>, DatabaseError> {
        if self.is_done {
            return Ok(None);
        }
        let windows = self.source.rows(&self.query, &self.selection, PAGE_ROWS).await?;
        let mut folds = VecDeque::new();
        for window in &windows {
            folds.extend(self.folding.take(window));
        }
        match windows.last() {
            Some(last) if windows.len() >= PAGE_ROWS as usize => {
                self.selection.after = Some(last.key.clone());
            }
            Some(_) | None => {
                folds.extend(self.folding.end());
                self.is_done = true;
            }
        }
        // Folds come by time: after one that is not final none is.
        self.is_done |= self.is_final == Some(true) && folds.iter().any(|fold| !fold.is_final());
        let wanted = folds.into_iter().filter(|fold| {
            let is_after = self.after.as_ref().is_none_or(|after| order(fold) > order_of(after));
            is_after && self.is_final.is_none_or(|is_final| fold.is_final() == is_final)
        });
        Ok(Some(wanted.collect()))
    }
}

fn order(fold: &FoldedRow) -> (EventTime, &crate::domain::GroupKey, crate::domain::Currency) {
    (fold.period.bounds.start, &fold.group, fold.currency)
}

fn order_of(key: &WindowKey) -> (EventTime, &crate::domain::GroupKey, crate::domain::Currency) {
    (key.window.start, &key.group, key.currency)
}

/// The stretch whose boundaries matter: what is asked for, and where that is open what there is; at least
/// one period, so that a query without rows is not told otherwise than one with them.
fn to_check(
    calendar: &Calendar,
    range: FoldRange,
    held: Option<(EventTime, EventTime)>,
    query: &StoredQuery,
) -> (EventTime, EventTime) {
    let (first, end) = held.unzip();
    let somewhere = first.or(range.from).or(range.to);
    let somewhere = somewhere.unwrap_or(query.watermarks.current.as_event_time());
    let from = range.from.or(first).unwrap_or(calendar.period_of(somewhere).bounds.start);
    let behind = EventTime::from_micros(calendar.period_of(from).bounds.end.as_micros() + 1);
    let to = range.to.or(end).unwrap_or(behind);
    (from, if range.to.is_some() { to } else { to.max(behind) })
}

/// What the windows of a local period come to. The fields of the query's `group_by` are members of their
/// own.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FoldedRow)]
pub(super) struct FoldBody {
    /// The local date of the period's first day; of an hour, the day that it is in.
    #[schema(format = Date, example = "2026-10-25")]
    pub(super) date: String,
    /// The first moment of the period.
    #[schema(format = DateTime, example = "2026-10-24T23:00:00Z")]
    pub(super) start: String,
    /// The first moment after it.
    #[schema(format = DateTime, example = "2026-10-26T00:00:00Z")]
    pub(super) end: String,
    /// The first moment of what is counted here: `start`, or later where the asked range begins later.
    #[schema(format = DateTime, example = "2026-10-24T23:00:00Z")]
    pub(super) from: String,
    /// The first moment after what is counted here: `end`, or earlier where the asked range ends earlier.
    #[schema(format = DateTime, example = "2026-10-26T00:00:00Z")]
    pub(super) to: String,
    /// Whether the asked range cut the period.
    pub(super) partial: bool,
    #[serde(flatten)]
    pub(super) counted: CountedBody,
}

impl FoldBody {
    /// A fold in words of the API.
    pub(super) fn of(fold: &FoldedRow, query: &StoredQuery) -> Self {
        let (period, covered) = (fold.period, fold.covered);
        let figures = |totals| Figures::of(totals, fold.currency);
        Self {
            date: period.date(),
            start: period.bounds.start.to_string(),
            end: period.bounds.end.to_string(),
            from: covered.start.to_string(),
            to: covered.end.to_string(),
            partial: fold.is_partial(),
            counted: CountedBody {
                group: GroupMembers::of(&query.spec.group_by, &fold.group),
                currency: fold.currency.code(),
                figures: figures(fold.totals),
                r#final: fold.is_final(),
                batch_id: fold.batch_id.map(BatchId::get),
                written_at: moment_text(fold.written_at),
                closed_by: fold.closed_by.map(|closed_by| closed_by.as_str().to_owned()),
                late_since: figures(fold.late_since),
                corrections: fold.corrections.map(figures),
            },
        }
    }
}

impl<Rows: WindowSource + 'static> Pages for FoldPages<Rows> {
    type Row = FoldBody;

    async fn next(&mut self) -> Result<Option<Vec<FoldBody>>, DatabaseError> {
        let folds = self.next_folds().await?;
        Ok(folds.map(|folds| folds.iter().map(|fold| FoldBody::of(fold, &self.query)).collect()))
    }
}
