//! Corrections: late events of final windows, booked as numbered records. Nothing is overwritten.

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use sqlx::{Postgres, QueryBuilder};

use super::error::Doing;
use super::ledger_sql::range_sql;
use super::queries::StoredQuery;
use super::recount::RecountRange;
use super::values::{WindowColumns, push_reach, revenue_from_sql, unreadable};
use super::{Database, DatabaseError};
use crate::domain::{EventId, StoreReach, Totals, WindowKey};

/// Which corrections to read.
#[derive(Debug, Clone, Default)]
pub struct CorrectionSelection {
    /// Of windows that start in this range.
    pub range: RecountRange,
    /// Of these stores.
    pub reach: StoreReach,
}

/// A booked correction.
#[derive(Debug, Clone)]
pub struct Correction {
    /// Its number within the query, given once.
    pub number: i64,
    /// The window and group that it corrects.
    pub key: WindowKey,
    /// The row and the corrections before it.
    pub before: Totals,
    /// What it adds.
    pub difference: Totals,
    /// The events, in the order of the raw log.
    pub event_ids: Vec<EventId>,
    /// Why, in the words of whoever booked it.
    pub note: String,
    /// Who did.
    pub booked_by: String,
    /// When, by the database's clock.
    pub booked_at: DateTime<Utc>,
}

#[derive(Debug, sqlx::FromRow)]
struct CorrectionColumns {
    number: i64,
    #[sqlx(flatten)]
    window: WindowColumns,
    before_orders: i64,
    before_revenue: Decimal,
    note: String,
    booked_by: String,
    booked_at: DateTime<Utc>,
    event_ids: Vec<String>,
}

impl CorrectionColumns {
    fn read(self) -> Result<Correction, DatabaseError> {
        let (key, difference) = self.window.read()?;
        let ids = self.event_ids.into_iter().map(EventId::try_from);
        let before =
            Totals { orders: self.before_orders, revenue: revenue_from_sql(self.before_revenue) };
        Ok(Correction {
            number: self.number,
            key,
            before,
            difference,
            event_ids: ids
                .collect::<Result<_, _>>()
                .map_err(|error| unreadable("event_id", error))?,
            note: self.note,
            booked_by: self.booked_by,
            booked_at: self.booked_at,
        })
    }
}

impl Database {
    /// Up to `limit` corrections of a query with numbers above `after`, by number.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`] or [`DatabaseError::Unreadable`].
    pub async fn corrections(
        &self,
        query: &StoredQuery,
        selection: &CorrectionSelection,
        after: Option<i64>,
        limit: u32,
    ) -> Result<Vec<Correction>, DatabaseError> {
        let mut select = QueryBuilder::<Postgres>::new(
            "select corrections.*, array(
                 select coalesce(event_id, 'seq ' || seq) from corrected_events corrected
                 left join raw_events using (seq)
                 where corrected.query_id = corrections.query_id and corrected.number = corrections.number
                 order by seq) as event_ids
             from corrections where query_id = ",
        );
        select.push_bind(query.query_id).push(range_sql(selection.range, ""));
        push_reach(&mut select, &query.spec.group_by, &selection.reach);
        select.push(" and number > ").push_bind(after.unwrap_or(0));
        select.push(" order by number limit ").push_bind(i64::from(limit));
        let columns: Vec<CorrectionColumns> = select
            .build_query_as()
            .fetch_all(&mut *self.reader().await?)
            .await
            .doing("read the corrections")?;
        columns.into_iter().map(CorrectionColumns::read).collect()
    }
}
