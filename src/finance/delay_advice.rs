//! What another watermark delay would have done: the real log replayed through the engine under each
//! of a few delays.
//!
//! The log is read once; every delay has a state of its own and takes each micro-batch in turn, so the
//! answer is what a query with that delay would have written, and no estimate. The next chunk is read
//! while the last one is worked through, on a thread where that holds nobody up.
//!
//! The one place of finance that uses the engine, and on purpose: what is asked is what it would do.

mod closings;
mod progress_of_time;
mod trial;

use crate::database::{Database, DatabaseError, ReplayBatch, ReplayCuts, StoredQuery};
use crate::domain::{Percent, QueryName, Seq, Span};
use crate::engine::Rules;

pub use closings::Closings;
use progress_of_time::ProgressOfTime;
pub use trial::{LateMoney, Trial};

/// The most delays that are tried at a time.
pub const DELAYS_MAX: usize = 12;

/// What is asked.
#[derive(Debug, Clone)]
pub struct Ask {
    /// The delays to try, at most [`DELAYS_MAX`].
    pub delays: Vec<Span>,
    /// The share of events that must be counted.
    pub target: Percent,
    /// Where the log is cut into micro-batches.
    pub cuts: ReplayCuts,
}

/// What each delay would have done.
#[derive(Debug)]
pub struct DelayAdvice {
    /// The query, as the replay found it.
    pub query: StoredQuery,
    /// The last record that was replayed.
    pub end: Seq,
    /// One for each delay, in the order in which they were asked for.
    pub trials: Vec<Trial>,
}

impl DelayAdvice {
    /// The smallest of the delays that counts the share `target`; nothing when none does, and when
    /// there was nothing to count.
    pub fn smallest_reaching(&self, target: Percent) -> Option<Span> {
        let reaching = self.trials.iter().filter(|trial| trial.reaches(target));
        reaching.map(Trial::delay).min()
    }
}

/// Why there is no advice.
#[derive(Debug, thiserror::Error)]
pub enum AdviceError {
    /// Reading failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// Nobody waits for it any more.
    #[error("nobody waits for the advice any more")]
    Unawaited,
    /// The engine has a fault that this log shows.
    #[error("the engine panicked; the log says where")]
    Panicked,
}

/// Replays what the query `name` reads under each delay, for as long as `is_awaited` says that
/// somebody waits for it.
///
/// # Errors
/// [`AdviceError`].
pub async fn advise<Awaited>(
    database: &Database,
    name: &QueryName,
    ask: &Ask,
    is_awaited: Awaited,
) -> Result<DelayAdvice, AdviceError>
where
    Awaited: Fn() -> bool + Clone + Send + 'static,
{
    let mut log = database.replay_log(name, ask.cuts).await?;
    let mut replay = Replay::new(&Rules::from(&log.query().spec), &ask.delays);
    let mut chunk = log.next_chunk().await?;
    while !chunk.is_empty() {
        let is_awaited = is_awaited.clone();
        let work = tokio::task::spawn_blocking(move || {
            let done = replay.take(&chunk, is_awaited);
            (replay, done)
        });
        let (worked, next) = tokio::join!(work, log.next_chunk());
        let (worked_on, done) = worked.map_err(|_| AdviceError::Panicked)?;
        if !done {
            return Err(AdviceError::Unawaited);
        }
        (replay, chunk) = (worked_on, next?);
    }
    Ok(DelayAdvice { end: log.end(), query: log.query().clone(), trials: replay.trials })
}

/// All delays, as far as the log has been read.
#[derive(Debug)]
struct Replay {
    rules: Rules,
    time: ProgressOfTime,
    trials: Vec<Trial>,
}

impl Replay {
    fn new(rules: &Rules, delays: &[Span]) -> Self {
        let trials = delays.iter().map(|delay| Trial::new(rules, *delay)).collect();
        Self { rules: rules.clone(), time: ProgressOfTime::default(), trials }
    }

    /// Takes the next batches; gives up, and says so, as soon as nobody waits any more.
    fn take(&mut self, batches: &[ReplayBatch], is_awaited: impl Fn() -> bool) -> bool {
        for ReplayBatch { batch, received_at, nothing_followed } in batches {
            let heard = self.time.heard_in(&self.rules, batch, received_at);
            for trial in &mut self.trials {
                if !is_awaited() {
                    return false;
                }
                if heard.is_some() {
                    trial.step(batch, &self.time);
                }
            }
            if let Some(heard) = heard {
                self.time.go_on(heard);
            }
            if *nothing_followed {
                for trial in &mut self.trials {
                    trial.step_without_data(&self.time);
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests;
