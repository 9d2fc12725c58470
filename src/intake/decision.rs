//! The body of a decision on an event in quarantine.

use super::small_object::{InvalidObject, Member, SmallObject};
use crate::domain::{EventTime, Note};

const ACTION: Member = Member { pointer: "/action", right_value: "`release` or `reject`" };
const NOTE: Member = Member { pointer: "/note", right_value: "a string of 1 to 1000 characters" };

/// What somebody decided on an event in quarantine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What is to become of it.
    pub action: Action,
    /// Why.
    pub note: Note,
}

/// What is to become of an event in quarantine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It goes into the log.
    Release {
        /// The time it counts at, when that is not the one it came with.
        event_time: Option<EventTime>,
    },
    /// It never counts.
    Reject,
}

/// Reads a decision.
///
/// # Errors
/// [`InvalidObject`] says all that is wrong with it.
pub fn decision(body: &[u8]) -> Result<Decision, InvalidObject> {
    let members = [ACTION, Member::EVENT_TIME, NOTE];
    let mut object = SmallObject::read(body, "a decision", &members)?;
    let words = [("release", true), ("reject", false)];
    let releases = object.required(ACTION).and_then(|json| object.word(ACTION, json, &words));
    let written = object.value(Member::EVENT_TIME);
    let event_time = written.and_then(|json| object.time(json));
    if written.is_some() && releases == Some(false) {
        let rest = format_args!("is for a release only; leave it out of a rejection");
        object.refuse(Member::EVENT_TIME, "conflicting_fields", rest);
    }
    let note = object.required(NOTE).and_then(|json| object.bounded(NOTE, json));
    let both = releases.zip(note);
    object.finish(both.map(|(releases, note)| {
        let action = if releases { Action::Release { event_time } } else { Action::Reject };
        Decision { action, note }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_is_an_action_and_its_reason() {
        let read = |body: &str| decision(body.as_bytes()).map(|decision| decision.action);
        let time = "2026-10-01T09:05:00Z";
        for (case, body, action) in [
            ("reject", r#"{"action":"reject","note":"a test"}"#.to_owned(), Action::Reject),
            (
                "as it came",
                r#"{"action":"release","event_time":null,"note":"x"}"#.to_owned(),
                Action::Release { event_time: None },
            ),
            (
                "corrected",
                format!(r#"{{"action":"release","event_time":"{time}","note":"x"}}"#),
                Action::Release { event_time: Some(time.parse().expect("a time")) },
            ),
        ] {
            assert_eq!(read(&body), Ok(action), "{case}");
        }
    }
}
