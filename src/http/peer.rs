//! Who is at the other end of the connection.

use std::net::IpAddr;

use axum::http::request::Parts;

/// The address that a connection comes from; [`serve`](super::serve) notes it with each request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer(pub(super) IpAddr);

/// What proxies add: with one of these a request may come from anywhere.
const FORWARDED: [&str; 4] = ["forwarded", "x-forwarded-for", "x-real-ip", "via"];

impl Peer {
    /// Whether somebody on this machine asks, and not through a proxy.
    pub(super) fn is_this_machine(head: &Parts) -> bool {
        let peer = head.extensions.get::<Self>();
        let is_loopback = peer.is_some_and(|Self(address)| address.to_canonical().is_loopback());
        is_loopback && !FORWARDED.iter().any(|name| head.headers.contains_key(*name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;

    #[test]
    fn a_proxy_on_this_machine_is_not_somebody_on_this_machine() {
        for (address, header, is_here) in [
            (Some("127.0.0.1"), None, true),
            (Some("::1"), None, true),
            (Some("::ffff:127.0.0.1"), None, true),
            (Some("10.0.0.7"), None, false),
            (Some("127.0.0.1"), Some("x-forwarded-for"), false),
            (Some("127.0.0.1"), Some("forwarded"), false),
            (None, None, false),
        ] {
            let (mut head, ()) = Request::new(()).into_parts();
            if let Some(address) = address {
                head.extensions.insert(Peer(address.parse().expect("an address")));
            }
            if let Some(header) = header {
                head.headers.insert(header, "x".parse().expect("a value"));
            }
            assert_eq!(Peer::is_this_machine(&head), is_here, "{address:?} {header:?}");
        }
    }
}
