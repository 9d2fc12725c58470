//! The columns that many tables share: group keys, and counts with their money.

use super::figures::{Figures, GroupMembers};
use crate::domain::EventField;
use crate::table::{Cell, Columns};

/// A column for each field of a query's `group_by`.
pub(super) fn and_group<Row: 'static>(
    columns: Columns<Row>,
    fields: &[EventField],
    group: impl Fn(&Row) -> Option<&GroupMembers> + Copy + Send + Sync + 'static,
) -> Columns<Row> {
    fields.iter().enumerate().fold(columns, |columns, (index, field)| {
        columns.and(field.to_string(), move |row| {
            Cell::text(group(row).and_then(|group| group.value(index)))
        })
    })
}

/// Two columns for a count and its money: `orders` and `revenue`, each after `prefix`.
pub(super) fn and_figures<Row: 'static>(
    columns: Columns<Row>,
    prefix: &str,
    figures: impl Fn(&Row) -> Option<&Figures> + Copy + Send + Sync + 'static,
) -> Columns<Row> {
    columns
        .and(format!("{prefix}orders"), move |row| {
            Cell::exact_or_nothing(figures(row).map(|figures| figures.orders))
        })
        .and(format!("{prefix}revenue"), move |row| {
            Cell::exact_or_nothing(figures(row).map(|figures| &figures.revenue))
        })
}
