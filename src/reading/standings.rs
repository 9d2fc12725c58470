//! One look for many who ask: those who come while a look is under way share the next one.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tracing::debug;

use crate::database::{Database, DatabaseError, Standing, StandingsReader};
use crate::domain::QueryName;

/// After this the connection is given up: all who ask wait for it.
const LOOK_MAX: Duration = Duration::from_secs(2);

/// Who waits for the next look, and for which query.
type Waiting = (QueryName, oneshot::Sender<Arc<Standing>>);

/// Where queries stand, for everybody who asks. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Standings(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    database: Database,
    asked: Mutex<Asked>,
}

/// Those who wait for the next look, and whether somebody takes looks.
#[derive(Debug, Default)]
struct Asked {
    waiting: Vec<Waiting>,
    is_looking: bool,
}

impl Standings {
    /// Of the queries in this database.
    pub fn new(database: Database) -> Self {
        Self(Arc::new(Shared { database, asked: Mutex::default() }))
    }

    /// Where a query stands now.
    ///
    /// # Errors
    /// [`DatabaseError::NoSuchQuery`], [`DatabaseError::Unreadable`], [`DatabaseError::ReadsBusy`] or
    /// [`DatabaseError::Failed`].
    pub async fn of(&self, name: &QueryName) -> Result<Arc<Standing>, DatabaseError> {
        let (answer, answered) = oneshot::channel();
        let begins = {
            let mut asked = self.0.asked();
            asked.waiting.push((name.clone(), answer));
            !mem::replace(&mut asked.is_looking, true)
        };
        if begins {
            tokio::spawn(look_while_asked(Arc::clone(&self.0)));
        }
        match answered.await {
            Ok(standing) => Ok(standing),
            // It is not there, or the look failed: looking alone tells which.
            Err(_) => Box::pin(self.0.database.standing(name)).await.map(Arc::new),
        }
    }
}

impl Shared {
    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those who wait; without any, nobody takes looks any more.
    fn take(&self) -> Vec<Waiting> {
        let mut asked = self.asked();
        asked.is_looking = !asked.waiting.is_empty();
        mem::take(&mut asked.waiting)
    }
}

/// A look after which nobody would take the next one, were it to panic.
struct Looking(Option<Arc<Shared>>);

impl Drop for Looking {
    fn drop(&mut self) {
        if let Some(shared) = &self.0 {
            *shared.asked() = Asked::default();
        }
    }
}

/// Takes one look after the other as long as anybody asks. Whoever a look has no answer for is left
/// without one.
async fn look_while_asked(shared: Arc<Shared>) {
    let mut looking = Looking(Some(Arc::clone(&shared)));
    let mut reader = None;
    loop {
        let waiting = shared.take();
        if waiting.is_empty() {
            looking.0 = None;
            return;
        }
        let mut names: Vec<&str> = waiting.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let look = look(&shared.database, &mut reader, &names);
        match tokio::time::timeout(LOOK_MAX, look).await {
            Ok(Ok(standings)) => {
                answer(waiting, &standings);
                continue;
            }
            Ok(Err(error)) => {
                debug!(error = %error.chain(), "Could not look where queries stand");
            }
            Err(_) => debug!("The database does not say where queries stand"),
        }
        if let Some(reader) = reader.take() {
            reader.abandon();
        }
    }
}

fn answer(waiting: Vec<Waiting>, standings: &HashMap<QueryName, Arc<Standing>>) {
    for (name, answer) in waiting {
        if let Some(standing) = standings.get(&name) {
            // Whoever is gone needs no answer.
            drop(answer.send(Arc::clone(standing)));
        }
    }
}

async fn look(
    database: &Database,
    reader: &mut Option<StandingsReader>,
    names: &[&str],
) -> Result<HashMap<QueryName, Arc<Standing>>, DatabaseError> {
    let reader = match reader {
        Some(reader) => reader,
        None => reader.insert(database.standings_reader().await?),
    };
    let standings = reader.read(names).await?;
    Ok(standings
        .into_iter()
        .map(|standing| (standing.query.name.clone(), Arc::new(standing)))
        .collect())
}
