//! Limits of the HTTP side.

use crate::domain::{Currency, Span};

/// Limits of requests and connections, and what events mean by what they leave out.
#[derive(Debug, Clone, Copy)]
pub struct HttpSettings {
    /// The currency of events that name none.
    pub currency: Currency,
    /// The longest body, in bytes, before and after decompression. Default 10 MiB.
    pub body_bytes_max: usize,
    /// The most events of one body. Default 10,000.
    pub events_max: usize,
    /// The longest event, in bytes of its JSON text. Default 64 KiB.
    pub event_bytes_max: usize,
    /// The most events waiting to be stored. Kept by the intake, told by `/v1/limits`. Default 100,000.
    pub queue_events_max: u32,
    /// The most bytes of bodies waiting to be stored. Kept by the intake, told by `/v1/limits`. Default 64 MiB.
    pub queue_bytes_max: u32,
    /// How far ahead of the database's clock an event may be; nothing: any distance. Kept by the intake,
    /// told by `/v1/limits`. Default 15 minutes.
    pub max_future_skew: Option<Span>,
    /// How many events a key may post a second; nothing: as many as it likes. Kept by the keyring,
    /// told by `/v1/limits`. Off by default.
    pub key_events_per_second: Option<u32>,
    /// The most entries of one page of a list. Default 1,000.
    pub list_limit_max: u32,
    /// The most reports made at a time; more are refused. Default 4, which leaves most of the
    /// connections for reading to everything that is quick.
    pub reports_max: usize,
    /// The most streams of events at a time; more are refused. Default 256.
    pub streams_max: usize,
    /// The most connections at a time; others wait to be accepted. Default 4,096.
    pub connections_max: usize,
    /// How long the head of a request may take, an idle connection included. Default 10 seconds.
    pub header_timeout: Span,
    /// How long a body may take. Default 30 seconds.
    pub body_timeout: Span,
    /// How long a whole request may take. Default 30 seconds.
    pub request_timeout: Span,
    /// How long open requests may take to end when the service stops. Default 25 seconds.
    pub drain_timeout: Span,
}

impl HttpSettings {
    /// The default limits.
    pub fn new(currency: Currency) -> Self {
        let seconds = |seconds: i64| Span::from_micros(seconds * 1_000_000);
        Self {
            currency,
            body_bytes_max: 10 * 1024 * 1024,
            events_max: 10_000,
            event_bytes_max: 64 * 1024,
            queue_events_max: 100_000,
            queue_bytes_max: 64 * 1024 * 1024,
            max_future_skew: Some(seconds(15 * 60)),
            key_events_per_second: None,
            list_limit_max: 1_000,
            reports_max: 4,
            streams_max: 256,
            connections_max: 4_096,
            header_timeout: seconds(10),
            body_timeout: seconds(30),
            request_timeout: seconds(30),
            drain_timeout: seconds(25),
        }
    }
}
