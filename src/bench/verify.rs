//! Whether every answered event is in the log exactly once.

use serde::Serialize;

use super::events::Recipe;
use super::tally::Tally;
use crate::database::{Database, DatabaseError};
use crate::domain::Seq;

/// Ids that are read at a time.
const IDS_MAX: u32 = 50_000;
/// How many ids of events at fault are told.
const EXAMPLES_MAX: usize = 5;

/// What the log holds of the answered events.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Verification {
    /// Events of answered requests, each counted once.
    pub(super) answered: u64,
    /// Answered, and not in the log.
    pub(super) missing: u64,
    /// In the log more than once.
    pub(super) repeated: u64,
    /// In the log although nobody got the answer, as a broken connection may have it.
    pub(super) unanswered_in_log: u64,
    /// The first ids that are missing or repeated.
    pub(super) examples: Vec<String>,
}

impl Verification {
    pub(super) const fn is_sound(&self) -> bool {
        self.missing == 0 && self.repeated == 0
    }
}

/// Reads the log from `start` on and compares it with what was answered.
pub(super) async fn verify(
    database: &Database,
    start: Seq,
    recipe: &Recipe,
    tally: &Tally,
) -> Result<Verification, DatabaseError> {
    // For each connection, how often each of its events is in the log.
    let mut seen: Vec<Vec<u8>> = vec![Vec::new(); tally.answered.len()];
    let mut position = start;
    loop {
        let ids = database.event_ids_after(position, &recipe.id_prefix, IDS_MAX).await?;
        let Some((last, _)) = ids.last() else { break };
        position = *last;
        for (connection, number) in ids.iter().filter_map(|(_, id)| recipe.numbers_of(id.as_str()))
        {
            count(&mut seen, connection, number);
        }
    }
    Ok(compared(&seen, recipe, tally))
}

fn count(seen: &mut [Vec<u8>], connection: usize, number: u64) {
    let (Some(counts), Ok(number)) = (seen.get_mut(connection), usize::try_from(number)) else {
        return;
    };
    if counts.len() <= number {
        counts.resize(number + 1, 0);
    }
    counts[number] = counts[number].saturating_add(1);
}

fn compared(seen: &[Vec<u8>], recipe: &Recipe, tally: &Tally) -> Verification {
    let mut found = Verification::default();
    let mut stored_answered = 0;
    for (connection, (ranges, counts)) in tally.answered.iter().zip(seen).enumerate() {
        let mut at_fault = |number: u64| {
            if found.examples.len() < EXAMPLES_MAX {
                found.examples.push(format!("{}{connection}-{number}", recipe.id_prefix));
            }
        };
        for number in ranges.iter().cloned().flatten() {
            found.answered += 1;
            let count = usize::try_from(number).ok().and_then(|number| counts.get(number));
            if count.is_some_and(|count| *count > 0) {
                stored_answered += 1;
            } else {
                found.missing += 1;
                at_fault(number);
            }
        }
        for (number, _) in counts.iter().enumerate().filter(|(_, count)| **count > 1) {
            found.repeated += 1;
            at_fault(number as u64);
        }
        found.unanswered_in_log += counts.iter().filter(|count| **count > 0).count() as u64;
    }
    found.unanswered_in_log -= stored_answered;
    found
}
