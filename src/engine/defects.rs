//! The deliberately broken rules, with the feature `defects` only: `tests/defects` shows that the
//! proofs notice them.

use super::{Rules, Watermarks};
use crate::domain::{Defect, Watermark};

impl Rules {
    /// The watermark that judges lateness, wrong as the defect has it.
    pub(super) fn defective_late_watermark(
        &self,
        late: Watermark,
        before: Watermarks,
    ) -> Watermark {
        match self.defect {
            Some(Defect::OneWatermark) => before.next,
            _ => self.defective_closing_watermark(late),
        }
    }

    /// The watermark that closes windows, wrong as the defect has it: `end < watermark` is
    /// `end <= watermark - 1 ms` for windows that end on whole milliseconds.
    pub(super) fn defective_closing_watermark(&self, watermark: Watermark) -> Watermark {
        match self.defect {
            Some(Defect::StrictlyBefore) => {
                Watermark::from_millis(watermark.as_millis().saturating_sub(1))
            }
            _ => watermark,
        }
    }
}
