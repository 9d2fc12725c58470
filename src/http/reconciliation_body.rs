//! The reconciliation in JSON. Every part is always there, zeros included.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use super::figures::{Figures, GroupMembers, GroupMembersSchema, RangeBody, moment_text};
use crate::database::{Finding, ReconciliationSnapshot};
use crate::domain::{Currency, EventField, EventId, WindowKey};
use crate::finance::reconcile::{self, CurrencyTotals, Line, LineFilter, Verdict};

/// The stream against a recount of the raw log.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Reconciliation)]
pub(super) struct ReconciliationBody {
    /// Whose stream.
    #[schema(example = "hourly_sales")]
    pub(super) query: String,
    /// The moment of the snapshot, by the database's clock.
    #[schema(format = DateTime)]
    pub(super) as_of: String,
    /// The watermark of the query's last batch.
    #[schema(format = DateTime, example = "2026-10-01T11:40:00.000Z")]
    pub(super) watermark: String,
    /// Every window that ends by this moment is final; null before the first is.
    #[schema(format = DateTime, example = "2026-10-01T11:00:00Z")]
    pub(super) complete_through: Option<String>,
    /// The range that was asked for, in UTC.
    pub(super) range: RangeBody,
    /// Every window that stands on either side, by start, then group and currency.
    #[schema(value_type = Vec<LineBody>)]
    pub(super) windows: Lines,
    /// The lines added up, per currency: currencies are never added together.
    pub(super) totals: BTreeMap<&'static str, TotalsBody>,
    /// How many windows have a difference that is not fully itemised, and how much else was met that
    /// cannot be.
    pub(super) unexplained: usize,
    /// What was met and belongs to no window, such as a row that cannot be read; each a sentence.
    #[serde(serialize_with = "in_sentences")]
    #[schema(value_type = Vec<String>)]
    pub(super) findings: Vec<Finding>,
}

fn in_sentences<S: Serializer>(findings: &[Finding], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(findings.iter().map(|finding| &finding.detail))
}

/// The lines of a report. Each is put into words only when it is written: in words they all together
/// would take many times the memory.
#[derive(Debug)]
pub(super) struct Lines {
    lines: Vec<(WindowKey, Line)>,
    fields: Vec<EventField>,
}

impl Lines {
    /// Them in words of the API, after the first `skipped`.
    pub(super) fn bodies(&self, skipped: usize) -> impl Iterator<Item = LineBody> {
        let lines = self.lines.iter().skip(skipped);
        lines.map(|(key, line)| line_body(key, line, &self.fields))
    }
}

impl Serialize for Lines {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.bodies(0))
    }
}

/// One window of the report. The fields of the query's `group_by` are members of their own.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReconciliationLine)]
pub(super) struct LineBody {
    /// The first moment inside the window.
    #[schema(format = DateTime, example = "2026-10-01T09:00:00Z")]
    pub(super) start: String,
    /// The first moment after the window.
    #[schema(format = DateTime, example = "2026-10-01T10:00:00Z")]
    pub(super) end: String,
    #[serde(flatten)]
    #[schema(value_type = GroupMembersSchema)]
    pub(super) group: GroupMembers,
    /// ISO 4217.
    #[schema(example = "USD")]
    pub(super) currency: &'static str,
    /// What the stream wrote; null where no row exists.
    pub(super) stream: Option<Figures>,
    /// What the raw log holds; null where it holds no matching event.
    pub(super) recount: Option<Figures>,
    /// Recount − stream.
    pub(super) difference: Figures,
    /// Events that came after the window was final and are in no correction.
    pub(super) late: LateBody,
    #[serde(flatten)]
    pub(super) parts: Parts,
    /// Whether the window is final.
    pub(super) r#final: bool,
    /// The first that applies: `unexplained`, `corrected`, `late`, `open`, `waiting`, `repeats`,
    /// `match`.
    #[schema(example = "late")]
    pub(super) status: &'static str,
    /// What is wrong with an `unexplained` window; each a sentence. Else empty.
    pub(super) findings: Vec<String>,
}

/// Late events of a window.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReconciliationLate)]
pub(super) struct LateBody {
    #[serde(flatten)]
    pub(super) figures: Figures,
    /// Their ids, in the order of the raw log.
    pub(super) event_ids: Vec<String>,
}

/// What a difference is made of besides late events, and what stands beside it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReconciliationParts)]
pub(super) struct Parts {
    /// In state, not yet written; in append mode.
    pub(super) open: Figures,
    /// Received, not yet read by the query.
    pub(super) waiting: Figures,
    /// Counted by the stream and not by the recount.
    pub(super) repeats: Figures,
    /// Left out by both sides; for information.
    pub(super) duplicates: Figures,
    /// Stored aside and in no count; for information.
    pub(super) quarantined: Figures,
    /// Booked corrections.
    pub(super) corrections: Figures,
}

