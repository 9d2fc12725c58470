//! Answers in windows: plain or folded, in every form.

use std::borrow::Cow;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use utoipa::openapi::schema::{AnyOfBuilder, Array};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::App;
use super::coding::Coding;
use super::figures::RangeBody;
use super::folds::{FoldBody, FoldPages, calendar};
use super::format::Format;
use super::json::json_line;
use super::kept::Weighed;
use super::paging::{Page, PageLink};
use super::params::{Params, Range};
use super::problem::Problem;
use super::problem_kind::ProblemKind;
use super::row_stream::{PAGE_ROWS, RowWriter, cannot_be_written, stream};
use super::stores::Stores;
use super::validators::{Keeping, Source, is_known, not_modified, validated};
use super::window_table::{WindowPages, fold_columns, window_columns};
use super::windows::{RowBody, RowCursor, Selected};
use crate::database::{
    Revision, Standing, StoredQuery, WindowRow, WindowSelection, WindowSource as _,
};
use crate::domain::{Calendar, EventTime, OutputMode, QueryName};
use crate::finance::local_days::FoldedRow;

/// What was asked for of a query's windows.
struct Asked<'request> {
    name: &'request QueryName,
    moment: Option<EventTime>,
    format: Format,
    /// One page, in whichever form.
    is_page: bool,
    names_hours: bool,
    calendar: Option<Calendar>,
    selected: Selected,
    link: PageLink,
}

/// A page as it is sent, or a list that turned out to be no longer than a page.
#[derive(Debug, Clone)]
pub(super) struct RenderedPage {
    /// What it shows: as of the asking, or later.
    revision: Revision,
    keeping: Keeping,
    link: Option<HeaderValue>,
    body: Bytes,
}

impl Weighed for RenderedPage {
    fn bytes(&self) -> usize {
        const KEY_AND_HEADERS: usize = 1_000;
        self.body.len() + KEY_AND_HEADERS
    }
}

/// What became of making an answer.
enum Made {
    Page(RenderedPage),
    /// A list that is longer than a page, of this query.
    Long(Box<StoredQuery>, WindowSelection),
}

/// Answers with what was committed before the request came; a client that has it already is told so
/// without reading a row.
pub(super) async fn answer(
    app: &App,
    (name, stores): (&QueryName, &Stores),
    mut params: Params,
    headers: &HeaderMap,
    names_hours: bool,
) -> Result<Response, Problem> {
    let has_limit = params.has("limit");
    let moment = params.as_of();
    let standing = app.standings.of(name).await?;
    let query = &standing.query;
    let reach = stores.of_query(query)?;
    let selected = Selected::read(&mut params, query, reach.clone());
    let calendar = calendar(&mut params);
    let after = selected.page.after.as_ref();
    if after.is_some_and(|after| after.is_folded != calendar.is_some()) {
        params.foreign_cursor();
    }
    let format = Format::of(&mut params, headers)?;
    let is_page = format == Format::Json || has_limit;
    let link = params.finish()?;
    let address = link.address();
    let asked = Asked { name, moment, format, is_page, names_hours, calendar, selected, link };
    let revision = asked.shown(standing.revision);
    let mut source = Source { revision, address, format, reach };
    let (coding, keeping) = (Coding::of(headers), asked.keeping(query));
    let tag = source.tag(coding);
    if is_known(headers, &tag) {
        return Ok(not_modified(keeping, tag));
    }
    let page = if is_page {
        let make = async || match asked.make(app, query.query_id).await? {
            Made::Page(page) => Ok(page),
            Made::Long(..) => Err(Problem::of(ProblemKind::Internal)),
        };
        app.pages.get(&source, make).await?
    } else {
        match Box::pin(asked.make(app, query.query_id)).await? {
            Made::Page(page) => page,
            Made::Long(query, selection) => {
                return Box::pin(asked.stream(app, &query, selection)).await;
            }
        }
    };
    source.revision = page.revision;
    let head = [(header::CONTENT_TYPE, format.content_type())];
    let mut answer = (head, page.body).into_response();
    if let Some(link) = page.link {
        answer.headers_mut().insert(header::LINK, link);
    }
    Ok(validated(answer, page.keeping, Some(source.tag(coding))))
}

