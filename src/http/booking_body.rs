//! The body of a booking: which windows, why and by whom.

use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::body::JsonBody;
use super::figures::GroupMembersSchema;
use super::problem::Problem;
use super::problem_kind::ProblemKind;
use crate::database::{Booking, BookingWindow, BookingWindows, StoredQuery};
use crate::domain::{EventField, EventTime, Fault, Note, RangeEnd, StoreReach, Window, WindowSpec};

/// A booking as it is described.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Booking)]
#[expect(dead_code, reason = "read by `booking`; these fields document it")]
pub(super) struct BookingSchema {
    /// The word `all`, for every final window with late events in no correction, or a list of windows.
    windows: BookingWindowsSchema,
    /// Why: 1 to 1,000 characters.
    #[schema(min_length = 1, max_length = 1000)]
    note: String,
    /// Who: 1 to 1,000 characters.
    #[schema(min_length = 1, max_length = 1000)]
    booked_by: String,
}

/// The word `all`, or windows.
#[derive(Debug, ToSchema)]
#[serde(untagged)]
#[schema(as = BookingWindows)]
#[expect(dead_code, reason = "read by `booking`; this documents it")]
enum BookingWindowsSchema {
    /// Every final window with late events in no correction.
    Word(AllSchema),
    /// These.
    Windows(Vec<BookingWindowSchema>),
}

#[derive(Debug, ToSchema)]
#[schema(as = BookingAll)]
#[expect(dead_code, reason = "read by `booking`; this documents it")]
enum AllSchema {
    #[serde(rename = "all")]
    All,
}

