//! What became of posted events, item by item.

use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::json::Json;
use super::problem::{FaultBody, Problem};
use super::problem_kind::ProblemKind;
use crate::database::Appended;
use crate::domain::{ContentHash, EventId, IdentifiedEvent, Seq};
use crate::intake::{CheckedItem, InvalidItem};

/// What became of the events of one request.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(super) struct IngestAnswer {
    /// In the raw log now, and durable.
    accepted: usize,
    /// There already, with the same content; a success.
    duplicates: usize,
    /// Refused: the same id is there with other content, and the first stays.
    conflicts: usize,
    /// Stored, not counted yet.
    quarantined: usize,
    /// Invalid, or not stored because of another event of an atomic request.
    rejected: usize,
    /// Every item that is not plainly accepted; with `?results=all` every item.
    results: Vec<ItemResult>,
}

/// What became of one item.
#[derive(Debug, Serialize, ToSchema)]
struct ItemResult {
    /// Its place in the body, from 0; of NDJSON its line, blank ones counted.
    index: usize,
    /// Its id, where one could be read.
    event_id: Option<String>,
    /// What became of it.
    #[schema(example = "accepted")]
    status: ItemStatus,
    /// Its position in the raw log; of a duplicate or conflict, that of the first where it is stored.
    seq: Option<i64>,
    /// A sentence, where there is more to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    /// What is wrong with it, and where.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    errors: Vec<FaultBody>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum ItemStatus {
    Accepted,
    Duplicate,
    Conflict,
    Quarantined,
    Rejected,
}

/// The items of a request, the good ones without what is on its way to the log.
#[derive(Debug)]
pub(super) struct Pending(Vec<PendingItem>);

#[derive(Debug)]
enum PendingItem {
    Good { index: usize, event_id: EventId, content_hash: ContentHash },
    Invalid { index: usize, item: InvalidItem },
}

impl Pending {
    /// Parts the items from the events to be stored. Of an atomic request with a bad item there
    /// are none to be stored.
    pub(super) fn part(items: Vec<CheckedItem>, atomic: bool) -> (Self, Vec<IdentifiedEvent>) {
        let is_refused = atomic && items.iter().any(|item| item.outcome.is_err());
        let mut good = Vec::with_capacity(items.len());
        let items = items.into_iter().map(|CheckedItem { index, outcome }| match outcome {
            Ok(event) => {
                let (event_id, content_hash) = (event.event.event_id.clone(), event.content_hash);
                if !is_refused {
                    good.push(event);
                }
                PendingItem::Good { index, event_id, content_hash }
            }
            Err(item) => PendingItem::Invalid { index, item },
        });
        let items = items.collect();
        (Self(items), good)
    }

    /// Joins the items with the answers for the good ones, in order. Good items without an answer
    /// were never offered to the log.
    pub(super) fn joined_with(self, appended: Vec<Appended>) -> Ingested {
        let mut appended = appended.into_iter();
        let results = self.0.into_iter().map(|item| match item {
            PendingItem::Good { index, event_id, content_hash } => {
                let appended = appended.next().unwrap_or(Appended::NotStored);
                of_good(index, &event_id, content_hash, appended)
            }
            PendingItem::Invalid { index, item } => of_invalid(index, item),
        });
        Ingested(results.collect())
    }
}

/// The items of a request with what became of them.
#[derive(Debug)]
pub(super) struct Ingested(Vec<ItemResult>);

