//! Checked rows → the raw log, and what became of each.

use std::time::Duration;

use tracing::warn;

use super::ImportError;
use super::chunk::CheckedChunk;
use super::rejected::RejectedFile;
use super::summary::Counts;
use crate::clock::Stopwatch;
use crate::database::{
    AppendMemory, AppendRequest, Appended, Database, DatabaseError, FutureGuard,
};
use crate::domain::{Fault, IdentifiedEvent, Span};

const RETRY_PAUSE: Duration = Duration::from_millis(250);

/// Appends to the raw log. Storing the same again is always safe: what was stored before is a
/// duplicate.
pub(super) struct Store {
    pub(super) database: Database,
    pub(super) guard: FutureGuard,
    pub(super) memory: AppendMemory,
    /// How long a database that is away is waited for.
    pub(super) wait_max: Span,
}

impl Store {
    /// Stores the good rows of a chunk and keeps the others in `rejected`.
    pub(super) async fn take(
        &mut self,
        input: &str,
        chunk: &mut CheckedChunk,
        rejected: &mut RejectedFile,
    ) -> Result<Counts, ImportError> {
        let mut counts = Counts { read: chunk.row_count() as u64, ..Counts::default() };
        for (row, faults) in &chunk.rejected {
            counts.rejected += 1;
            rejected.add(input, chunk.row(*row), faults)?;
        }
        if !chunk.events.is_empty() {
            let events = std::mem::take(&mut chunk.events);
            let answers = self.append(events).await?;
            for (row, answer) in chunk.good.iter().zip(&answers) {
                let fault = match answer {
                    Ok(answer) => {
                        counts.add(answer);
                        conflict(answer)
                    }
                    Err(fault) => {
                        counts.rejected += 1;
                        Some(fault.clone())
                    }
                };
                if let Some(fault) = fault {
                    rejected.add(input, chunk.row(*row), &[fault])?;
                }
            }
        }
        rejected.flush()?;
        Ok(counts)
    }

    /// Appends events in one transaction; one by one if Postgres refuses what the checks let pass.
    async fn append(
        &mut self,
        events: Vec<IdentifiedEvent>,
    ) -> Result<Vec<Result<Appended, Fault>>, DatabaseError> {
        let request = AppendRequest::Events { events, all_or_nothing: false };
        match self.append_once(&request).await {
            Ok(answers) => Ok(answers.into_iter().map(Ok).collect()),
            Err(error) if error.is_refusal() => self.append_one_by_one(request).await,
            Err(error) => Err(error),
        }
    }

    async fn append_one_by_one(
        &mut self,
        request: AppendRequest,
    ) -> Result<Vec<Result<Appended, Fault>>, DatabaseError> {
        let AppendRequest::Events { events, .. } = request else { return Ok(Vec::new()) };
        let mut answers = Vec::with_capacity(events.len());
        for event in events {
            let request = AppendRequest::Events { events: vec![event], all_or_nothing: false };
            match self.append_once(&request).await {
                Ok(one) => answers.extend(one.into_iter().map(Ok)),
                Err(error) if error.is_refusal() => {
                    answers.push(Err(Fault::new("", "refused", error.chain())));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(answers)
    }

    /// Appends one request, again and again while the database is away.
    async fn append_once(
        &mut self,
        request: &AppendRequest,
    ) -> Result<Vec<Appended>, DatabaseError> {
        let away_since = Stopwatch::start();
        let requests = std::slice::from_ref(request);
        loop {
            match self.database.append(requests, self.guard, &mut self.memory, &mut || {}).await {
                Ok(mut answers) => return Ok(answers.pop().unwrap_or_default()),
                Err(error)
                    if error.is_outage() && away_since.elapsed_us() < self.wait_max.as_micros() =>
                {
                    warn!(error = %error.chain(), "Waiting for the database");
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// What is wrong with a row whose id another event has.
fn conflict(answer: &Appended) -> Option<Fault> {
    let Appended::Conflict { first_seq, first_content_hash, .. } = answer else { return None };
    let first =
        first_seq.map_or("The event before".to_owned(), |seq| format!("The event at seq {seq}"));
    let detail = format!(
        "{first} has this id and other content, and stays: the hash of its content is {first_content_hash}"
    );
    Some(Fault::new("/event_id", "conflict", detail))
}
