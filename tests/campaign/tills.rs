//! Tills that post, and post again until they are answered.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use chrono::DateTime;
use fastrand::Rng;
use reqwest::Client;
use serde_json::{Value, json};
use tokio::sync::{OwnedRwLockWriteGuard, RwLock};
use tokio::task::JoinSet;

use crate::answers::{Answers, Post};

/// 1 January 2026.
const FIRST_EVENT_S: i64 = 1_767_225_600;
/// From one event to the next, whichever till it is of.
const STEP_S: i64 = 10;
/// From so many events on, ingest copies them.
pub const BULK_EVENTS: usize = 410;
/// A frozen service does not answer.
const ATTEMPT_MAX: Duration = Duration::from_secs(10);
const RETRY_PAUSE: Duration = Duration::from_millis(10);

/// What a till posts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One event at a time, now and then again, or with another amount.
    Single,
    /// Many at a time.
    Bulk,
    /// Heartbeats, events as one, events from the future, and their release.
    Odd,
}

/// Tills that work until this is dropped.
pub struct Tills {
    ground: Arc<Ground>,
    _tills: JoinSet<()>,
}

/// What the tills share.
#[derive(Default)]
struct Ground {
    /// Where services listen.
    addresses: Mutex<Vec<String>>,
    /// Held by each attempt; nothing is posted while somebody else has it alone.
    gate: Arc<RwLock<()>>,
    answers: Mutex<Answers>,
    clock_s: AtomicI64,
}

impl Tills {
    pub fn open(kinds: &[Kind], rng: &mut Rng) -> Self {
        let ground = Arc::new(Ground::default());
        let mut tills = JoinSet::new();
        for (number, kind) in kinds.iter().enumerate() {
            let (ground, rng) = (Arc::clone(&ground), rng.fork());
            let http = Client::builder().timeout(ATTEMPT_MAX).build().unwrap();
            let name = format!("till-{number}");
            let till = Till { ground, http, rng, name, kind: *kind, events: Vec::new(), posts: 0 };
            tills.spawn(till.work());
        }
        Self { ground, _tills: tills }
    }

    /// From now on they post to the services at these addresses.
    pub fn post_to(&self, addresses: &[&str]) {
        let addresses = addresses.iter().map(|address| (*address).to_owned()).collect();
        *self.ground.addresses.lock().unwrap() = addresses;
    }

    /// Lets the attempts under way end; nothing is posted until what this answers is dropped.
    pub async fn pause(&self) -> OwnedRwLockWriteGuard<()> {
        Arc::clone(&self.ground.gate).write_owned().await
    }

    pub fn answers(&self) -> MutexGuard<'_, Answers> {
        self.ground.answers.lock().unwrap()
    }
}

struct Till {
    ground: Arc<Ground>,
    http: Client,
    rng: Rng,
    name: String,
    kind: Kind,
    /// Those posted so far, without those from the future.
    events: Vec<Value>,
    posts: u64,
}

impl Till {
    async fn work(mut self) {
        loop {
            let post = self.next_post();
            while !self.attempt(&post).await {
                tokio::time::sleep(RETRY_PAUSE).await;
            }
            let pause_ms = match self.kind {
                Kind::Single => 5,
                Kind::Odd => 20,
                Kind::Bulk => 150,
            };
            tokio::time::sleep(Duration::from_millis(pause_ms)).await;
        }
    }

    fn next_post(&mut self) -> Post {
        self.posts += 1;
        let events = |events| Post::Events { events, atomic: false, contradicts: false };
        match (self.kind, self.posts % 4) {
            (Kind::Bulk, _) => events((0..BULK_EVENTS).map(|_| self.event()).collect()),
            (Kind::Single, _) => match self.rng.u32(..20) {
                0..2 if !self.events.is_empty() => {
                    events(vec![self.rng.choice(&self.events).unwrap().clone()])
                }
                2 if !self.events.is_empty() => {
                    let mut event = self.rng.choice(&self.events).unwrap().clone();
                    event["amount"] = "777777.77".into();
                    Post::Events { events: vec![event], atomic: false, contradicts: true }
                }
                _ => events(vec![self.event()]),
            },
            (Kind::Odd, 0) => Post::Heartbeat(json!({
                "source": self.name,
                "event_time": event_time(self.ground.clock_s.load(Ordering::Relaxed)),
            })),
            (Kind::Odd, 1) => {
                let events = (0..3).map(|_| self.event()).collect();
                Post::Events { events, atomic: true, contradicts: false }
            }
            (Kind::Odd, 2) => {
                let mut event = self.event();
                event["event_time"] = "2199-01-01T00:00:00Z".into();
                events(vec![event])
            }
            (Kind::Odd, _) => {
                let event = self.events.last().unwrap();
                let [event_id, amount] =
                    ["event_id", "amount"].map(|field| event[field].as_str().unwrap().to_owned());
                let now = self.ground.clock_s.load(Ordering::Relaxed);
                let decision = json!({
                    "action": "release", "event_time": event_time(now), "note": "campaign",
                });
                Post::Release { event_id, amount, decision }
            }
        }
    }

    /// An event that was not posted before. One of ten is of the order before, one of twenty is late.
    fn event(&mut self) -> Value {
        let (number, rng) = (self.events.len(), &mut self.rng);
        let now = self.ground.clock_s.fetch_add(STEP_S, Ordering::Relaxed);
        let back = match rng.u32(..20) {
            0 => 4 * 3600,
            1..6 => rng.i64(0..1500),
            _ => 0,
        };
        let order = number.saturating_sub(usize::from(rng.u32(..10) == 0));
        let status = ["refund", "paid", "paid", "placed"][rng.usize(..20).min(3)];
        let event = json!({
            "event_id": format!("{}-{number}", self.name),
            "order_id": format!("{}-{order}", self.name),
            "status": status,
            "amount": format!("{}.{:02}", rng.u32(1..200), rng.u32(..100)),
            "event_time": event_time(now - back),
            "store_id": format!("S{}", rng.u32(..20)),
            "till_id": self.name,
        });
        self.events.push(event.clone());
        event
    }

    /// Says whether the post is done with.
    async fn attempt(&mut self, post: &Post) -> bool {
        let gate = Arc::clone(&self.ground.gate);
        let _open = gate.read().await;
        let address = self.rng.choice(self.ground.addresses.lock().unwrap().iter()).cloned();
        let Some(address) = address else { return false };
        let (path, body) = match post {
            Post::Events { events, atomic, .. } => {
                (format!("/v1/events?results=all&atomic={atomic}"), json!(events))
            }
            Post::Heartbeat(heartbeat) => ("/v1/heartbeats".to_owned(), heartbeat.clone()),
            Post::Release { event_id, decision, .. } => {
                (format!("/v1/quarantine/{event_id}"), decision.clone())
            }
        };
        let answer = self.http.post(format!("{address}{path}")).json(&body).send().await;
        let Ok(answer) = answer else { return false };
        let status = answer.status().as_u16();
        // An answer that breaks off is none.
        let Ok(body) = answer.json::<Value>().await else { return false };
        self.ground.answers.lock().unwrap().take(post, status, &body)
    }
}

fn event_time(since_first_s: i64) -> String {
    let time = DateTime::from_timestamp(FIRST_EVENT_S + since_first_s, 0).unwrap();
    time.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}