impl Parts {
    fn of(parts: &crate::finance::reconcile::Parts, currency: Currency) -> Self {
        Self {
            open: Figures::of(parts.open, currency),
            waiting: Figures::of(parts.waiting, currency),
            repeats: Figures::of(parts.repeats, currency),
            duplicates: Figures::of(parts.duplicates, currency),
            quarantined: Figures::of(parts.quarantined, currency),
            corrections: Figures::of(parts.corrections, currency),
        }
    }
}

/// All lines of one currency added up.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReconciliationTotals)]
pub(super) struct TotalsBody {
    /// What the stream wrote.
    pub(super) stream: Figures,
    /// What the raw log holds.
    pub(super) recount: Figures,
    /// Recount − stream.
    pub(super) difference: Figures,
    /// Late events in no correction.
    pub(super) late: Figures,
    #[serde(flatten)]
    pub(super) parts: Parts,
}

impl ReconciliationBody {
    /// The report on a snapshot, in the lines that `filter` keeps.
    pub(super) fn of(snapshot: ReconciliationSnapshot, filter: &LineFilter) -> Self {
        let report = reconcile::compare(&snapshot, filter);
        let ReconciliationSnapshot { query, range, as_of, .. } = snapshot;
        let totals = report.totals.iter();
        Self {
            query: query.name.to_string(),
            as_of: moment_text(as_of),
            watermark: query.watermarks.current.to_string(),
            complete_through: query.complete_through().map(|time| time.to_string()),
            range: RangeBody::of(range.from, range.to),
            windows: Lines { lines: report.lines, fields: query.spec.group_by },
            totals: totals
                .map(|(currency, sums)| (currency.code(), totals_body(sums, *currency)))
                .collect(),
            unexplained: report.unexplained,
            findings: report.findings,
        }
    }
}

/// A row of the report as a table or in lines: a window, or at the end what belongs to none.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum ReportRow {
    Window(Box<LineBody>),
    Elsewhere {
        /// `unexplained`, unless nobody need look.
        status: Option<&'static str>,
        findings: [String; 1],
    },
}

impl ReportRow {
    pub(super) fn window(&self) -> Option<&LineBody> {
        match self {
            Self::Window(line) => Some(line),
            Self::Elsewhere { .. } => None,
        }
    }

    pub(super) fn status(&self) -> Option<&'static str> {
        match self {
            Self::Window(line) => Some(line.status),
            Self::Elsewhere { status, .. } => *status,
        }
    }

    pub(super) fn findings(&self) -> &[String] {
        match self {
            Self::Window(line) => &line.findings,
            Self::Elsewhere { findings, .. } => findings,
        }
    }
}

impl ReconciliationBody {
    /// The rows of the report after the first `skipped`.
    pub(super) fn rows(&self, skipped: usize) -> impl Iterator<Item = ReportRow> {
        let windows = self.windows.bodies(skipped).map(|line| ReportRow::Window(Box::new(line)));
        let elsewhere = self.findings.iter().skip(skipped.saturating_sub(self.windows.lines.len()));
        windows.chain(elsewhere.map(|finding| ReportRow::Elsewhere {
            status: finding.is_fault.then_some(Verdict::Unexplained.as_str()),
            findings: [finding.detail.clone()],
        }))
    }
}

fn line_body(key: &WindowKey, line: &Line, fields: &[EventField]) -> LineBody {
    let currency = key.currency;
    let figures = |totals| Figures::of(totals, currency);
    LineBody {
        start: key.window.start.to_string(),
        end: key.window.end.to_string(),
        group: GroupMembers::beside_a_status(fields, &key.group),
        currency: currency.code(),
        stream: line.stream.map(figures),
        recount: line.recount.map(figures),
        difference: figures(line.difference()),
        late: LateBody {
            figures: figures(line.late),
            event_ids: line.late_event_ids.iter().map(EventId::to_string).collect(),
        },
        parts: Parts::of(&line.parts, currency),
        r#final: line.is_final,
        status: line.verdict().as_str(),
        findings: line.findings.clone(),
    }
}

fn totals_body(sums: &CurrencyTotals, currency: Currency) -> TotalsBody {
    let figures = |totals| Figures::of(totals, currency);
    TotalsBody {
        stream: figures(sums.stream),
        recount: figures(sums.recount),
        difference: figures(sums.recount.minus(sums.stream)),
        late: figures(sums.late),
        parts: Parts::of(&sums.parts, currency),
    }
}
