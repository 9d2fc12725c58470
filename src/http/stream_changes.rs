//! What some micro-batches changed, as Server-Sent Events; made once for all who follow the same query.

use axum::body::Bytes;
use serde::Serialize;

use super::dropped_events::DroppedEventBody;
use super::json::json_line;
use super::kept::Weighed;
use super::problem::Problem;
use super::progress_body::ProgressBody;
use super::row_stream::cannot_be_written;
use super::stream::EventId;
use super::windows::RowBody;
use crate::database::{
    BatchSpan, CommittedProgress, Database, DroppedSelection, Standing, StoredQuery,
    WindowSelection,
};
use crate::domain::{BatchId, OutputMode, Seq, StoreReach, Watermark, WindowSpec};

/// The most micro-batches that are told of in one step.
const BATCHES_MAX: u32 = 100;
/// The most rows and late events of one step; a micro-batch that has more is not told of, but is to be
/// read.
const CHANGES_MAX: u32 = 2_000;

/// Whose changes since when.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ChangesKey {
    /// What has been told.
    pub(super) seen: EventId,
    /// What has been committed since; the first of it is told.
    pub(super) batches: BatchSpan,
    /// The stores whose changes are told.
    pub(super) reach: StoreReach,
}

/// The events up to a micro-batch.
#[derive(Debug, Clone)]
pub(super) struct Changes {
    pub(super) last: BatchId,
    pub(super) text: Bytes,
}

impl Weighed for Changes {
    fn bytes(&self) -> usize {
        const KEY: usize = 500;
        self.text.len() + KEY
    }
}

impl ChangesKey {
    /// Reads what changed, from the query's tables.
    ///
    /// # Errors
    /// A problem when it cannot be read.
    pub(super) async fn read(
        &self,
        database: &Database,
        now: &Standing,
    ) -> Result<Changes, Problem> {
        let (query, after) = (&now.query, self.batches.after);
        let mut entries = database.progress_after(query.query_id, after, BATCHES_MAX).await?;
        let mut changes = 0;
        let fitting = entries.iter().take_while(|progress| {
            let entry = &progress.entry;
            changes += entry.rows_written + entry.late_events;
            entry.batch_id <= self.batches.last && changes <= i64::from(CHANGES_MAX)
        });
        let fitting = fitting.count();
        entries.truncate(fitting);
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
            return Ok(Changes { last: self.batches.last, text: resync(now)? });
        };
        let batches = BatchSpan { after, last: last.entry.batch_id };
        let watermarks = (first.entry.late_watermark, last.entry.watermark);
        let positions = (first.entry.position_from, last.entry.position_to);
        let mut events = Events { seen: self.seen, text: Vec::new() };
        self.windows(database, query, (batches, &entries), watermarks, &mut events).await?;
        if entries.iter().any(|progress| progress.entry.late_events > 0) {
            self.late(database, query, positions, &mut events).await?;
        }
        if self.reach.is_bound() {
            events.seen = self.seen.at(batches.last);
            events.id();
        } else {
            for progress in entries {
                events.seen = self.seen.at(progress.entry.batch_id);
                events.add("progress", &ProgressBody::from(progress))?;
            }
        }
        Ok(Changes { last: batches.last, text: events.text.into() })
    }

    async fn windows(
        &self,
        database: &Database,
        query: &StoredQuery,
        (batches, entries): (BatchSpan, &[CommittedProgress]),
        (before, watermark): (Watermark, Watermark),
        events: &mut Events,
    ) -> Result<(), Problem> {
        let mut rows = Vec::new();
        if let Some(from) = database.rows_changed_from(query, batches, entries).await? {
            let selection = WindowSelection {
                from: Some(from),
                batches: Some(batches),
                reach: self.reach.clone(),
                of_sessions: matches!(query.spec.window, WindowSpec::Session { .. }),
                ..WindowSelection::default()
            };
            rows = database.windows(query, &selection, CHANGES_MAX).await?;
        }
        let complete_through = |watermark| {
            let closes = query.spec.output_mode != OutputMode::Complete;
            closes.then(|| query.spec.window.complete_through(watermark)).flatten()
        };
        if rows.is_empty() && complete_through(before) == complete_through(watermark) {
            return Ok(());
        }
        let changed = ChangedWindows {
            query: query.name.as_str(),
            batch_id: batches.last.get(),
            watermark: watermark.to_string(),
            complete_through: complete_through(watermark).map(|time| time.to_string()),
            rows: rows.iter().map(|row| RowBody::of(row, query, false)).collect(),
        };
        events.add("windows", &changed)
    }

    async fn late(
        &self,
        database: &Database,
        query: &StoredQuery,
        (after, up_to): (Seq, Seq),
        events: &mut Events,
    ) -> Result<(), Problem> {
        let selection = DroppedSelection {
            reason: Some("late".to_owned()),
            reach: self.reach.clone(),
            after: Some(after),
            up_to: Some(up_to),
            ..DroppedSelection::default()
        };
        let late = database.dropped_events(query.query_id, &selection, CHANGES_MAX).await?;
        if late.is_empty() {
            return Ok(());
        }
        let dropped_events = late.into_iter().map(DroppedEventBody::from).collect();
        events.add("late", &LateEvents { query: query.name.as_str(), dropped_events })
    }
}

/// The text of events. What comes before a micro-batch's progress has the id of the one before: whoever
/// is cut off between them is told again.
struct Events {
    seen: EventId,
    text: Vec<u8>,
}

impl Events {
    fn add(&mut self, event: &str, data: &impl Serialize) -> Result<(), Problem> {
        // JSON has no line breaks inside, so it is one line of data, which its own ends.
        let data = json_line(data).map_err(|error| cannot_be_written(&error))?;
        self.text.extend(format!("event: {event}\nid: {}\ndata: ", self.seen).into_bytes());
        self.text.extend(data);
        self.text.push(b'\n');
        Ok(())
    }

    /// An id alone, which is no event.
    fn id(&mut self) {
        self.text.extend(format!("id: {}\n\n", self.seen).into_bytes());
    }
}

/// The event that says to read anew what is there now.
///
/// # Errors
/// A problem when it cannot be written.
pub(super) fn resync(now: &Standing) -> Result<Bytes, Problem> {
    let query = &now.query;
    let mut events = Events { seen: EventId::of(now.revision), text: Vec::new() };
    events.add(
        "resync",
        &Resync {
            query: query.name.as_str(),
            batch_id: query.last_batch_id().map(BatchId::get),
            watermark: query.watermarks.current.to_string(),
            complete_through: query.complete_through().map(|time| time.to_string()),
        },
    )?;
    Ok(events.text.into())
}

/// The data of `windows`: rows as they stand, and how far windows are complete.
#[derive(Debug, Serialize)]
struct ChangedWindows<'query> {
    query: &'query str,
    batch_id: i64,
    watermark: String,
    complete_through: Option<String>,
    rows: Vec<RowBody>,
}

/// The data of `late`.
#[derive(Debug, Serialize)]
struct LateEvents<'query> {
    query: &'query str,
    dropped_events: Vec<DroppedEventBody>,
}

/// The data of `resync`.
#[derive(Debug, Serialize)]
struct Resync<'query> {
    query: &'query str,
    batch_id: Option<i64>,
    watermark: String,
    complete_through: Option<String>,
}
