//! The body of a heartbeat.

use super::small_object::{InvalidObject, Member, SmallObject};
use crate::domain::Heartbeat;

const SOURCE: Member =
    Member { pointer: "/source", right_value: "a string of 1 to 200 characters" };

/// Reads a heartbeat.
///
/// # Errors
/// [`InvalidObject`] says all that is wrong with it.
pub fn heartbeat(body: &[u8]) -> Result<Heartbeat, InvalidObject> {
    let mut object = SmallObject::read(body, "a heartbeat", &[SOURCE, Member::EVENT_TIME])?;
    let source = object.required(SOURCE).and_then(|json| object.bounded(SOURCE, json));
    let event_time = object.required(Member::EVENT_TIME).and_then(|json| object.time(json));
    let both = source.zip(event_time);
    object.finish(both.map(|(source, event_time)| Heartbeat { source, event_time }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heartbeat_is_a_source_and_a_time() {
        let body = br#" {"event_time":"2026-10-01T14:40:00+02:00","source":"till-7"}"#;
        let heartbeat = heartbeat(body).expect("a heartbeat");
        assert_eq!(heartbeat.source.as_str(), "till-7");
        assert_eq!(heartbeat.event_time.to_string(), "2026-10-01T12:40:00Z");
    }

    #[test]
    fn what_is_wrong_with_a_heartbeat_is_said_all_at_once() {
        let body = r#"{"source":"","source":"x","event_time":1,"till":"7"}"#;
        let InvalidObject::Members(faults) = heartbeat(body.as_bytes()).expect_err("bad") else {
            panic!("the body can be read");
        };
        let found: Vec<(&str, &str)> =
            faults.iter().map(|fault| (fault.pointer.as_str(), fault.code)).collect();
        assert_eq!(
            found,
            [
                ("/source", "duplicate_key"),
                ("/till", "unknown_field"),
                ("/event_time", "wrong_type")
            ]
        );
    }
}
