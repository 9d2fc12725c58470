//! Writing output rows inside a batch's commit, each output mode in its way.
//!
//! Where a row changes, what it said before stays as a version, written by the same statement: so
//! rows can be read as they stood at any moment (`as_of`).

use chrono::{DateTime, Utc};
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{PgConnection, Postgres};

use super::DatabaseError;
use super::checkpoint::totals_to_sql;
use super::error::Doing;
use super::queries::StoredQuery;
use super::values::{WindowKeyArrays, watermark_to_sql};
use crate::domain::OutputMode;
use crate::engine::{Outcome, Row};

/// Writes the rows of a batch that was committed at `moment`.
pub(super) async fn rows_write(
    conn: &mut PgConnection,
    query: &StoredQuery,
    outcome: &Outcome,
    moment: DateTime<Utc>,
) -> Result<(), DatabaseError> {
    match query.spec.output_mode {
        OutputMode::Append => rows_insert(conn, query, outcome, moment).await,
        OutputMode::Update => {
            rows_merge(conn, query, &outcome.rows, moment).await?;
            fault_point!("engine.rows_merged");
            rows_close(conn, query.query_id, outcome).await
        }
        OutputMode::Complete => rows_merge(conn, query, &outcome.rows, moment).await,
    }
}

/// Writes final rows, once: a row that is there already is an error.
async fn rows_insert(
    conn: &mut PgConnection,
    query: &StoredQuery,
    outcome: &Outcome,
    moment: DateTime<Utc>,
) -> Result<(), DatabaseError> {
    let insert = "insert into window_rows (query_id, batch_id, written_at, closed_by, window_start,
             window_end, currency, group_keys, orders, revenue)
         select $1, $2, $9, closed_by, window_start, window_end, currency, group_keys, orders, revenue
         from unnest($3::timestamptz[], $4::timestamptz[], $5::text[], $6::text[], $7::bigint[],
             $8::numeric[], $10::text[]) as final_row (window_start, window_end, currency, group_keys,
             orders, revenue, closed_by)";
    if outcome.rows.is_empty() {
        return Ok(());
    }
    let closed_by =
        outcome.rows.iter().map(|row| outcome.closed_by(&row.key).as_str()).collect::<Vec<_>>();
    let rows = rows_bound(query, &outcome.rows, moment, insert)?;
    rows.bind(closed_by).execute(conn).await.doing("write output rows")?;
    Ok(())
}

/// Merges rows into the table, and keeps what those that change said before.
async fn rows_merge(
    conn: &mut PgConnection,
    query: &StoredQuery,
    rows: &[Row],
    moment: DateTime<Utc>,
) -> Result<(), DatabaseError> {
    let merge = "with merged as (
             select * from unnest($3::timestamptz[], $4::timestamptz[], $5::text[], $6::text[],
                 $7::bigint[], $8::numeric[])
                 as merged (window_start, window_end, currency, group_keys, orders, revenue)
         ), superseded as (
             insert into window_row_versions (query_id, window_start, window_end, currency, group_keys,
                 orders, revenue, batch_id, written_at, replaced_by)
             select old.query_id, old.window_start, old.window_end, old.currency, old.group_keys,
                 old.orders, old.revenue, coalesce(old.totals_batch_id, old.batch_id), old.written_at, $2
             from merged join window_rows old using (window_start, window_end, currency, group_keys)
             where old.query_id = $1
                 and (old.orders, old.revenue) is distinct from (merged.orders, merged.revenue)
         )
         insert into window_rows as old (query_id, batch_id, totals_batch_id, written_at, window_start,
             window_end, currency, group_keys, orders, revenue)
         select $1, $2, $2, $9, merged.* from merged
         on conflict on constraint window_rows_pkey
         do update set orders = excluded.orders, revenue = excluded.revenue,
             batch_id = excluded.batch_id, written_at = excluded.written_at,
             totals_batch_id = case
                 when (old.orders, old.revenue) is distinct from (excluded.orders, excluded.revenue)
                 then excluded.batch_id else coalesce(old.totals_batch_id, old.batch_id) end";
    if rows.is_empty() {
        return Ok(());
    }
    rows_bound(query, rows, moment, merge)?.execute(conn).await.doing("merge output rows")?;
    Ok(())
}

/// A statement that writes rows, with the first nine parameters bound.
fn rows_bound(
    query: &StoredQuery,
    rows: &[Row],
    moment: DateTime<Utc>,
    statement: &'static str,
) -> Result<Query<'static, Postgres, PgArguments>, DatabaseError> {
    let keys = WindowKeyArrays::of(rows.iter().map(|row| &row.key));
    let (orders, revenues) = totals_to_sql(rows)?;
    Ok(sqlx::query(statement)
        .bind(query.query_id)
        .bind(query.next_batch_id.get())
        .bind(keys.starts)
        .bind(keys.ends)
        .bind(keys.currencies)
        .bind(keys.groups)
        .bind(orders)
        .bind(revenues)
        .bind(moment))
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
