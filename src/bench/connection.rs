//! One connection: a request at a time, sent again until it is answered.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::events::{Events, Recipe, Request};
use super::pace::Pace;
use super::tally::{Outcomes, Tally};

/// The largest answer that is read.
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// More headers than the service sends.
const HEADERS_MAX: usize = 32;
const RETRY_AFTER_SECONDS_MAX: u64 = 5;
const RECONNECT_PAUSE: Duration = Duration::from_millis(50);

/// What the connections of a run share.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) address: SocketAddr,
    /// The header that shows the key, if there is one, with the end of its line.
    pub(super) authorization: String,
    pub(super) recipe: Recipe,
    pub(super) pace: Arc<Pace>,
    pub(super) batch: u32,
    /// Events that may still be sent.
    pub(super) events_left: AtomicU32,
    /// When a request that is not answered is given up, in microseconds of the run.
    pub(super) give_up_us: u64,
    pub(super) tally: Mutex<Tally>,
}

impl Run {
    /// What was counted. All connections are on one thread, so that nobody waits for it.
    pub(super) fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything that was counted, once nothing more is sent.
    pub(super) fn take_tally(&self) -> Tally {
        std::mem::replace(&mut self.tally(), Tally::of(0))
    }

    /// Takes the events of a request out of what may still be sent.
    fn take_events(&self) -> Option<u32> {
        let take = |left: u32| left.checked_sub(self.batch.min(left.max(1)));
        let left =
            self.events_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok()?;
        Some(left.min(self.batch))
    }
}

struct Answer {
    status: u16,
    retry_after: Duration,
    body: Vec<u8>,
}

/// Why a request got no answer: the connection broke.
#[derive(Debug)]
struct Broken;

/// Posts until the run is over.
pub(super) async fn post_until_over(run: Arc<Run>, number: u16) {
    let mut events = Events::of(&run.recipe, number);
    let mut connection = Connection { run: &run, number, stream: None };
    // The body is made before the request is due, so that making it is no part of the latency.
    while let Some(count) = run.take_events() {
        let request = events.request(count);
        let Some(intended_us) = run.pace.turn().await else { break };
        connection.post(&request, intended_us).await;
    }
}

struct Connection<'run> {
    run: &'run Run,
    number: u16,
    stream: Option<TcpStream>,
}

impl Connection<'_> {
    /// Sends a request, again and again with the same ids while the service asks to try later or
    /// the connection breaks.
    async fn post(&mut self, request: &Request, intended_us: u64) {
        loop {
            let left_us = self.run.give_up_us.saturating_sub(self.run.pace.elapsed_us());
            let left = Duration::from_micros(left_us);
            let pause = match tokio::time::timeout(left, self.exchange(request)).await {
                Err(_) => {
                    // What may still come belongs to the request that is given up.
                    self.stream = None;
                    self.run.tally().unanswered += 1;
                    return;
                }
                Ok(Err(Broken)) => {
                    self.stream = None;
                    self.run.tally().broken += 1;
                    RECONNECT_PAUSE
                }
                Ok(Ok(answer)) => match self.count(request, intended_us, &answer) {
                    Some(retry_after) => retry_after,
                    None => return,
                },
            };
            tokio::time::sleep(pause.min(left)).await;
        }
    }

    /// Counts an answer; says when to try again if it is not the last.
    fn count(&self, request: &Request, intended_us: u64, answer: &Answer) -> Option<Duration> {
        let answered_us = self.run.pace.elapsed_us();
        let mut tally = self.run.tally();
        tally.status(answer.status);
        if matches!(answer.status, 429 | 503) {
            return Some(answer.retry_after);
        }
        if let Ok(outcomes) = serde_json::from_slice::<Outcomes>(&answer.body) {
            tally.outcomes(outcomes);
        }
        if answer.status == 200 {
            let sent = (request.events, &request.fresh);
            tally.answered(self.number, sent, (intended_us, answered_us));
        }
        None
    }

    /// Sends a request and reads its answer. Written out, because a general client would take as much
    /// of the machine as the service that is measured.
    async fn exchange(&mut self, request: &Request) -> Result<Answer, Broken> {
        let mut message = format!(
            "POST /v1/events HTTP/1.1\r\nhost: {}\r\n{}content-type: {}\r\ncontent-length: {}\r\n\r\n",
            self.run.address,
            self.run.authorization,
            self.run.recipe.content_type(),
            request.body.len(),
        )
        .into_bytes();
        message.extend_from_slice(&request.body);
        let stream = match self.stream.take() {
            Some(stream) => stream,
            None => connect(self.run.address).await?,
        };
        let stream = self.stream.insert(stream);
        stream.write_all(&message).await.map_err(|_| Broken)?;
        let mut read = Vec::with_capacity(1024);
        loop {
            if stream.read_buf(&mut read).await.map_err(|_| Broken)? == 0 {
                return Err(Broken);
            }
            if let Some(answer) = answer_of(&read)? {
                return Ok(answer);
            }
        }
    }
}

async fn connect(address: SocketAddr) -> Result<TcpStream, Broken> {
    let stream = TcpStream::connect(address).await.map_err(|_| Broken)?;
    stream.set_nodelay(true).map_err(|_| Broken)?;
    Ok(stream)
}

/// The answer, once all of it has been read.
fn answer_of(read: &[u8]) -> Result<Option<Answer>, Broken> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(head_bytes) = head.parse(read).map_err(|_| Broken)? else {
        return if read.len() > ANSWER_BYTES_MAX { Err(Broken) } else { Ok(None) };
    };
    let number = |name: &str| -> Option<u64> {
        let header = head.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(header.value).ok()?.trim().parse().ok()
    };
    // The service always says how long an answer to a post is.
    let length = number("content-length").and_then(|length| usize::try_from(length).ok());
    let length = length.filter(|length| *length <= ANSWER_BYTES_MAX).ok_or(Broken)?;
    let Some(body) = read[head_bytes..].get(..length) else { return Ok(None) };
    let seconds = number("retry-after").unwrap_or(1).min(RETRY_AFTER_SECONDS_MAX);
    Ok(Some(Answer {
        status: head.code.unwrap_or(0),
        retry_after: Duration::from_secs(seconds),
        body: body.to_vec(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_wherever_it_is_cut() {
        let whole =
            b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nContent-Length: 3\r\n\r\nabc";
        for cut in 0..whole.len() {
            assert!(answer_of(&whole[..cut]).unwrap().is_none(), "cut at {cut}");
        }
        let answer = answer_of(whole).unwrap().unwrap();
        assert_eq!((answer.status, answer.body), (503, b"abc".to_vec()));
        assert_eq!(answer.retry_after, Duration::from_secs(2));
        assert!(answer_of(b"HTTP/1.1 200 OK\r\n\r\n").is_err(), "no length");
        assert!(answer_of(b"nonsense\r\n\r\n").is_err());
    }
}