impl Asked<'_> {
    /// What of a revision the answer shows.
    const fn shown(&self, revision: Revision) -> Revision {
        if self.moment.is_some() {
            revision.of_history()
        } else if self.selected.selection.is_corrected {
            revision
        } else {
            revision.without_corrections()
        }
    }

    /// Rows are final once no window that starts in the range can be written any more. Corrections may
    /// be booked at any time.
    fn keeping(&self, query: &StoredQuery) -> Keeping {
        let selection = &self.selected.selection;
        let closes = query.spec.output_mode != OutputMode::Complete && !selection.is_corrected;
        let (window, watermark) = (query.spec.window, query.watermarks.current);
        match selection.to {
            _ if self.moment.is_some() => Keeping::Forever,
            Some(to) if closes && window.is_closed_before(to, watermark) => Keeping::Final,
            _ => Keeping::Ask,
        }
    }

    /// Reads the query and its rows in one snapshot, so that what the answer says to show is what it
    /// shows.
    async fn make(&self, app: &App, query_id: i64) -> Result<Made, Problem> {
        let mut snapshot = app.database.window_snapshot(self.name, self.moment).await?;
        let Standing { query, revision } = snapshot.standing().clone();
        if query.query_id != query_id {
            // Another of the same name has taken its place since.
            return Err(Problem::no_such_query(self.name.as_str()));
        }
        let Selected { page, selection } = &self.selected;
        let mut selection = selection.clone();
        selection.as_of = snapshot.as_of();
        let limit = if self.is_page { page.read_limit() } else { PAGE_ROWS.saturating_add(1) };
        let (mut rows, range) = match &self.calendar {
            Some(calendar) => {
                let (mut folds, range) =
                    FoldPages::new(snapshot, &query, calendar, selection.clone()).await?;
                let range = Range { from: range.from, to: range.to };
                (Rows::Folds(folds.read(limit).await?), range)
            }
            None => {
                let range = Range { from: selection.from, to: selection.to };
                (Rows::Windows(snapshot.rows(&query, &selection, limit).await?), range)
            }
        };
        let next_cursor = if self.is_page {
            rows.cut(page)
        } else if rows.len() >= limit as usize {
            return Ok(Made::Long(Box::new(query), selection));
        } else {
            None
        };
        let link = next_cursor.as_deref().map(|cursor| self.link.to_next(cursor));
        // Escaped as it is in an address.
        let link = link.and_then(|link| HeaderValue::try_from(link).ok());
        let (revision, keeping) = (self.shown(revision), self.keeping(&query));
        let body = self.write(&query, &rows, range, next_cursor)?.into();
        Ok(Made::Page(RenderedPage { revision, keeping, link, body }))
    }

    fn write(
        &self,
        query: &StoredQuery,
        rows: &Rows,
        range: Range,
        next_cursor: Option<String>,
    ) -> Result<Vec<u8>, Problem> {
        let rows = rows.bodies(query, self.names_hours);
        if self.format != Format::Json {
            return match rows {
                RowsBody::Windows(rows) => self.window_writer(query).text(&rows),
                RowsBody::Folds(rows) => self.fold_writer(query).text(&rows),
            };
        }
        let body = WindowsAnswer {
            query: query.name.to_string(),
            watermark: query.watermarks.current.to_string(),
            complete_through: query.complete_through().map(|time| time.to_string()),
            range: RangeBody::of(range.from, range.to),
            rows,
            next_cursor,
        };
        json_line(&body).map_err(|error| cannot_be_written(&error))
    }

    /// The whole of a long list, page by page. Each is read as it stands then, so nothing is said of
    /// what all of it shows.
    async fn stream(
        &self,
        app: &App,
        query: &StoredQuery,
        selection: WindowSelection,
    ) -> Result<Response, Problem> {
        let answer = match &self.calendar {
            Some(calendar) => {
                let database = app.database.clone();
                let (folds, _) = FoldPages::new(database, query, calendar, selection).await?;
                stream(app, folds, self.fold_writer(query)).await?
            }
            None => {
                let pages = WindowPages::new(app, query, &selection, self.names_hours);
                stream(app, pages, self.window_writer(query)).await?
            }
        };
        Ok(validated(answer, self.keeping(query), None))
    }

    fn window_writer(&self, query: &StoredQuery) -> RowWriter<RowBody> {
        let is_corrected = self.selected.selection.is_corrected;
        let columns = window_columns(&query.spec.group_by, is_corrected, self.names_hours);
        RowWriter::new(self.format, columns)
    }

    fn fold_writer(&self, query: &StoredQuery) -> RowWriter<FoldBody> {
        let is_corrected = self.selected.selection.is_corrected;
        RowWriter::new(self.format, fold_columns(&query.spec.group_by, is_corrected))
    }
}

