//! Partitions of the raw log, attached before they are needed.

use sqlx::{AssertSqlSafe, PgConnection};

use super::DatabaseError;
use super::error::Doing;
use crate::domain::Seq;

/// Records in one partition; the first one is made by the migration.
const PARTITION_ROWS: i64 = 10_000_000;
/// Once this little is left of the last partition, the next one is attached.
const ROOM_MIN: i64 = PARTITION_ROWS / 2;

/// How far the partitions reach, as one writer last saw it. Starts unknown.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LogRoom {
    end: i64,
}

impl LogRoom {
    /// Whether there is room for many more appends, as far as is known.
    pub(super) const fn is_known(self) -> bool {
        self.end > 0
    }

    /// The same room after an append up to `last`: no longer known when little of it is left.
    pub(super) fn after(self, last: Seq) -> Self {
        let needed_end = last.get().saturating_add(ROOM_MIN);
        if self.end >= needed_end { self } else { Self::default() }
    }

    /// Makes sure that the raw log takes records up to `last` and some way beyond. Called under
    /// the append lock, so that two replicas never attach the same partition.
    ///
    /// Attaching takes a lock that neither readers nor writers of the log wait for. The new room
    /// counts only once the transaction has committed.
    pub(super) async fn reach(
        self,
        conn: &mut PgConnection,
        last: Seq,
    ) -> Result<Self, DatabaseError> {
        let needed_end = last.get().saturating_add(ROOM_MIN);
        if self.end >= needed_end {
            return Ok(self);
        }
        let mut next = partition_count(conn).await?;
        while next * PARTITION_ROWS < needed_end {
            attach(conn, next).await?;
            next += 1;
        }
        Ok(Self { end: next * PARTITION_ROWS })
    }
}

/// The table that takes so many records from `first` on: their partition, for finding that for each record
/// costs a tenth of a copy, or the whole log where they do not all fit into one.
pub(super) fn table_of(first: Seq, count: usize) -> String {
    let number = first.get() / PARTITION_ROWS;
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    if first.get().saturating_add(count) <= (number + 1) * PARTITION_ROWS {
        format!("raw_events_p{number:05}")
    } else {
        "raw_events".to_owned()
    }
}

/// The number of the partition after the last one.
async fn partition_count(conn: &mut PgConnection) -> Result<i64, DatabaseError> {
    sqlx::query_scalar(
        "select max(substring(child.relname from '\\d+$')::bigint) + 1
         from pg_inherits join pg_class child on child.oid = inhrelid
         where inhparent = 'raw_events'::regclass",
    )
    .fetch_one(conn)
    .await
    .doing("list the partitions of the raw log")
}

async fn attach(conn: &mut PgConnection, number: i64) -> Result<(), DatabaseError> {
    let (from, to) = (number * PARTITION_ROWS, (number + 1) * PARTITION_ROWS);
    let statements = format!(
        "create table raw_events_p{number:05} (like raw_events including all);
         alter table raw_events attach partition raw_events_p{number:05} for values from ({from}) to ({to})"
    );
    sqlx::raw_sql(AssertSqlSafe(statements))
        .execute(conn)
        .await
        .doing("attach a partition to the raw log")?;
    Ok(())
}
