//! Web pages that may ask from a browser.

use std::fmt;
use std::str::FromStr;

/// The origin of a web page (RFC 6454): scheme, host and, unless it is the scheme's own, port, as a browser
/// writes it in the header `Origin`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(String);

/// A text that is no origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "is no origin such as `https://dashboard.example.com` or `http://localhost:3000`: scheme, host in small \
     letters and port, and nothing behind"
)]
pub struct InvalidOrigin;

impl Origin {
    /// The origin as it stands in headers.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Origin {
    type Err = InvalidOrigin;

    fn from_str(text: &str) -> Result<Self, InvalidOrigin> {
        let host = ["https://", "http://"].iter().find_map(|scheme| text.strip_prefix(scheme));
        let is_plain = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-:[]".contains(&byte)
        };
        match host {
            Some(host) if !host.is_empty() && host.bytes().all(is_plain) => {
                Ok(Self(text.to_owned()))
            }
            _ => Err(InvalidOrigin),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_what_a_browser_writes_and_nothing_else() {
        for (text, is_one) in [
            ("https://dashboard.example.com", true),
            ("http://localhost:3000", true),
            ("http://[::1]:3000", true),
            ("https://dashboard.example.com/", false),
            ("https://Dashboard.example.com", false),
            ("https://user@example.com", false),
            ("https://", false),
            ("dashboard.example.com", false),
            ("null", false),
            ("*", false),
            ("", false),
        ] {
            assert_eq!(text.parse::<Origin>().is_ok(), is_one, "{text}");
        }
    }
}
