//! Answers, and events to post.

use std::io::{Read as _, Write as _};

use serde_json::{Value, json};

/// An answer of the service, its body as JSON where it is.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    pub body: Value,
}

impl Answer {
    pub async fn of(request: reqwest::RequestBuilder) -> Self {
        let answer = request.send().await.unwrap();
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        // A stream does not end by itself.
        let streams =
            answer.headers().get("content-type").is_some_and(|kind| kind == "text/event-stream");
        let text = if streams { String::new() } else { answer.text().await.unwrap() };
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Self { status, headers, body }
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// A placed order with an id of its own, at a time of 2026-10-01 such as `09:05:00`.
pub fn a_sale(id: &str, clock: &str, amount: &str) -> Value {
    json!({
        "event_id": format!("{id}-placed"), "order_id": id, "status": "placed", "amount": amount,
        "event_time": format!("2026-10-01T{clock}Z"),
    })
}

/// `bytes` as gzip.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// What gzip made `bytes` of.
pub fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(bytes).read_to_end(&mut text).unwrap();
    text
}

/// What zstd made `bytes` of.
pub fn unzstd(bytes: &[u8]) -> Vec<u8> {
    zstd::decode_all(bytes).unwrap()
}

/// `bytes` as zstd.
pub fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}
