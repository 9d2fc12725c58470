//! The trace that a request belongs to (W3C Trace Context): taken up from `traceparent`, and passed on in
//! the answer with the id of this service's own span in it.
//!
//! Absent on purpose: traces that begin here. A request that is part of none stays so.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use uuid::Uuid;

/// The header.
pub(super) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The flag that says that the caller records the trace; the only one that is passed on.
const SAMPLED: u8 = 0x01;
/// What a header of version 00 has, and one of a later version at least.
const CHARS: usize = 55;

/// The place of a request in its trace.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Trace<'header> {
    /// The trace.
    pub(super) id: &'header str,
    /// The span of whoever sent the request.
    pub(super) parent_id: &'header str,
    /// The span of the request here.
    pub(super) span_id: u64,
    is_sampled: bool,
}

impl<'header> Trace<'header> {
    /// The trace that `headers` name, if it can be read. Of a later version the parts of version 00 count.
    pub(super) fn of(headers: &'header HeaderMap) -> Option<Self> {
        let mut given = headers.get_all(TRACEPARENT).iter();
        let text = given.next()?.to_str().ok().filter(|_| given.next().is_none())?;
        let (known, more) = text.split_at_checked(CHARS)?;
        let mut parts = known.split('-');
        let (version, id) = (hex(parts.next()?, 2)?, hex(parts.next()?, 32)?);
        let (parent_id, flags) = (hex(parts.next()?, 16)?, hex(parts.next()?, 2)?);
        let goes_on = more.is_empty() || (version != "00" && more.starts_with('-'));
        let is_whole = version != "ff" && goes_on && parts.next().is_none();
        let is_named = [id, parent_id].iter().all(|id| id.bytes().any(|byte| byte != b'0'));
        let flags = u8::from_str_radix(flags, 16).ok()?;
        // Half of a random UUID: never zero, for it holds the variant.
        let span_id = Uuid::new_v4().as_u64_pair().1;
        let trace = Self { id, parent_id, span_id, is_sampled: flags & SAMPLED != 0 };
        (is_whole && is_named).then_some(trace)
    }

    /// What whoever comes after this service is told.
    pub(super) fn passed_on(&self) -> Option<HeaderValue> {
        let Self { id, span_id, is_sampled, .. } = self;
        let text = format!("00-{id}-{span_id:016x}-{:02x}", u8::from(*is_sampled));
        HeaderValue::from_str(&text).ok()
    }
}

/// `text`, when it has so many digits of lower-case hexadecimal.
fn hex(text: &str, length: usize) -> Option<&str> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (text.len() == length && text.bytes().all(is_digit)).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    #[test]
    fn a_trace_is_taken_up_only_when_its_header_is_whole_and_its_sampled_flag_is_kept() {
        for (case, header, sampled) in [
            ("sampled", format!("00-{ID}-00f067aa0ba902b7-01"), Some("01")),
            ("not sampled", format!("00-{ID}-00f067aa0ba902b7-00"), Some("00")),
            (
                "other flags are not ours to keep",
                format!("00-{ID}-00f067aa0ba902b7-fe"),
                Some("00"),
            ),
            ("sampled among others", format!("00-{ID}-00f067aa0ba902b7-03"), Some("01")),
            ("a later version", format!("01-{ID}-00f067aa0ba902b7-01-more"), Some("01")),
            ("a later version without more", format!("cc-{ID}-00f067aa0ba902b7-00"), Some("00")),
            ("a later version that runs on", format!("01-{ID}-00f067aa0ba902b7-01more"), None),
            ("more than version 00 has", format!("00-{ID}-00f067aa0ba902b7-01-more"), None),
            ("the version that is none", format!("ff-{ID}-00f067aa0ba902b7-01"), None),
            ("no parent", format!("00-{ID}-0000000000000000-01"), None),
            ("no trace", format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)), None),
            ("capitals", format!("00-{}-00f067aa0ba902b7-01", ID.to_uppercase()), None),
            ("cut short", format!("00-{ID}"), None),
            ("dashes elsewhere", format!("00-{ID}-00f067aa0ba902-b7-1"), None),
            ("nonsense", "nonsense".to_owned(), None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(TRACEPARENT, header.parse().expect("a header"));
            let trace = Trace::of(&headers);
            let passed_on = trace.as_ref().and_then(Trace::passed_on);
            let expected = trace.map(|trace| {
                assert_eq!((trace.id, trace.parent_id), (ID, "00f067aa0ba902b7"), "{case}");
                format!("00-{ID}-{:016x}-{}", trace.span_id, sampled.unwrap_or_default())
            });
            assert_eq!(expected.is_some(), sampled.is_some(), "{case}");
            assert_eq!(passed_on, expected.map(|text| text.parse().expect("a header")), "{case}");
        }
    }

    #[test]
    fn of_two_parents_neither_is_believed() {
        let mut headers = HeaderMap::new();
        for parent in ["00f067aa0ba902b7", "00f067aa0ba902b8"] {
            headers.append(TRACEPARENT, format!("00-{ID}-{parent}-01").parse().expect("a header"));
        }
        assert_eq!(Trace::of(&headers), None);
    }
}