/// Windows, or what they come to.
enum Rows {
    Windows(Vec<WindowRow>),
    Folds(Vec<FoldedRow>),
}

impl Rows {
    const fn len(&self) -> usize {
        match self {
            Self::Windows(rows) => rows.len(),
            Self::Folds(folds) => folds.len(),
        }
    }

    /// Cuts them to a page; the cursor of the last one when there are more.
    fn cut(&mut self, page: &Page<RowCursor>) -> Option<String> {
        match self {
            Self::Windows(rows) => page.cut(rows, |row| RowCursor::of(&row.key, false)),
            Self::Folds(folds) => page.cut(folds, |fold| RowCursor::of(&fold.key(), true)),
        }
    }

    fn bodies(&self, query: &StoredQuery, names_hours: bool) -> RowsBody {
        match self {
            Self::Windows(rows) => RowsBody::Windows(
                rows.iter().map(|row| RowBody::of(row, query, names_hours)).collect(),
            ),
            Self::Folds(folds) => {
                RowsBody::Folds(folds.iter().map(|fold| FoldBody::of(fold, query)).collect())
            }
        }
    }
}

/// A page of output rows.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct WindowsAnswer {
    /// Whose rows.
    #[schema(example = "hourly_sales")]
    query: String,
    /// The watermark of the query's last batch.
    #[schema(format = DateTime, example = "2026-10-01T11:40:00.000Z")]
    watermark: String,
    /// Every window that ends by this moment is final; null before the first is.
    #[schema(format = DateTime, example = "2026-10-01T11:00:00Z")]
    complete_through: Option<String>,
    /// The range that was asked for, in UTC.
    range: RangeBody,
    /// The rows, ordered by start, then group and currency.
    rows: RowsBody,
    /// What to ask the next page with; null at the end.
    next_cursor: Option<String>,
}

/// Windows, or with `granularity` what they come to.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum RowsBody {
    /// One row a window.
    Windows(Vec<RowBody>),
    /// One row a local period.
    Folds(Vec<FoldBody>),
}

/// Not derived: that would say that an array is of one kind and not of the other, and a fold has every
/// member of a window, an empty array those of both.
impl PartialSchema for RowsBody {
    fn schema() -> RefOr<Schema> {
        let rows = |name: Cow<'_, str>| Array::new(Ref::from_schema_name(name));
        let either = AnyOfBuilder::new()
            .description(Some("Windows, or with `granularity` what they come to."))
            .item(rows(RowBody::name()))
            .item(rows(FoldBody::name()));
        Schema::AnyOf(either.build()).into()
    }
}

impl ToSchema for RowsBody {
    fn name() -> Cow<'static, str> {
        "WindowRows".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        for (name, schema) in
            [(RowBody::name(), RowBody::schema()), (FoldBody::name(), FoldBody::schema())]
        {
            schemas.push((name.into_owned(), schema));
        }
        RowBody::schemas(schemas);
        FoldBody::schemas(schemas);
    }
}
