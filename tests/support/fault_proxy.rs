//! A proxy in front of Postgres that makes one call fail, as a network or a server that dies would.
//!
//! A call is what a client sends up to a `Query` or a `Sync`, after which it waits for
//! `ReadyForQuery` (PostgreSQL documentation, "Message Flow"). The end of a copy into the server is a
//! call of its own, after the statement that began it. A lone `Sync` does not count: it is
//! the pool asking whether a connection is alive, and if not it takes another.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::JoinHandle;

const SSL_REQUEST: [u8; 4] = 80_877_103_u32.to_be_bytes();
const NO_SSL: &[u8] = b"N";
const READY_FOR_QUERY: u8 = b'Z';
const COPY_IN_RESPONSE: u8 = b'G';
const COPY_DONE: u8 = b'c';
/// Messages that the server answers only after a `Sync` or `Flush`: `Parse`, `Bind`, `Describe`,
/// `Execute`, `Close`.
const BEGIN_A_CALL: &[u8] = b"PBDEC";

/// How a call fails. Either way the client sees its connection break, and no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The server never hears of it.
    NotApplied,
    /// The server has done it and has said so.
    AppliedButReportedFailed,
}

/// What was counted.
#[derive(Debug, Default)]
pub struct Met {
    /// Calls of all connections, those alone that count.
    pub calls: u32,
    /// The statement that failed, if one did.
    pub failed: Option<String>,
}

#[derive(Debug, Default)]
struct Plan {
    /// The number of the call that is to fail, from 1, and how.
    fault: Option<(u32, Fault)>,
    /// How the calls that count begin.
    beginning: &'static str,
    met: Met,
}

impl Plan {
    /// Counts a call; says whether it is to fail, and how.
    fn next_call(&mut self, statement: &str) -> Option<Fault> {
        if !statement.starts_with(self.beginning) {
            return None;
        }
        self.met.calls += 1;
        let (nth, fault) = self.fault?;
        let fails = self.met.calls == nth;
        if fails {
            self.met.failed = Some(statement.split_whitespace().collect::<Vec<_>>().join(" "));
        }
        fails.then_some(fault)
    }
}

/// A running proxy; it ends when dropped.
pub struct FaultProxy {
    pub url: String,
    plan: Arc<Mutex<Plan>>,
    accepting: JoinHandle<()>,
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl FaultProxy {
    /// Stands in front of the server of `url`, which must name the folder of its socket.
    pub fn start(url: &str) -> Self {
        let part = |name: &str| {
            let rest = url.split_once(name).expect(name).1;
            rest.split(['?', '&']).next().unwrap()
        };
        let server = format!("{}/.s.PGSQL.{}", part("host="), part("port="));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let listener = TcpListener::from_std(listener).unwrap();
        let plan = Arc::new(Mutex::new(Plan::default()));
        let shared_plan = Arc::clone(&plan);
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (server, plan) = (server.clone(), Arc::clone(&shared_plan));
                tokio::spawn(async move {
                    client.set_nodelay(true)?;
                    let server = UnixStream::connect(server).await?;
                    Link::new(client, server, plan).relay().await
                });
            }
        });
        let url = format!("postgres://{}@{address}/{}", part("user="), part("postgres:///"));
        Self { url, plan, accepting }
    }

    /// Counts from now on, over all connections. The call of this number, from 1, fails.
    pub fn count(&self, fault: Option<(u32, Fault)>) {
        self.count_those(fault, "");
    }

    /// The same for the calls that begin like this; the others pass.
    pub fn count_those(&self, fault: Option<(u32, Fault)>, beginning: &'static str) {
        *self.plan.lock().unwrap() = Plan { fault, beginning, met: Met::default() };
    }

    /// Whether the call that is to fail has come.
    pub fn has_failed(&self) -> bool {
        self.plan.lock().unwrap().met.failed.is_some()
    }

    /// Lets every call pass again, and answers what was counted.
    pub fn stop_counting(&self) -> Met {
        std::mem::take(&mut *self.plan.lock().unwrap()).met
    }
}

/// One connection of a client, and the one to the server that belongs to it.
struct Link {
    client: Peer<TcpStream>,
    server: Peer<UnixStream>,
    plan: Arc<Mutex<Plan>>,
    /// The call that the client is still sending.
    call: Vec<u8>,
    /// What it is, for the message of a failed test.
    statement: String,
    prepared: HashMap<String, String>,
    /// Calls that the server has still to answer.
    unanswered: u32,
}

/// The connection is to be cut.
struct Cut;

