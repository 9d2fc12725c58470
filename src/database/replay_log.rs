//! The raw log as one query read it, for a replay under other rules: the same records, cut into
//! micro-batches in the same places.
//!
//! Everything is read in one snapshot, chunk by chunk, so a replay needs no more memory than a chunk
//! or the largest batch, and neither a commit nor a reset on the way changes what it sees.

use std::collections::VecDeque;

use sqlx::{PgConnection, Postgres, SqlSafeStr as _, Transaction};

use super::copy_format::Tuple;
use super::error::Doing;
use super::log_batch::{Builder, columns, copy_out};
use super::queries::{StoredQuery, find};
use super::values::unreadable;
use super::{Database, DatabaseError};
use crate::domain::{EventTime, QueryName, Seq};
use crate::engine::{Batch, Rules};

/// A chunk ends with the batch that reaches so many records.
const CHUNK_RECORDS: i64 = 50_000;
/// Progress entries read at a time.
const CUTS_PAGE: i64 = 5_000;

/// Where a replay cuts the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayCuts {
    /// As the query's micro-batches did; what it has not read yet is left out.
    Batches,
    /// After every record of the log, as if the query had read each the moment it came.
    Events,
}

/// One micro-batch of a replay.
#[derive(Debug)]
pub struct ReplayBatch {
    /// Its records.
    pub batch: Batch,
    /// When each of them was received, by the database's clock.
    pub received_at: Vec<EventTime>,
    /// Whether the log had nothing more then: a batch without data ran, should one have been owed.
    pub nothing_followed: bool,
}

/// A replay under way. It holds a connection and its snapshot until it is dropped.
pub struct ReplayLog {
    transaction: Transaction<'static, Postgres>,
    query: StoredQuery,
    cuts: ReplayCuts,
    columns: String,
    rules: Rules,
    /// It ends with this record.
    end: Seq,
    /// What has been read already.
    position: Seq,
    known: VecDeque<Cut>,
    next_batch_id: Option<i64>,
}

/// A micro-batch of the past: it read `from < seq <= to`.
#[derive(Debug, Clone, Copy, sqlx::FromRow)]
struct Cut {
    batch_id: i64,
    position_from: i64,
    position_to: i64,
    nothing_followed: bool,
}

impl Database {
    /// Begins a replay of what the query `name` reads.
    ///
    /// # Errors
    /// [`DatabaseError::NoSuchQuery`], [`DatabaseError::Unreadable`], [`DatabaseError::ReadsBusy`] or
    /// [`DatabaseError::Failed`].
    pub async fn replay_log(
        &self,
        name: &QueryName,
        cuts: ReplayCuts,
    ) -> Result<ReplayLog, DatabaseError> {
        let begin = "begin transaction isolation level repeatable read, read only".into_sql_str();
        let mut conn = self.reader().await?;
        // Nobody knows where a copy that was refused has left it.
        conn.close_on_drop();
        let mut transaction =
            Transaction::begin(conn, Some(begin)).await.doing("begin a replay")?;
        // The engine works between two chunks, and longer than others who hold a transaction.
        sqlx::query("set local idle_in_transaction_session_timeout = '60s'")
            .execute(&mut *transaction)
            .await
            .doing("begin a replay")?;
        let query = find(&mut transaction, name, false).await?;
        let end = match cuts {
            ReplayCuts::Batches => query.position,
            ReplayCuts::Events => {
                sqlx::query_scalar("select coalesce(max(seq), 0) from raw_events")
                    .fetch_one(&mut *transaction)
                    .await
                    .map(Seq::new)
                    .doing("find the end of the raw log")?
            }
        };
        let rules = Rules::from(&query.spec);
        Ok(ReplayLog {
            transaction,
            cuts,
            columns: columns(&rules),
            rules,
            end,
            position: query.start_seq,
            known: VecDeque::new(),
            next_batch_id: Some(0),
            query,
        })
    }
}

impl ReplayLog {
    /// The query as the snapshot has it.
    pub const fn query(&self) -> &StoredQuery {
        &self.query
    }

    /// The last record that is replayed.
    pub const fn end(&self) -> Seq {
        self.end
    }

    /// The next batches, in order; none when the replay has come to its end.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`], or [`DatabaseError::Unreadable`] for a row that somebody changed.
    pub async fn next_chunk(&mut self) -> Result<Vec<ReplayBatch>, DatabaseError> {
        match self.cuts {
            ReplayCuts::Batches => self.next_batches().await,
            ReplayCuts::Events => self.next_events().await,
        }
    }

    async fn next_batches(&mut self) -> Result<Vec<ReplayBatch>, DatabaseError> {
        let mut cuts: VecDeque<Cut> = VecDeque::new();
        let mut records: i64 = 0;
        while records < CHUNK_RECORDS {
            if self.known.is_empty() {
                self.read_cuts().await?;
            }
            let Some(cut) = self.known.pop_front() else { break };
            records = records.saturating_add(cut.position_to.saturating_sub(cut.position_from));
            cuts.push_back(cut);
        }
        let (Some(first), Some(last)) = (cuts.front(), cuts.back()) else {
            return Ok(Vec::new());
        };
        let statement = self.statement(first.position_from, last.position_to, None);
        let mut dealer = Dealer { rules: &self.rules, cuts, batches: Vec::new(), in_hand: None };
        read_records(&mut self.transaction, &statement, |seq, tuple| dealer.deal(seq, tuple))
            .await?;
        Ok(dealer.finish())
    }

