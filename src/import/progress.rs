//! How far an import is: a bar on a terminal, a line now and then elsewhere; on standard error.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::{ProgressBar, ProgressStyle};

use super::summary::rate;
use crate::clock::Stopwatch;

/// The time between two lines where no terminal shows a bar.
const LINE_EVERY_US: i64 = 5_000_000;

const BAR: &str = "{prefix} [{bar:30}] {percent:>3} %  {msg}  {eta} left";
const SPINNER: &str = "{prefix} {spinner} {msg}";

/// The progress of one input.
pub(super) struct Progress {
    name: String,
    bytes_read: Arc<AtomicU64>,
    bytes_total: Option<u64>,
    bar: Option<ProgressBar>,
    since: Stopwatch,
    last_line_us: i64,
}

impl Progress {
    pub(super) fn of(name: String, bytes_read: Arc<AtomicU64>, bytes_total: Option<u64>) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let (bar, template) = match bytes_total {
                Some(total) => (ProgressBar::new(total), BAR),
                None => (ProgressBar::new_spinner(), SPINNER),
            };
            // A template that could not be read would leave the bar's own look.
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style.progress_chars("=> "));
            }
            bar.with_prefix(name.clone())
        });
        let since = Stopwatch::start();
        Self { name, bytes_read, bytes_total, bar, since, last_line_us: 0 }
    }

    /// Shows that so many rows are stored.
    pub(super) fn show(&mut self, rows: u64) {
        let (bytes, elapsed_us) =
            (self.bytes_read.load(Ordering::Relaxed), self.since.elapsed_us());
        let rows_shown = format!("{rows} rows, {} rows/s", rate(rows, elapsed_us));
        if let Some(bar) = &self.bar {
            bar.set_position(bytes);
            bar.set_message(rows_shown);
        } else if elapsed_us - self.last_line_us >= LINE_EVERY_US {
            self.last_line_us = elapsed_us;
            match percent(bytes, self.bytes_total) {
                Some(percent) => eprintln!("{}: {percent} %, {rows_shown}", self.name),
                None => eprintln!("{}: {rows_shown}", self.name),
            }
        }
    }

    /// Takes the bar off the terminal.
    pub(super) fn end(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

fn percent(bytes: u64, total: Option<u64>) -> Option<u64> {
    total.map(|total| bytes.saturating_mul(100).checked_div(total).unwrap_or(100).min(100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_that_is_read_is_told_where_the_whole_is_known() {
        for (bytes, total, expected) in [
            (0, Some(8), Some(0)),
            (7, Some(8), Some(87)),
            (9, Some(8), Some(100)),
            (0, Some(0), Some(100)),
            (5, None, None),
        ] {
            assert_eq!(percent(bytes, total), expected);
        }
    }
}