/// A window to book.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = BookingWindow)]
#[expect(dead_code, reason = "read by `booking`; these fields document it")]
struct BookingWindowSchema {
    /// The first moment inside the window.
    #[schema(format = DateTime)]
    start: String,
    /// The first moment after the window.
    #[schema(format = DateTime)]
    end: String,
    /// Only this currency. Left out: all.
    currency: Option<String>,
    /// For fields of the query's `group_by`, under their names: only with this value. Left out: all.
    group: Option<GroupMembersSchema>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BookingText {
    windows: Value,
    note: String,
    booked_by: String,
}

/// Reads a booking for `query`, of windows within `reach`.
///
/// # Errors
/// A problem that points at every fault; `window-not-final` or `other-stores` when only that is wrong.
pub(super) fn booking(
    body: &JsonBody,
    query: &StoredQuery,
    reach: StoreReach,
) -> Result<Booking, Problem> {
    let text: BookingText = body.read(ProblemKind::InvalidBooking)?;
    let mut faults = Vec::new();
    let note = words("/note", text.note, &mut faults);
    let booked_by = words("/booked_by", text.booked_by, &mut faults);
    let windows = match text.windows {
        Value::String(word) if word == "all" => Some(BookingWindows::All),
        Value::Array(items) => {
            let read = items.iter().enumerate().filter_map(|(index, item)| {
                window(&format!("/windows/{index}"), item, query, &mut faults)
            });
            Some(BookingWindows::Some(read.collect()))
        }
        _ => {
            let detail = "`windows` must be `all` or a list of windows";
            faults.push(Fault::new("/windows", "wrong_type", detail));
            None
        }
    };
    match (windows, note, booked_by) {
        (Some(windows), Some(note), Some(booked_by)) if faults.is_empty() => {
            refuse_open(&windows, query)?;
            refuse_others(&windows, query, &reach)?;
            Ok(Booking { windows, reach, note, booked_by })
        }
        _ => Err(Problem::with_faults(ProblemKind::InvalidBooking, faults)),
    }
}

fn words(pointer: &str, text: String, faults: &mut Vec<Fault>) -> Option<Note> {
    Note::try_from(text)
        .map_err(|fault| faults.push(Fault::new(pointer, "invalid", fault.to_string())))
        .ok()
}

/// Reads one window; what is wrong with it is among the faults.
fn window(
    pointer: &str,
    item: &Value,
    query: &StoredQuery,
    faults: &mut Vec<Fault>,
) -> Option<BookingWindow> {
    let mut fault = |at: &str, detail: String| {
        faults.push(Fault::new(format!("{pointer}{at}"), "invalid", detail));
    };
    let Some(members) = item.as_object() else {
        fault("", "must be an object with `start` and `end`".to_owned());
        return None;
    };
    let mut booked = BookingWindow {
        window: Window { start: EventTime::EARLIEST, end: EventTime::EARLIEST },
        currency: None,
        group: Vec::new(),
    };
    let fields: Vec<String> = query.spec.group_by.iter().map(ToString::to_string).collect();
    for (name, value) in members {
        let at = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
        let text = value.as_str();
        let place = fields.iter().position(|field| field == name);
        match (name.as_str(), place) {
            ("start" | "end", _) => {}
            ("currency", _) => match text.map(str::parse) {
                Some(Ok(currency)) => booked.currency = Some(currency),
                _ => fault(&at, "`currency` must be an ISO 4217 code such as `USD`".to_owned()),
            },
            (_, Some(place)) if value.is_null() || text.is_some() => {
                booked.group.push((place, text.map(str::to_owned)));
            }
            (_, Some(_)) => fault(&at, format!("`{name}` must be a string or null")),
            (_, None) => fault(&at, format!("`{name}` is no field of a window here")),
        }
    }
    booked.window.start = end_of(members, "start", &mut fault)?;
    booked.window.end = end_of(members, "end", &mut fault)?;
    if !is_window_of(query.spec.window, booked.window) {
        fault("", "is no window of this query; take `start` and `end` from its rows".to_owned());
    }
    Some(booked)
}

fn end_of(
    members: &Map<String, Value>,
    name: &str,
    fault: &mut impl FnMut(&str, String),
) -> Option<EventTime> {
    let at = format!("/{name}");
    let Some(text) = members.get(name).and_then(Value::as_str) else {
        fault(&at, format!("`{name}` is required: an RFC 3339 time in a string"));
        return None;
    };
    match text.parse() {
        Ok(RangeEnd(time)) => Some(time),
        Err(error) => {
            fault(&at, format!("`{name}` `{text}` {error}"));
            None
        }
    }
}

/// Sessions start and end anywhere.
fn is_window_of(spec: WindowSpec, window: Window) -> bool {
    match spec {
        WindowSpec::Session { .. } => window.start < window.end,
        WindowSpec::Tumbling { .. } | WindowSpec::Sliding { .. } => {
            spec.windows_of(window.start).any(|one| one == window)
        }
    }
}

fn refuse_open(windows: &BookingWindows, query: &StoredQuery) -> Result<(), Problem> {
    let BookingWindows::Some(windows) = windows else { return Ok(()) };
    let watermark = query.watermarks.current;
    let open = windows.iter().enumerate().filter(|(_, one)| !one.window.is_closed_at(watermark));
    let faults: Vec<Fault> = open
        .map(|(index, one)| {
            let detail = format!(
                "the window from {} to {} is not final: the watermark is {watermark}",
                one.window.start, one.window.end
            );
            Fault::new(format!("/windows/{index}"), "not_final", detail)
        })
        .collect();
    match faults.is_empty() {
        true => Ok(()),
        false => Err(Problem::with_faults(ProblemKind::WindowNotFinal, faults)),
    }
}

/// Windows of other stores, named as such. A window without a store means those of the caller.
fn refuse_others(
    windows: &BookingWindows,
    query: &StoredQuery,
    reach: &StoreReach,
) -> Result<(), Problem> {
    let BookingWindows::Some(windows) = windows else { return Ok(()) };
    let place = EventField::StoreId.place_in(&query.spec.group_by);
    let faults: Vec<Fault> = windows
        .iter()
        .enumerate()
        .filter_map(|(index, one)| {
            let (_, store) = one.group.iter().find(|(at, _)| Some(*at) == place)?;
            let store = store.as_ref().and_then(|id| id.parse().ok());
            (!reach.holds(store.as_ref())).then(|| {
                let detail = "the window is not of a store that the key is bound to";
                Fault::new(format!("/windows/{index}/store_id"), "other_store", detail)
            })
        })
        .collect();
    match faults.is_empty() {
        true => Ok(()),
        false => Err(Problem::with_faults(ProblemKind::OtherStores, faults)),
    }
}
