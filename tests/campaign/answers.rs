//! What the service has answered: the oracle's side of the story.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// What a till posts at a time.
pub enum Post {
    Events {
        events: Vec<Value>,
        /// As one: all of them or none.
        atomic: bool,
        /// The id is taken by an event of another amount.
        contradicts: bool,
    },
    Heartbeat(Value),
    /// Of an event that is in quarantine: its id and amount, and what is to become of it.
    Release {
        event_id: String,
        amount: String,
        decision: Value,
    },
}

/// Everything that was answered.
#[derive(Default)]
pub struct Answers {
    /// Of each event in the log, where it stands and its amount.
    pub stored: BTreeMap<String, (i64, String)>,
    pub quarantined: BTreeSet<String>,
    /// Where heartbeats stand.
    pub heartbeats: BTreeSet<i64>,
    /// How often the service said that it could not, or not now.
    pub refused: u32,
    /// Answers that cannot be right.
    pub wrong: Vec<String>,
}

impl Answers {
    /// Takes an answer down; says whether the post is done with.
    pub fn take(&mut self, post: &Post, status: u16, body: &Value) -> bool {
        match (post, status) {
            (_, 503 | 504) => {
                self.refused += 1;
                return false;
            }
            (Post::Events { events, contradicts, .. }, 200 | 207) => {
                let results = body["results"].as_array();
                if results.is_none_or(|results| results.len() != events.len()) {
                    self.wrong.push(format!("{} events, answered {body}", events.len()));
                }
                for (event, result) in events.iter().zip(results.into_iter().flatten()) {
                    self.result(event, result, *contradicts);
                }
            }
            (Post::Events { contradicts: true, .. }, 409) => {}
            (Post::Heartbeat(_), 202) => {
                self.heartbeats.insert(seq(body));
            }
            (Post::Release { event_id, amount, .. }, 200) => {
                self.stands(event_id, seq(&body["resolution"]), amount);
            }
            // An answer before was lost.
            (Post::Release { .. }, 409) => {}
            _ => self.wrong.push(format!("{status} {body}")),
        }
        true
    }

    fn result(&mut self, event: &Value, result: &Value, contradicts: bool) {
        let [event_id, amount] = ["event_id", "amount"].map(|field| text(&event[field]));
        match text(&result["status"]) {
            "accepted" | "duplicate" => self.stands(event_id, seq(result), amount),
            "quarantined" => {
                self.quarantined.insert(event_id.to_owned());
            }
            "conflict" if contradicts => {}
            _ => self.wrong.push(format!("{event} was answered {result}")),
        }
    }

    fn stands(&mut self, event_id: &str, seq: i64, amount: &str) {
        let stands = (seq, amount.to_owned());
        let first = self.stored.entry(event_id.to_owned()).or_insert_with(|| stands.clone());
        if *first != stands {
            self.wrong.push(format!("{event_id} is said to stand as {stands:?} after {first:?}"));
        }
    }
}

fn seq(answer: &Value) -> i64 {
    answer["seq"].as_i64().unwrap_or(0)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
