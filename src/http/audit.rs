//! The audit trail.

use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::figures::moment_text;
use super::paging::{Page, PageParams};
use super::params::Params;
use super::problem::Problem;
use super::problem_docs::ListProblems;
use super::{App, correction_examples};
use crate::database::AuditEntry;

/// List the audit trail.
///
/// Every booking of corrections, every release and rejection of an event in quarantine, every reset and
/// deletion of a query, newest first. Entries are kept for good, also when what they speak of is gone.
#[utoipa::path(get, path = "/v1/audit", tag = "Finance", params(PageParams),
    responses(
        (status = 200, description = "A page of entries", body = AuditAnswer,
            example = json!(correction_examples::audit())),
        ListProblems))]
pub(super) async fn list_audit(
    State(app): State<App>,
    mut params: Params,
) -> Result<Response, Problem> {
    let page: Page<NumberCursor> = params.page();
    let link = params.finish()?;
    let before = page.after.as_ref().map(|cursor| cursor.number);
    let mut read = app.database.audit(before, page.read_limit()).await?;
    let next_cursor = page.cut(&mut read, |entry| NumberCursor { number: entry.number });
    let body = AuditAnswer { audit: read.into_iter().map(EntryBody::from).collect(), next_cursor };
    Ok(link.answer(body.next_cursor.as_deref(), &body))
}

/// Where a page of numbered entries ended.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NumberCursor {
    /// The number of its last entry.
    #[serde(rename = "n")]
    pub(super) number: i64,
}

/// A page of the audit trail.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AuditAnswer {
    /// The entries, newest first.
    audit: Vec<EntryBody>,
    /// What to ask the next page with; null at the end.
    next_cursor: Option<String>,
}

/// An entry of the audit trail.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AuditEntry)]
struct EntryBody {
    /// Later entries have higher numbers.
    number: i64,
    /// When, by the database's clock.
    #[schema(format = DateTime)]
    at: String,
    /// `corrections_booked`, `quarantine_released`, `quarantine_rejected`, `query_reset` or
    /// `query_deleted`.
    #[schema(example = "corrections_booked")]
    action: &'static str,
    /// The query that it was done to; null where none was.
    query: Option<String>,
    /// The event that it was done to; null where none was.
    event_id: Option<String>,
    /// By whom, in their words; null where nobody said.
    done_by: Option<String>,
    /// The key that it was asked for with; null where there was none.
    #[schema(example = "0123456789ab")]
    key_id: Option<String>,
    /// Why, in their words.
    note: Option<String>,
    /// What came of it: the numbers of corrections and what they add, where a released event stands, or
    /// how much was removed.
    #[schema(value_type = std::collections::HashMap<String, serde_json::Value>)]
    details: serde_json::Value,
}

impl From<AuditEntry> for EntryBody {
    fn from(AuditEntry { number, at, fact }: AuditEntry) -> Self {
        Self {
            number,
            at: moment_text(at),
            action: fact.action.as_str(),
            query: fact.query.map(|name| name.to_string()),
            event_id: fact.event_id.map(|id| id.to_string()),
            done_by: fact.done_by,
            key_id: fact.key_id.map(|key_id| key_id.to_string()),
            note: fact.note,
            details: fact.details,
        }
    }
}
