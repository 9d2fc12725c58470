//! The SQL of the ledger with its corrections, as the reports and the bookings read it.

use super::as_of::AsOf;
use super::queries::StoredQuery;
use super::recount::RecountRange;
use super::recount_sql::literal;

/// The ledger of a query in `range` as a common table expression `ledger`; `correction` is the number
/// of the correction that an entry stands in.
pub(super) fn ledger_sql(query: &StoredQuery, range: RecountRange, as_of: Option<AsOf>) -> String {
    let query_id = query.query_id;
    let (batches, booked) = match as_of {
        Some(as_of) => (
            format!(" and {}", as_of.batches("dropped")),
            format!(" and corrections.booked_at <= {}", as_of.literal()),
        ),
        None => (String::new(), String::new()),
    };
    let range = range_sql(range, "dropped.");
    format!(
        "ledger as (select dropped.seq, dropped.window_start, dropped.window_end, dropped.currency,
             dropped.group_keys, dropped.amount, dropped.reason, corrections.number as correction
         from dropped_events dropped
         left join corrected_events corrected on corrected.query_id = dropped.query_id
             and corrected.seq = dropped.seq and corrected.window_start = dropped.window_start
             and corrected.window_end = dropped.window_end
         left join corrections on corrections.query_id = corrected.query_id
             and corrections.number = corrected.number{booked}
         where dropped.query_id = {query_id}{batches}{range})"
    )
}

/// Windows that start in the range, as conditions on the columns of a table.
pub(super) fn range_sql(range: RecountRange, table: &str) -> String {
    let from = range.from.map(|from| format!(" and {table}window_start >= {}", literal(from)));
    let to = range.to.map(|to| format!(" and {table}window_start < {}", literal(to)));
    from.unwrap_or_default() + &to.unwrap_or_default()
}
