//! Output rows inside a batch's commit. Rows that change are merged by `commit_batch`, which keeps what
//! they said before as versions, so that rows can be read as they stood at any moment (`as_of`).

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{PgConnection, Postgres};

use super::DatabaseError;
use super::error::Doing;
use super::queries::StoredQuery;
use super::values::{WindowKeyArrays, revenue_to_sql, watermark_to_sql};
use crate::domain::OutputMode;
use crate::engine::{Outcome, Row};

/// Binds rows as six arrays: starts, ends, currencies, groups, orders and revenues.
pub(super) fn bind_rows<'query>(
    query: Query<'query, Postgres, PgArguments>,
    rows: &[Row],
) -> Result<Query<'query, Postgres, PgArguments>, DatabaseError> {
    let keys = WindowKeyArrays::of(rows.iter().map(|row| &row.key));
    let revenues: Vec<Decimal> =
        rows.iter().map(|row| revenue_to_sql(row.totals.revenue)).collect::<Result<_, _>>()?;
    Ok(query
        .bind(keys.starts)
        .bind(keys.ends)
        .bind(keys.currencies)
        .bind(keys.groups)
        .bind(rows.iter().map(|row| row.totals.orders).collect::<Vec<_>>())
        .bind(revenues))
}

/// Writes what becomes final by a batch that was committed at `moment`.
pub(super) async fn rows_finish(
    conn: &mut PgConnection,
    query: &StoredQuery,
    outcome: &Outcome,
    moment: DateTime<Utc>,
) -> Result<(), DatabaseError> {
    match query.spec.output_mode {
        OutputMode::Append => rows_insert(conn, query, outcome, moment).await,
        OutputMode::Update => rows_close(conn, query.query_id, outcome).await,
        OutputMode::Complete => Ok(()),
    }
}

/// Writes final rows, once: a row that is there already is an error.
async fn rows_insert(
    conn: &mut PgConnection,
    query: &StoredQuery,
    outcome: &Outcome,
    moment: DateTime<Utc>,
) -> Result<(), DatabaseError> {
    if outcome.rows.is_empty() {
        return Ok(());
    }
    let closed_by =
        outcome.rows.iter().map(|row| outcome.closed_by(&row.key).as_str()).collect::<Vec<_>>();
    let insert = sqlx::query(
        "insert into window_rows (query_id, batch_id, written_at, closed_by, window_start, window_end,
             currency, group_keys, orders, revenue)
         select $1, $2, $3, final_row.*
         from unnest($4::text[], $5::timestamptz[], $6::timestamptz[], $7::text[], $8::text[],
             $9::bigint[], $10::numeric[]) as final_row",
    );
    let insert = insert.bind(query.query_id).bind(query.next_batch_id.get()).bind(moment);
    let insert = bind_rows(insert.bind(closed_by), &outcome.rows)?;
    insert.execute(conn).await.doing("write output rows")?;
    Ok(())
}

/// Marks rows of update mode final whose windows the watermark has closed.
async fn rows_close(
    conn: &mut PgConnection,
    query_id: i64,
    outcome: &Outcome,
) -> Result<(), DatabaseError> {
    if outcome.state_removed.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "update window_rows
         set closed_by = case when window_end <= $3 then 'watermark' else 'idle' end
         where query_id = $1 and closed_by is null and window_end <= $2",
    )
    .bind(query_id)
    .bind(watermark_to_sql(outcome.watermarks.current))
    .bind(watermark_to_sql(outcome.watermark_by_sources))
    .execute(conn)
    .await
    .doing("mark rows final")?;
    Ok(())
}
