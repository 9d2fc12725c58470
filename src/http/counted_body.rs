//! What was counted: the part that windows and the periods that they fold into have in common.

use serde::Serialize;
use utoipa::ToSchema;

use super::figure_columns::{and_figures, and_group};
use super::figures::{Figures, GroupMembers, GroupMembersSchema};
use crate::domain::EventField;
use crate::table::{Cell, Columns};

/// What was counted of a group, and how far it can be relied on.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Counted)]
pub(super) struct CountedBody {
    #[serde(flatten)]
    #[schema(value_type = GroupMembersSchema)]
    pub(super) group: GroupMembers,
    /// ISO 4217.
    #[schema(example = "USD")]
    pub(super) currency: &'static str,
    #[serde(flatten)]
    pub(super) figures: Figures,
    /// Whether it will never change again; of a period, whether every window in it is final, those
    /// without a row included.
    pub(super) r#final: bool,
    /// The batch that wrote it last; null where only corrections make it.
    pub(super) batch_id: Option<i64>,
    /// When that was, by the database's clock; where only corrections make it, when the last was booked.
    #[schema(format = DateTime)]
    pub(super) written_at: String,
    /// What made it final: `watermark`, or `idle` where the wall clock did; null while it is not, and for
    /// a window that only corrections make.
    #[schema(example = "watermark")]
    pub(super) closed_by: Option<String>,
    /// Events that came too late to count; in the corrected view those that no correction holds.
    pub(super) late_since: Figures,
    /// How much of it booked corrections are; only in the corrected view.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) corrections: Option<Figures>,
}

/// The columns of what was counted; those of corrections only in the corrected view.
pub(super) fn and_counted<Row: 'static>(
    columns: Columns<Row>,
    fields: &[EventField],
    is_corrected: bool,
    of: fn(&Row) -> &CountedBody,
) -> Columns<Row> {
    let columns = and_group(columns, fields, move |row| Some(&of(row).group))
        .and("currency", move |row| Cell::exact(of(row).currency));
    let columns = and_figures(columns, "", move |row| Some(&of(row).figures))
        .and("final", move |row| Cell::exact(of(row).r#final))
        .and("batch_id", move |row| Cell::exact_or_nothing(of(row).batch_id))
        .and("written_at", move |row| Cell::exact(&of(row).written_at))
        .and("closed_by", move |row| Cell::exact_or_nothing(of(row).closed_by.as_ref()));
    let columns = and_figures(columns, "late_since_", move |row| Some(&of(row).late_since));
    match is_corrected {
        true => and_figures(columns, "corrections_", move |row| of(row).corrections.as_ref()),
        false => columns,
    }
}