impl Link {
    fn new(client: TcpStream, server: UnixStream, plan: Arc<Mutex<Plan>>) -> Self {
        Self {
            client: Peer::new(client),
            server: Peer::new(server),
            plan,
            call: Vec::new(),
            statement: String::new(),
            prepared: HashMap::new(),
            // The server is ready for queries once it has let the client in.
            unanswered: 1,
        }
    }

    /// Both connections are cut when this comes back.
    async fn relay(mut self) -> io::Result<()> {
        self.start_up().await?;
        loop {
            tokio::select! {
                message = self.client.message() => {
                    let Some(message) = message? else { return Ok(()) };
                    if let Some(Cut) = self.pass_on(&message).await? {
                        return Ok(());
                    }
                }
                message = self.server.message() => {
                    let Some(message) = message? else { return Ok(()) };
                    self.answer(&message).await?;
                }
            }
        }
    }

    /// The first message of a client has no type. There is no encryption on the way to a test.
    async fn start_up(&mut self) -> io::Result<()> {
        loop {
            let message = self.client.untyped().await?;
            if message.get(4..8) != Some(&SSL_REQUEST) {
                return self.server.send(&message).await;
            }
            self.client.send(NO_SSL).await?;
        }
    }

    async fn pass_on(&mut self, message: &[u8]) -> io::Result<Option<Cut>> {
        self.note_statement(message);
        self.call.extend_from_slice(message);
        if BEGIN_A_CALL.contains(&message[0]) {
            return Ok(None);
        }
        if matches!(message[0], b'Q' | b'S' | COPY_DONE) {
            let ends_copy = message[0] == COPY_DONE;
            if ends_copy {
                self.statement = "the end of a copy".to_owned();
            }
            let statement = std::mem::take(&mut self.statement);
            let is_call = !statement.is_empty();
            let next_call = || self.plan.lock().unwrap().next_call(&statement);
            match is_call.then(next_call).flatten() {
                Some(Fault::NotApplied) => return Ok(Some(Cut)),
                Some(Fault::AppliedButReportedFailed) => {
                    return self.apply_in_silence(ends_copy).await;
                }
                // The statement that began a copy is answered at its end.
                None => self.unanswered += u32::from(!ends_copy),
            }
        }
        self.server.send(&std::mem::take(&mut self.call)).await?;
        Ok(None)
    }

    async fn apply_in_silence(&mut self, ends_copy: bool) -> io::Result<Option<Cut>> {
        while self.unanswered > u32::from(ends_copy) {
            let Some(message) = self.server.message().await? else { return Ok(Some(Cut)) };
            self.answer(&message).await?;
        }
        self.server.send(&std::mem::take(&mut self.call)).await?;
        let ends = |message: &Vec<u8>| matches!(message[0], READY_FOR_QUERY | COPY_IN_RESPONSE);
        while self.server.message().await?.is_some_and(|message| !ends(&message)) {}
        Ok(Some(Cut))
    }

    async fn answer(&mut self, message: &[u8]) -> io::Result<()> {
        self.unanswered -= u32::from(message[0] == READY_FOR_QUERY);
        self.client.send(message).await
    }

    fn note_statement(&mut self, message: &[u8]) {
        let body = message.get(5..).unwrap_or_default();
        let mut texts = body.split(|byte| *byte == 0);
        let mut text = || String::from_utf8_lossy(texts.next().unwrap_or_default()).into_owned();
        match message[0] {
            b'Q' => self.statement = text(),
            b'P' => {
                let (name, statement) = (text(), text());
                self.statement.clone_from(&statement);
                self.prepared.insert(name, statement);
            }
            b'B' => {
                let (_portal, name) = (text(), text());
                self.statement = self.prepared.get(&name).cloned().unwrap_or(name);
            }
            _ => {}
        }
    }
}

/// One end, message by message.
struct Peer<S> {
    stream: S,
    unread: Vec<u8>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Peer<S> {
    fn new(stream: S) -> Self {
        Self { stream, unread: Vec::new() }
    }

    async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// A type, the length of what follows the type, and the body; nothing when the other has gone.
    async fn message(&mut self) -> io::Result<Option<Vec<u8>>> {
        self.read(1).await
    }

    async fn untyped(&mut self) -> io::Result<Vec<u8>> {
        self.read(0).await?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// A message whose length stands at `at`. Nothing is lost when this is dropped half-way.
    async fn read(&mut self, at: usize) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(length) = self.unread.get(at..at + 4) {
                let length = u32::from_be_bytes(length.try_into().unwrap());
                let end = at + usize::try_from(length).unwrap();
                if self.unread.len() >= end {
                    return Ok(Some(self.unread.drain(..end).collect()));
                }
            }
            if self.stream.read_buf(&mut self.unread).await? == 0 {
                return Ok(None);
            }
        }
    }
}