impl Ingested {
    /// How many items had each outcome.
    pub(super) fn tally(&self) -> [(&'static str, usize); 5] {
        let outcomes = [
            ("accepted", ItemStatus::Accepted),
            ("duplicate", ItemStatus::Duplicate),
            ("conflict", ItemStatus::Conflict),
            ("quarantined", ItemStatus::Quarantined),
            ("rejected", ItemStatus::Rejected),
        ];
        outcomes.map(|(word, status)| {
            (word, self.0.iter().filter(|result| result.status == status).count())
        })
    }

    /// The same without the hashes of first events: whoever is bound to stores is not told what those of
    /// others say.
    pub(super) fn without_firsts(mut self) -> Self {
        for result in self.0.iter_mut().filter(|result| result.status == ItemStatus::Conflict) {
            let detail = "An event before it has this id and other content, and stays.";
            result.detail = Some(detail.to_owned());
        }
        self
    }

    /// The answer: its status follows from what became of all items together.
    pub(super) fn answer(self, atomic: bool, lists_all: bool) -> Result<Response, Problem> {
        let count =
            |status| self.0.iter().filter(|result: &&ItemResult| result.status == status).count();
        let (conflicts, rejected) = (count(ItemStatus::Conflict), count(ItemStatus::Rejected));
        let (bad, all) = (conflicts + rejected, self.0.len());
        let status = match bad {
            0 => Ok(StatusCode::OK),
            // What an atomic request cannot store whole is its fault, conflicts included.
            _ if atomic || rejected == all => Err(ProblemKind::InvalidEvents),
            _ if conflicts == all => Err(ProblemKind::EventConflict),
            _ => Ok(StatusCode::MULTI_STATUS),
        };
        let answer = IngestAnswer {
            accepted: count(ItemStatus::Accepted),
            duplicates: count(ItemStatus::Duplicate),
            conflicts,
            quarantined: count(ItemStatus::Quarantined),
            rejected,
            results: listed(self.0, lists_all),
        };
        match status {
            Ok(status) => Ok((status, Json(answer)).into_response()),
            Err(kind) => Err(Problem::of(kind).with_answer(answer)),
        }
    }
}

fn listed(mut results: Vec<ItemResult>, lists_all: bool) -> Vec<ItemResult> {
    results.retain(|result| lists_all || result.status != ItemStatus::Accepted);
    results
}

fn of_good(
    index: usize,
    event_id: &EventId,
    content_hash: ContentHash,
    appended: Appended,
) -> ItemResult {
    let result = |status, seq: Option<Seq>, detail| ItemResult {
        index,
        event_id: Some(event_id.as_str().to_owned()),
        status,
        seq: seq.map(Seq::get),
        detail,
        errors: Vec::new(),
    };
    match appended {
        Appended::Accepted(seq) => result(ItemStatus::Accepted, Some(seq), None),
        Appended::Duplicate(seq) => result(ItemStatus::Duplicate, Some(seq), None),
        Appended::Conflict { first_seq, in_same_request, first_content_hash } => {
            let first = match first_seq {
                Some(seq) => {
                    format!("The event at seq {seq} has this id and other content, and stays")
                }
                None if in_same_request => {
                    "An event before it in this atomic request has its id and other content".into()
                }
                None => {
                    "The first event of this id, which was put in quarantine, has other content"
                        .into()
                }
            };
            let detail = format!(
                "{first}: the hash of its content is {first_content_hash}, that of this one {content_hash}."
            );
            result(ItemStatus::Conflict, first_seq, Some(detail))
        }
        Appended::Quarantined => {
            let detail = "Its event_time is further ahead of the database's clock than \
                          `GET /v1/limits` allows. It is stored, and counts once somebody releases it.";
            result(ItemStatus::Quarantined, None, Some(detail.to_owned()))
        }
        Appended::RejectedBefore => {
            let detail =
                "The same event was in quarantine, and somebody rejected it: it counts nowhere.";
            result(ItemStatus::Duplicate, None, Some(detail.to_owned()))
        }
        // The second is no answer for an event.
        Appended::NotStored | Appended::NotInQuarantine => {
            let detail =
                "Good in itself, but not stored: another event of the atomic request is bad.";
            result(ItemStatus::Rejected, None, Some(detail.to_owned()))
        }
    }
}

fn of_invalid(index: usize, item: InvalidItem) -> ItemResult {
    ItemResult {
        index,
        event_id: item.event_id,
        status: ItemStatus::Rejected,
        seq: None,
        detail: None,
        errors: item.faults.into_iter().map(FaultBody::from).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Fault;
    use crate::intake::{BodyFormat, BodyLimits, EventDefaults, events};

    fn good() -> Result<IdentifiedEvent, InvalidItem> {
        let body = br#"{"event_id":"e1","order_id":"1","status":"placed","amount":"1.00","event_time":"2026-10-01T09:05:00Z"}"#;
        let defaults = EventDefaults { currency: "USD".parse().expect("ISO") };
        let items = events(body, BodyFormat::Json, &defaults, &BodyLimits::default());
        items.expect("JSON").remove(0).outcome
    }

    fn bad() -> Result<IdentifiedEvent, InvalidItem> {
        let faults = vec![Fault::new("/amount", "missing", "`amount` is required")];
        Err(InvalidItem { event_id: None, faults })
    }

    #[test]
    fn the_status_tells_whether_anything_was_stored() {
        let stored = Appended::Accepted(Seq::new(1));
        let again = Appended::Duplicate(Seq::new(1));
        let first_seq = Some(Seq::new(1));
        let conflict = Appended::Conflict {
            first_seq,
            in_same_request: false,
            first_content_hash: ContentHash([0; 32]),
        };
        for (case, items, appended, atomic, status) in [
            ("nothing posted", vec![], vec![], false, 200),
            ("all accepted", vec![good()], vec![stored], false, 200),
            ("accepted and duplicate", vec![good(), good()], vec![stored, again], false, 200),
            ("one in quarantine", vec![good()], vec![Appended::Quarantined], false, 200),
            ("one rejected before", vec![good()], vec![Appended::RejectedBefore], false, 200),
            ("one rejected", vec![bad(), good()], vec![stored], false, 207),
            ("all rejected", vec![bad(), bad()], vec![], false, 422),
            ("all in conflict", vec![good(), good()], vec![conflict, conflict], false, 409),
            ("conflict and rejected", vec![good(), bad()], vec![conflict], false, 207),
            ("conflict and duplicate", vec![good(), good()], vec![conflict, again], false, 207),
            ("atomic, one bad", vec![good(), bad()], vec![], true, 422),
            ("atomic, one in conflict", vec![good()], vec![conflict], true, 422),
            ("atomic, all accepted", vec![good()], vec![stored], true, 200),
        ] {
            let number = |(index, outcome)| CheckedItem { index, outcome };
            let items = items.into_iter().enumerate().map(number).collect();
            let (pending, stored) = Pending::part(items, atomic);
            assert_eq!(stored.len(), appended.len(), "{case}");
            let answer = pending.joined_with(appended).answer(atomic, false);
            let response = answer.unwrap_or_else(axum::response::IntoResponse::into_response);
            assert_eq!(response.status().as_u16(), status, "{case}");
        }
    }
}
