//! Long answers in rows: read page by page while they are sent, so that a year costs no more memory than
//! a page.
//!
//! Each page is read in a snapshot of its own. The reading runs in a task of its own and holds no
//! connection while a client is slow; a client that takes nothing for as long as a request may last, or
//! that goes away, ends it. An answer that cannot be finished is cut off in the middle of its transfer,
//! which no client can take for its end.

use std::fmt::Display;
use std::io;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use futures_util::{StreamExt as _, stream};
use serde::Serialize;
use tokio::sync::mpsc;
use tracing::{error, warn};

use super::App;
use super::format::Format;
use super::json::json_line;
use super::problem::Problem;
use crate::database::DatabaseError;
use crate::table::Columns;

/// How long the end of an answer may wait for a client when there is no time.
const END_MAX: Duration = Duration::from_secs(1);
/// Rows of one page.
pub(super) const PAGE_ROWS: u32 = 1_000;

/// A list that is read page by page.
pub(super) trait Pages: Send + 'static {
    /// What it is a list of.
    type Row: Serialize + Send + Sync + 'static;

    /// The next page; nothing at the end, while an empty page is none.
    ///
    /// # Errors
    /// [`DatabaseError`] when it cannot be read.
    fn next(
        &mut self,
    ) -> impl Future<Output = Result<Option<Vec<Self::Row>>, DatabaseError>> + Send;
}

/// Writes rows in one form.
#[derive(Debug)]
pub(super) struct RowWriter<Row> {
    format: Format,
    columns: Columns<Row>,
}

impl<Row: Serialize> RowWriter<Row> {
    /// Writes CSV with these columns, or each row as JSON.
    pub(super) fn new(format: Format, columns: Columns<Row>) -> Self {
        Self { format, columns }
    }

    fn header(&self) -> Vec<u8> {
        if self.format == Format::Csv { self.columns.csv_header() } else { Vec::new() }
    }

    fn rows(&self, rows: &[Row]) -> io::Result<Vec<u8>> {
        if self.format == Format::Csv {
            return Ok(self.columns.csv_rows(rows));
        }
        let mut lines = Vec::new();
        for row in rows {
            lines.extend(json_line(row)?);
        }
        Ok(lines)
    }

    /// These rows, all of them at once.
    ///
    /// # Errors
    /// A problem when one cannot be written.
    pub(super) fn text(&self, rows: &[Row]) -> Result<Vec<u8>, Problem> {
        let mut text = self.header();
        text.extend(self.rows(rows).map_err(|error| cannot_be_written(&error))?);
        Ok(text)
    }

    /// The answer with these rows.
    pub(super) fn answer(&self, rows: &[Row]) -> Response {
        match self.text(rows) {
            Ok(text) => with_head(self.format, Body::from(text)),
            Err(problem) => problem.into_response(),
        }
    }
}

/// The problem that something of ours cannot be written.
pub(super) fn cannot_be_written(error: &impl Display) -> Problem {
    error!(%error, "An answer could not be written");
    Problem::of(super::problem_kind::ProblemKind::Internal)
}

fn with_head(format: Format, body: Body) -> Response {
    let head = [(header::CONTENT_TYPE, format.content_type()), (header::VARY, "accept")];
    (head, body).into_response()
}

/// The answer with all rows, sent as they are read.
///
/// # Errors
/// A problem when the first page cannot be read.
pub(super) async fn stream<P: Pages>(
    app: &App,
    mut pages: P,
    writer: RowWriter<P::Row>,
) -> Result<Response, Problem> {
    let first = pages.next().await?;
    let format = writer.format;
    let (outlet, body) = outlet(app);
    app.work.spawn(send_all(pages, first, writer, outlet));
    Ok(with_head(format, body))
}

/// A body that a task sends bit by bit, and where it puts the bits.
pub(super) fn outlet(app: &App) -> (Outlet, Body) {
    let (send, receive) = mpsc::channel(1);
    let outlet = Outlet { send, wait_max: app.settings.request_timeout.to_duration() };
    let chunks = stream::unfold(Some(receive), async |receive: Option<mpsc::Receiver<_>>| {
        let mut receive = receive?;
        match receive.recv().await {
            Some(Some(chunk)) => Some((Ok::<Bytes, io::Error>(chunk), Some(receive))),
            Some(None) => None,
            None => Some((Err(io::Error::other("the answer was cut off")), None)),
        }
    });
    // Compression polls once more after the end.
    (outlet, Body::from_stream(chunks.fuse()))
}

/// Where the chunks of an answer go. Only its end ends the answer; without one it was cut off.
pub(super) struct Outlet {
    send: mpsc::Sender<Option<Bytes>>,
    wait_max: Duration,
}

impl Outlet {
    /// Whether the client took it.
    pub(super) async fn put(&self, chunk: impl Into<Bytes>) -> bool {
        self.send(Some(chunk.into())).await
    }

    /// Says that this was all.
    pub(super) async fn end(self) {
        self.send(None).await;
    }

    /// The same without waiting for long: a client that does not take what came before is cut off.
    pub(super) async fn end_soon(self) {
        drop(tokio::time::timeout(END_MAX, self.send.send(None)).await);
    }

    /// Comes back when the client has gone away.
    pub(super) async fn closed(&self) {
        self.send.closed().await;
    }

    async fn send(&self, chunk: Option<Bytes>) -> bool {
        let sent = self.send.send(chunk);
        matches!(tokio::time::timeout(self.wait_max, sent).await, Ok(Ok(())))
    }
}

async fn send_all<P: Pages>(
    mut pages: P,
    first: Option<Vec<P::Row>>,
    writer: RowWriter<P::Row>,
    outlet: Outlet,
) {
    let mut chunk = writer.header();
    let mut page = first;
    while let Some(rows) = page {
        match writer.rows(&rows) {
            Ok(lines) => chunk.extend(lines),
            Err(error) => return error!(%error, "A row could not be written"),
        }
        let is_taken = chunk.is_empty() || outlet.put(std::mem::take(&mut chunk)).await;
        if !is_taken || outlet.send.is_closed() {
            return;
        }
        page = match pages.next().await {
            Ok(page) => page,
            Err(error) => return warn!(error = %error.chain(), "A long answer was cut off"),
        };
    }
    if chunk.is_empty() || outlet.put(chunk).await {
        outlet.end().await;
    }
}
