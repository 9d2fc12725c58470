//! The keys that a query's duplicates rule remembers.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::DatabaseError;
use super::error::Doing;
use super::values::watermark_to_sql;
use crate::domain::{DuplicateKey, EventTime};
use crate::engine::{Outcome, Remembered};

/// All keys that a query remembers.
pub(super) async fn duplicates_load(
    conn: &mut PgConnection,
    query_id: i64,
) -> Result<Vec<Remembered>, DatabaseError> {
    let rows: Vec<(DateTime<Utc>, String)> =
        sqlx::query_as("select expires_at, key from duplicate_state where query_id = $1")
            .bind(query_id)
            .fetch_all(conn)
            .await
            .doing("read a query's remembered keys")?;
    let remembered = |(expires_at, key): (DateTime<Utc>, String)| Remembered {
        expires_at: EventTime::from_utc(expires_at),
        key: DuplicateKey::new(&key),
    };
    Ok(rows.into_iter().map(remembered).collect())
}

/// Keeps what a batch remembers, and removes what has expired.
pub(super) async fn duplicates_write(
    conn: &mut PgConnection,
    query_id: i64,
    outcome: &Outcome,
) -> Result<(), DatabaseError> {
    if outcome.keys_forgotten > 0 {
        sqlx::query("delete from duplicate_state where query_id = $1 and expires_at <= $2")
            .bind(query_id)
            .bind(watermark_to_sql(outcome.watermarks.current))
            .execute(&mut *conn)
            .await
            .doing("forget expired keys")?;
    }
    fault_point!("engine.keys_forgotten");
    let keys = &outcome.keys_remembered;
    if !keys.is_empty() {
        sqlx::query(
            "insert into duplicate_state (query_id, expires_at, key)
             select $1, * from unnest($2::timestamptz[], $3::text[])",
        )
        .bind(query_id)
        .bind(keys.iter().map(|one| one.expires_at.to_utc()).collect::<Vec<_>>())
        .bind(keys.iter().map(|one| one.key.as_str()).collect::<Vec<_>>())
        .execute(conn)
        .await
        .doing("remember keys")?;
    }
    Ok(())
}
