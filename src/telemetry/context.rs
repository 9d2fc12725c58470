//! What every line that is logged during a request says besides itself. A span would say the same, but is
//! made and written out for each request whether a line is logged or not.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{Format, Json, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

tokio::task_local! {
    static CURRENT: LogContext;
}

/// Fields that all lines logged in a scope have. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct LogContext(Arc<[(&'static str, String)]>);

impl LogContext {
    /// These fields.
    pub fn new(fields: Vec<(&'static str, String)>) -> Self {
        Self(fields.into())
    }

    /// That of the work which asks, so that a task of its own can have it too.
    pub fn current() -> Self {
        CURRENT.try_with(Clone::clone).unwrap_or_default()
    }

    /// Gives the lines of `work` these fields.
    pub fn scope<F: Future>(self, work: F) -> impl Future<Output = F::Output> {
        CURRENT.scope(self, work)
    }

    /// The same for what does not wait.
    pub fn sync_scope<T>(self, work: impl FnOnce() -> T) -> T {
        CURRENT.sync_scope(self, work)
    }

    /// Adds the fields to a line of text.
    fn add_to_text(&self, line: &mut String) -> fmt::Result {
        let end = line.split_off(line.trim_end_matches('\n').len());
        for (name, value) in self.0.iter() {
            write!(line, " {name}={value:?}")?;
        }
        line.write_str(&end)
    }

    /// Adds the fields to a line that is an object in JSON and not empty.
    fn add_to_json(&self, line: &mut String) -> fmt::Result {
        let rest = line.split_off(line.find('{').map_or(0, |brace| brace + 1));
        for (name, value) in self.0.iter() {
            write!(line, "\"{name}\":{},", serde_json::Value::from(value.as_str()))?;
        }
        line.write_str(&rest)
    }
}

/// How lines are written: with the fields of the context in which they are logged.
pub(super) enum Lines {
    /// For people.
    Text(Format),
    /// One JSON object a line.
    Json(Format<Json>),
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        spans: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let (context, mut line) = (LogContext::current(), String::new());
        match self {
            Self::Text(text) => {
                let text = text.clone().with_ansi(writer.has_ansi_escapes());
                text.format_event(spans, Writer::new(&mut line), event)?;
                context.add_to_text(&mut line)?;
            }
            Self::Json(json) => {
                json.format_event(spans, Writer::new(&mut line), event)?;
                context.add_to_json(&mut line)?;
            }
        }
        writer.write_str(&line)
    }
}
