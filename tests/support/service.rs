//! The real binary as a process of its own.

use std::fs::OpenOptions;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use serde_json::Value;
use tempfile::NamedTempFile;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::{Answer, TestDatabase};

/// A running service; killed when dropped.
pub struct TestService {
    pub base: String,
    pub client: reqwest::Client,
    process: Child,
    environment: Vec<(String, String)>,
    log: NamedTempFile,
}

/// What the service logged is shown when its test fails, and only then.
impl Drop for TestService {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("The service logged:\n{}", read_log(&self.log));
        }
    }
}

impl TestService {
    /// Starts a service on `database`.
    pub async fn start(database: &TestDatabase) -> Self {
        Self::start_with(&[("DATABASE_URL", &database.url)]).await
    }

    /// Starts a service with these settings on a free port, and waits until it is ready.
    pub async fn start_with(environment: &[(&str, &str)]) -> Self {
        let service = Self::launch(environment).await.unwrap_or_else(|error| panic!("{error}"));
        service.wait_until_ready().await;
        service
    }

    /// The same, but comes back as soon as it listens, or has ended before that.
    pub async fn launch(environment: &[(&str, &str)]) -> Result<Self, String> {
        let environment: Vec<(String, String)> = environment
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let log = NamedTempFile::new().unwrap();
        let (process, base) = spawn(&environment, &log).await?;
        let client = reqwest::Client::builder().timeout(Duration::from_secs(60)).build().unwrap();
        Ok(Self { base, client, process, environment, log })
    }

    pub async fn wait_until_ready(&self) {
        for _ in 0..600 {
            if let Ok(answer) = self.client.get(format!("{}/readyz", self.base)).send().await
                && answer.status() == 200
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the service was not ready within 30 s");
    }

    pub fn process_id(&self) -> u32 {
        self.process.id().expect("the service is running")
    }

    /// Kills the service at once, as a power cut would, and starts it again.
    pub async fn kill_and_restart(&mut self) {
        self.kill().await;
        let (process, base) = spawn(&self.environment, &self.log).await.unwrap();
        (self.process, self.base) = (process, base);
        self.wait_until_ready().await;
    }

    pub async fn kill(&mut self) {
        self.process.kill().await.unwrap();
    }

    /// Waits until it ends by itself.
    pub async fn end(&mut self) -> ExitStatus {
        self.process.wait().await.unwrap()
    }

    pub fn is_running(&self) -> bool {
        self.process.id().is_some()
    }

    /// Stops it in the middle of whatever it does, as a machine that hangs would.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    pub fn wake(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let id = Pid::from_raw(i32::try_from(self.process_id()).unwrap()).unwrap();
        rustix::process::kill_process(id, signal).unwrap();
    }

    /// Asks it to end with SIGTERM and answers its exit code.
    pub async fn terminate(&mut self) -> Option<i32> {
        self.signal(Signal::TERM);
        let ended = tokio::time::timeout(Duration::from_secs(30), self.process.wait()).await;
        ended.expect("SIGTERM ends the service within 30 s").unwrap().code()
    }

    pub async fn get(&self, path: &str) -> Answer {
        Answer::of(self.client.get(self.url(path))).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        Answer::of(self.client.post(self.url(path)).json(&body)).await
    }

    pub async fn put(&self, path: &str, body: Value) -> Answer {
        Answer::of(self.client.put(self.url(path)).json(&body)).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        Answer::of(self.client.delete(self.url(path))).await
    }

    /// Asks with an API key, or with none where that is empty; a null is no body.
    pub async fn ask_as(&self, key: &str, method: &str, path: &str, body: Value) -> Answer {
        let method = method.to_uppercase().parse().unwrap();
        let mut request = self.client.request(method, self.url(path));
        if !key.is_empty() {
            request = request.bearer_auth(key);
        }
        Answer::of(if body.is_null() { request } else { request.json(&body) }).await
    }

    /// The same for reading.
    pub async fn get_as(&self, key: &str, path: &str) -> Answer {
        self.ask_as(key, "GET", path, Value::Null).await
    }

    /// Posts a body as it is.
    pub async fn post_text(
        &self,
        path: &str,
        content_type: &str,
        body: impl Into<reqwest::Body>,
    ) -> Answer {
        Answer::of(self.client.post(self.url(path)).header("content-type", content_type).body(body))
            .await
    }

    /// Posts compressed events.
    pub async fn post_compressed(
        &self,
        content_type: &str,
        content_encoding: &str,
        body: impl Into<reqwest::Body>,
    ) -> Answer {
        let request = self.client.post(self.url("/v1/events")).body(body);
        let request = request.header("content-type", content_type);
        Answer::of(request.header("content-encoding", content_encoding)).await
    }

    /// Posts events that must all be accepted.
    pub async fn post_events(&self, events: &[Value]) {
        let answer = self.post("/v1/events", events.into()).await;
        assert_eq!(
            (answer.status, &answer.body["accepted"]),
            (200, &events.len().into()),
            "{}",
            answer.body
        );
    }

    /// Runs a query until nothing is left and answers the progress entries.
    pub async fn run(&self, query: &str) -> Vec<Value> {
        let answer = self.post(&format!("/v1/queries/{query}/run"), serde_json::json!({})).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.body["progress"].as_array().unwrap().clone()
    }

    /// All rows of a query, page by page.
    pub async fn rows(&self, query: &str) -> Vec<Value> {
        let (mut rows, mut path) = (Vec::new(), format!("/v1/queries/{query}/windows?limit=1000"));
        loop {
            let answer = self.get(&path).await;
            assert_eq!(answer.status, 200, "{}", answer.body);
            rows.extend(answer.body["rows"].as_array().unwrap().iter().cloned());
            let Some(cursor) = answer.body["next_cursor"].as_str() else { return rows };
            path = format!("/v1/queries/{query}/windows?limit=1000&cursor={cursor}");
        }
    }

    /// Waits until a query has read everything and owes nothing.
    pub async fn wait_until_idle(&self, query: &str) {
        for _ in 0..1200 {
            if self.get(&format!("/v1/queries/{query}")).await.body["idle"] == true {
                return;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("{query} was not idle within 30 s");
    }

    /// What it has logged so far.
    pub fn log(&self) -> String {
        read_log(&self.log)
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }
}

/// Starts the binary and reads from its output where it listens.
async fn spawn(
    environment: &[(String, String)],
    log: &NamedTempFile,
) -> Result<(Child, String), String> {
    let mut process = Command::new(env!("CARGO_BIN_EXE_tillmark"))
        .arg("serve")
        .env("TILLMARK_LISTEN", "127.0.0.1:0")
        .env("TILLMARK_LOG", "warn")
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdout(Stdio::piped())
        .stderr(OpenOptions::new().append(true).open(log.path()).unwrap())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        if let Some(at) = line.find("http://") {
            let base = line[at..].split_whitespace().next().unwrap().to_owned();
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return Ok((process, base));
        }
    }
    let status = process.wait().await.unwrap();
    Err(format!("the service ended with {status} before it listened:\n{}", read_log(log)))
}

fn read_log(log: &NamedTempFile) -> String {
    std::fs::read_to_string(log.path()).unwrap_or_default()
}
