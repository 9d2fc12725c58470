//! Answers in windows: plain or folded, in every form.

use std::borrow::Cow;

use axum::http::HeaderMap;
use axum::response::Response;
use serde::Serialize;
use utoipa::openapi::schema::{AnyOfBuilder, Array};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::App;
use super::folds::{FoldBody, FoldPages, calendar};
use super::format::{Format, vary_by_accept};
use super::paging::PageLink;
use super::params::{Params, Range};
use super::problem::Problem;
use super::row_stream::{RowWriter, stream};
use super::stores::Stores;
use super::window_table::{WindowPages, fold_columns, window_columns};
use super::windows::{RowBody, RowCursor, Selected};
use crate::database::StoredQuery;
use crate::domain::{Calendar, QueryName};

/// What was asked for of a query's windows.
struct Asked<'request> {
    app: &'request App,
    query: &'request StoredQuery,
    format: Format,
    /// One page, in whichever form.
    is_page: bool,
    names_hours: bool,
    selected: Selected,
    link: PageLink,
}

/// Reads rows after the query's state: a window that `complete_through` promises to be final is so
/// in rows read later, while the other way round it might not be.
pub(super) async fn answer(
    app: &App,
    (name, stores): (&QueryName, &Stores),
    mut params: Params,
    headers: &HeaderMap,
    names_hours: bool,
) -> Result<Response, Problem> {
    let has_limit = params.has("limit");
    let moment = params.as_of();
    let mut query = app.database.query(name).await?;
    let mut selected = Selected::read(&mut params, &query, stores.of_query(&query)?);
    let calendar = calendar(&mut params);
    let format = Format::of(&mut params, headers)?;
    let is_page = format == Format::Json || has_limit;
    let link = params.finish()?;
    if let Some(moment) = moment {
        let (then, as_of) = app.database.query_as_of(name, moment).await?;
        (query, selected.selection.as_of) = (then, Some(as_of));
    }
    let query = &query;
    let asked = Asked { app, query, format, is_page, names_hours, selected, link };
    match calendar {
        Some(calendar) => asked.folds(&calendar).await,
        None => asked.windows().await,
    }
}

impl Asked<'_> {
    async fn windows(self) -> Result<Response, Problem> {
        let Selected { page, selection } = &self.selected;
        if !self.is_page {
            let pages = WindowPages::new(self.app, self.query, selection, self.names_hours);
            return stream(self.app, pages, self.window_writer()).await;
        }
        let database = &self.app.database;
        let mut rows = database.windows(self.query, selection, page.read_limit()).await?;
        let next_cursor = page.cut(&mut rows, |row| RowCursor::of(&row.key));
        let rows: Vec<RowBody> =
            rows.iter().map(|row| RowBody::of(row, self.query, self.names_hours)).collect();
        if self.format != Format::Json {
            let answer = self.window_writer().answer(&rows);
            return Ok(self.link.with(next_cursor.as_deref(), answer));
        }
        let range = Range { from: selection.from, to: selection.to };
        Ok(self.json(range, RowsBody::Windows(rows), next_cursor))
    }

    async fn folds(self, calendar: &Calendar) -> Result<Response, Problem> {
        let Selected { page, selection } = &self.selected;
        let database = &self.app.database;
        let (mut pages, range) =
            FoldPages::new(database, self.query, calendar, selection.clone()).await?;
        let writer = RowWriter::new(self.format, fold_columns(&self.query.spec.group_by));
        if !self.is_page {
            return stream(self.app, pages, writer).await;
        }
        let mut folds = pages.read(page.read_limit()).await?;
        let next_cursor = page.cut(&mut folds, |fold| RowCursor::of(&fold.key()));
        let rows: Vec<FoldBody> = folds.iter().map(|fold| FoldBody::of(fold, self.query)).collect();
        if self.format != Format::Json {
            return Ok(self.link.with(next_cursor.as_deref(), writer.answer(&rows)));
        }
        let range = Range { from: range.from, to: range.to };
        Ok(self.json(range, RowsBody::Folds(rows), next_cursor))
    }

    fn window_writer(&self) -> RowWriter<RowBody> {
        let columns = window_columns(&self.query.spec.group_by, self.names_hours);
        RowWriter::new(self.format, columns)
    }

    fn json(self, range: Range, rows: RowsBody, next_cursor: Option<String>) -> Response {
        let query = self.query;
        let body = WindowsAnswer {
            query: query.name.to_string(),
            watermark: query.watermarks.current.to_string(),
            complete_through: query.complete_through().map(|time| time.to_string()),
            range: range.into(),
            rows,
            next_cursor,
        };
        vary_by_accept(self.link.answer(body.next_cursor.as_deref(), &body))
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

/// A half-open range; with `granularity`, from the start of the first window in it to the end of the
/// last.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Range)]
struct RangeBody {
    /// The first moment inside; null: from the beginning.
    #[schema(format = DateTime)]
    from: Option<String>,
    /// The first moment no longer inside; null: to the end.
    #[schema(format = DateTime)]
    to: Option<String>,
}

impl From<Range> for RangeBody {
    fn from(Range { from, to }: Range) -> Self {
        let text = |time: crate::domain::EventTime| time.to_string();
        Self { from: from.map(text), to: to.map(text) }
    }
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