    async fn next_events(&mut self) -> Result<Vec<ReplayBatch>, DatabaseError> {
        let statement = self.statement(self.position.get(), self.end.get(), Some(CHUNK_RECORDS));
        let (mut batches, mut last) = (Vec::new(), self.position);
        let rules = &self.rules;
        read_records(&mut self.transaction, &statement, |seq, tuple| {
            let mut building = Building::new(rules, true);
            building.add(tuple)?;
            batches.push(building.finish());
            last = Seq::new(seq);
            Ok(())
        })
        .await?;
        self.position = last;
        Ok(batches)
    }

    /// Reads records of `from < seq <= to`, but for those that the query goes on without.
    fn statement(&self, from: i64, to: i64, limit: Option<i64>) -> String {
        let (columns, query_id) = (&self.columns, self.query.query_id);
        let but_poison = match self.query.has_poison_events {
            true => format!(
                " and not exists (select from poison_events poison
                     where poison.query_id = {query_id} and poison.seq = raw_events.seq)"
            ),
            false => String::new(),
        };
        let limit = limit.map(|limit| format!(" limit {limit}")).unwrap_or_default();
        format!(
            "copy (select received_at, {columns} from raw_events
                 where seq > {from} and seq <= {to}{but_poison} order by seq{limit})
             to stdout (format binary)"
        )
    }

    /// Reads the next progress entries of batches with data. Whether the log had nothing more after
    /// one is told by what came next: the batch without data; or a batch whose watermark was still
    /// owed, so it came in time; or, where nothing was owed, by whether its first record came only after the
    /// query had rested.
    async fn read_cuts(&mut self) -> Result<(), DatabaseError> {
        let Some(next_batch_id) = self.next_batch_id else { return Ok(()) };
        let cuts: Vec<Cut> = sqlx::query_as(
            "select batch_id, position_from, position_to, case
                 when next_from is null then $4
                 when next_from = next_to then true
                 when next_watermark > watermark then false
                 else coalesce((select received_at from raw_events where seq > entry.position_to
                                order by seq limit 1) > \"timestamp\" + $5 * interval '1 microsecond', true)
                 end as nothing_followed
             from (
                 select batch_id, \"timestamp\", position_from, position_to, watermark,
                     lead(position_from) over following as next_from,
                     lead(position_to) over following as next_to,
                     lead(watermark) over following as next_watermark
                 from progress where query_id = $1 and batch_id >= $2
                 window following as (order by batch_id) order by batch_id limit $3
             ) entry",
        )
        .bind(self.query.query_id)
        .bind(next_batch_id)
        .bind(CUTS_PAGE)
        .bind(!self.query.owes_batch_without_data())
        .bind(self.query.spec.trigger.rest_min().as_micros())
        .fetch_all(&mut *self.transaction)
        .await
        .doing("read where the query's batches were cut")?;
        self.next_batch_id = cuts.last().map(|last| last.batch_id.saturating_add(1));
        self.known.extend(cuts.into_iter().filter(|cut| cut.position_from < cut.position_to));
        // A page of nothing but batches without data says nothing of those after it.
        if self.known.is_empty() && self.next_batch_id.is_some() {
            return Box::pin(self.read_cuts()).await;
        }
        Ok(())
    }
}

/// Hands each record, with where it stands, to `take`.
async fn read_records(
    conn: &mut PgConnection,
    statement: &str,
    mut take: impl FnMut(i64, Tuple<'_>) -> Result<(), DatabaseError>,
) -> Result<(), DatabaseError> {
    let take_record = |tuple: Tuple<'_>| {
        let mut peeked = tuple;
        let _received_at = peeked.time("received_at")?;
        let seq = peeked.integer("seq")?;
        take(seq.ok_or_else(|| unreadable("seq", "it is null"))?, tuple)
    };
    copy_out(conn, statement, take_record).await
}

/// A batch to which records are still added.
struct Building {
    builder: Builder,
    received_at: Vec<EventTime>,
    nothing_followed: bool,
}

impl Building {
    fn new(rules: &Rules, nothing_followed: bool) -> Self {
        Self { builder: Builder::of(rules), received_at: Vec::new(), nothing_followed }
    }

    fn add(&mut self, mut tuple: Tuple<'_>) -> Result<(), DatabaseError> {
        self.received_at.push(tuple.time("received_at")?);
        self.builder.add(tuple)
    }

    fn finish(self) -> ReplayBatch {
        let Self { builder, received_at, nothing_followed } = self;
        ReplayBatch { batch: builder.batch, received_at, nothing_followed }
    }
}

/// Deals records, as they come, to the batches that read them.
struct Dealer<'rules> {
    rules: &'rules Rules,
    /// Those that are still to come.
    cuts: VecDeque<Cut>,
    in_hand: Option<(Cut, Building)>,
    batches: Vec<ReplayBatch>,
}

impl Dealer<'_> {
    fn deal(&mut self, seq: i64, tuple: Tuple<'_>) -> Result<(), DatabaseError> {
        while self.in_hand.as_ref().is_none_or(|(cut, _)| cut.position_to < seq) {
            self.batches.extend(self.in_hand.take().map(|(_, building)| building.finish()));
            let Some(cut) = self.cuts.pop_front() else { return Ok(()) };
            self.in_hand = Some((cut, Building::new(self.rules, cut.nothing_followed)));
        }
        match &mut self.in_hand {
            Some((cut, building)) if cut.position_from < seq => building.add(tuple),
            // Between two batches stand records of which the query made none.
            Some(_) | None => Ok(()),
        }
    }

    fn finish(mut self) -> Vec<ReplayBatch> {
        self.batches.extend(self.in_hand.take().map(|(_, building)| building.finish()));
        self.batches
    }
}
