//! That a report is being made: a spinner on a terminal, nothing elsewhere; on standard error.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

const TURN: Duration = Duration::from_millis(100);

/// A spinner with the time that has gone by.
pub(super) struct Spinner(Option<ProgressBar>);

impl Spinner {
    pub(super) fn start(what: String) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            // A template that could not be read would leave the spinner's own look.
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}, {elapsed}") {
                bar.set_style(style);
            }
            let bar = bar.with_message(what);
            bar.enable_steady_tick(TURN);
            bar
        });
        Self(bar)
    }

    /// Takes it off the terminal.
    pub(super) fn end(self) {
        if let Some(bar) = self.0 {
            bar.finish_and_clear();
        }
    }
}
