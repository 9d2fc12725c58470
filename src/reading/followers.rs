//! Telling those who follow a query that it has moved on: one look now and then per query that anybody
//! follows, on every replica alike, so that it does not matter which one runs the queries.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tracing::debug;

use super::Standings;
use crate::database::{DatabaseError, Standing};
use crate::domain::QueryName;

/// How often to look at a query that somebody follows.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Where queries stand, for those who follow them. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Followers(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    standings: Standings,
    followed: Mutex<HashMap<QueryName, watch::Sender<Arc<Standing>>>>,
}

impl Followers {
    /// Of the queries of these standings.
    pub fn new(standings: Standings) -> Self {
        Self(Arc::new(Shared { standings, followed: Mutex::default() }))
    }

    /// Where a query stands, from `now` on. It ends when the query is deleted.
    pub fn follow(&self, now: Arc<Standing>) -> watch::Receiver<Arc<Standing>> {
        let mut followed = self.0.followed();
        if let Some(sender) = followed.get(&now.query.name) {
            return sender.subscribe();
        }
        let name = now.query.name.clone();
        let (sender, receiver) = watch::channel(now);
        followed.insert(name.clone(), sender);
        tokio::spawn(look_while_followed(Arc::clone(&self.0), name));
        receiver
    }
}

impl Shared {
    fn followed(&self) -> MutexGuard<'_, HashMap<QueryName, watch::Sender<Arc<Standing>>>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the followers of a query. Whether there are any.
    fn tell(&self, name: &QueryName, standing: Arc<Standing>) -> bool {
        let mut followed = self.followed();
        let Some(sender) = followed.get(name) else { return false };
        if sender.receiver_count() == 0 {
            followed.remove(name);
            return false;
        }
        sender.send_if_modified(|known| {
            let has_moved = known.revision != standing.revision;
            *known = standing;
            has_moved
        });
        true
    }
}

async fn look_while_followed(shared: Arc<Shared>, name: QueryName) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        match shared.standings.of(&name).await {
            Ok(standing) => {
                if !shared.tell(&name, standing) {
                    return;
                }
            }
            Err(DatabaseError::NoSuchQuery(_)) => {
                shared.followed().remove(&name);
                return;
            }
            Err(error) => {
                debug!(error = %error.chain(), "Could not look where a query stands");
            }
        }
    }
}
