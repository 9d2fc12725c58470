//! One connection: a request at a time, sent again until it is answered.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::events::{Events, Recipe, Request};
use super::pace::Pace;
use super::tally::{Outcomes, Tally};

/// The largest answer that is read.
const ANSWER_BYTES_MAX: usize = 16 << 20;
const RETRY_AFTER_SECONDS_MAX: u64 = 5;
const RECONNECT_PAUSE: Duration = Duration::from_millis(50);

/// What the connections of a run share.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) address: SocketAddr,
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
    body: Bytes,
}

/// Why a request got no answer: the connection broke.
#[derive(Debug)]
struct Broken;

/// Posts until the run is over.
pub(super) async fn post_until_over(run: Arc<Run>, number: u16) {
    let mut events = Events::of(&run.recipe, number);
    let mut connection = Connection { run: &run, number, sender: None };
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
    sender: Option<SendRequest<Full<Bytes>>>,
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
                    self.sender = None;
                    self.run.tally().unanswered += 1;
                    return;
                }
                Ok(Err(Broken)) => {
                    self.sender = None;
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

    async fn exchange(&mut self, request: &Request) -> Result<Answer, Broken> {
        let body = Full::new(request.body.clone());
        let post = hyper::Request::post("/v1/events")
            .header(header::HOST, self.run.address.to_string())
            .header(header::CONTENT_TYPE, self.run.recipe.content_type())
            .body(body)
            .map_err(|_| Broken)?;
        let sender = self.sender().await?;
        sender.ready().await.map_err(|_| Broken)?;
        let answer = sender.send_request(post).await.map_err(|_| Broken)?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await.map_err(|_| Broken)?;
        let retry_after = head.headers.get(header::RETRY_AFTER);
        let seconds = retry_after.and_then(|value| value.to_str().ok()?.parse().ok()).unwrap_or(1);
        Ok(Answer {
            status: head.status.as_u16(),
            retry_after: Duration::from_secs(seconds.min(RETRY_AFTER_SECONDS_MAX)),
            body: body.to_bytes(),
        })
    }

    /// The connection, made anew if there is none.
    async fn sender(&mut self) -> Result<&mut SendRequest<Full<Bytes>>, Broken> {
        let sender = match self.sender.take() {
            Some(sender) => sender,
            None => connect(self.run.address).await?,
        };
        Ok(self.sender.insert(sender))
    }
}

async fn connect(address: SocketAddr) -> Result<SendRequest<Full<Bytes>>, Broken> {
    let stream = TcpStream::connect(address).await.map_err(|_| Broken)?;
    stream.set_nodelay(true).map_err(|_| Broken)?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|_| Broken)?;
    // It ends with the sender; why it broke is seen there.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}
