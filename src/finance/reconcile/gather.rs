//! The lines of a report: what every source says of a window, brought together.

use std::collections::BTreeMap;

use super::{Line, Parts};
use crate::database::{ReconciliationSnapshot, Recount, RecountRange};
use crate::domain::{Currency, EventTime, GroupKey, OutputMode, Totals, WindowKey, WindowSpec};

/// Puts what every source says of a window into one line. Lines outside the range are left out.
pub(super) fn gather(snapshot: &ReconciliationSnapshot) -> BTreeMap<WindowKey, Line> {
    let mut lines: BTreeMap<WindowKey, Line> = BTreeMap::new();
    let places = Places::of(snapshot);
    let mut line = |key: &WindowKey, fill: &dyn Fn(&mut Line)| {
        fill(lines.entry(places.line_of(key)).or_insert(Line::EMPTY));
    };
    for (key, Recount { all, waiting, repeats, duplicates }) in &snapshot.recount {
        line(key, &|line| {
            line.recount = line.recount.or((*all != Totals::ZERO).then_some(*all));
            let parts = Parts {
                waiting: *waiting,
                repeats: *repeats,
                duplicates: *duplicates,
                ..Parts::NONE
            };
            line.parts = line.parts.plus(parts);
        });
    }
    for (key, totals, is_final) in &snapshot.stream {
        let is_closed = snapshot.query.closes(key.window);
        line(key, &|line| {
            line.is_final = *is_final && (line.stream.is_none() || line.is_final);
            line.stream = Some(line.stream.unwrap_or_default().plus(*totals));
            if *is_final != is_closed {
                let (says, told) = if is_closed { ("not ", "") } else { ("", "not ") };
                line.findings.push(format!(
                    "the stream's row is {says}marked final, and by the watermark its window is {told}closed"
                ));
            }
        });
    }
    for (key, totals, event_ids) in &snapshot.late {
        line(key, &|line| {
            line.late = line.late.plus(*totals);
            line.late_event_ids.extend(event_ids.iter().cloned());
        });
    }
    let is_append = snapshot.query.spec.output_mode == OutputMode::Append;
    for (key, totals) in snapshot.open.iter().flatten().filter(|_| is_append) {
        line(key, &|line| {
            line.parts.open = line.parts.open.plus(*totals);
            line.is_final = false;
        });
    }
    for (key, totals) in &snapshot.quarantined {
        line(key, &|line| {
            line.parts.quarantined = line.parts.quarantined.plus(*totals);
        });
    }
    for (key, totals) in &snapshot.corrections {
        line(key, &|line| {
            line.parts.corrections = line.parts.corrections.plus(*totals);
        });
    }
    for finding in &snapshot.findings {
        if let Some(key) = &finding.key {
            line(key, &|line| line.findings.push(finding.detail.clone()));
        }
    }
    match &snapshot.open {
        None if is_append => open_by_the_rest(snapshot, &mut lines),
        Some(state) if !is_append => hold_state_against_rows(state, snapshot, &mut lines),
        None | Some(_) => {}
    }
    let RecountRange { from, to } = snapshot.range;
    lines.retain(|key, _| {
        let start = key.window.start;
        from.is_none_or(|from| start >= from) && to.is_none_or(|to| start < to)
    });
    lines
}

/// Outside append mode the state is what the rows of windows that are not final say; the next batch goes
/// on from it.
fn hold_state_against_rows(
    state: &[(WindowKey, Totals)],
    snapshot: &ReconciliationSnapshot,
    lines: &mut BTreeMap<WindowKey, Line>,
) {
    let rows = snapshot.stream.iter().filter(|(_, _, is_final)| !is_final);
    let mut rows: BTreeMap<&WindowKey, Totals> =
        rows.map(|(key, totals, _)| (key, *totals)).collect();
    let odd: Vec<&WindowKey> = state
        .iter()
        .filter_map(|(key, totals)| (rows.remove(key) != Some(*totals)).then_some(key))
        .collect();
    for key in odd.into_iter().chain(rows.into_keys()) {
        let findings = &mut lines.entry(key.clone()).or_insert(Line::EMPTY).findings;
        findings.push("the state is not what the stream's row says".to_owned());
    }
}

/// What was in state at an earlier moment: of windows that were not final then, what the query had
/// read and counted. Of sessions some may have been written already.
fn open_by_the_rest(snapshot: &ReconciliationSnapshot, lines: &mut BTreeMap<WindowKey, Line>) {
    let watermark = snapshot.query.watermarks.current;
    let is_session = matches!(snapshot.query.spec.window, WindowSpec::Session { .. });
    let open_then = lines.iter_mut().filter(|(key, _)| !key.window.is_closed_at(watermark));
    for line in open_then.map(|(_, line)| line) {
        let Parts { waiting, repeats, corrections, .. } = line.parts;
        let out_of_state = line.late.plus(corrections).plus(waiting).minus(repeats);
        let written = line.stream.filter(|_| is_session).unwrap_or_default();
        line.parts.open = line.recount.unwrap_or_default().minus(out_of_state).minus(written);
        line.is_final &= line.parts.open == Totals::ZERO;
    }
}

/// Where each session of the stream has its line: with the recounted session that holds it; what neither
/// side counts, with the one in whose time it falls. Windows of other kinds stand for themselves.
struct Places<'snapshot> {
    /// By group and start.
    sessions: BTreeMap<(Currency, &'snapshot GroupKey, EventTime), &'snapshot WindowKey>,
}

impl<'snapshot> Places<'snapshot> {
    fn of(snapshot: &'snapshot ReconciliationSnapshot) -> Self {
        let is_session = matches!(snapshot.query.spec.window, WindowSpec::Session { .. });
        let is_counted = |recount: &Recount| {
            let Recount { all, waiting, repeats, .. } = *recount;
            [all, waiting, repeats] != [Totals::ZERO; 3]
        };
        let recounted =
            snapshot.recount.iter().filter(|(_, recount)| is_session && is_counted(recount));
        let sessions =
            recounted.map(|(key, _)| ((key.currency, &key.group, key.window.start), key));
        Self { sessions: sessions.collect() }
    }

    fn line_of(&self, key: &WindowKey) -> WindowKey {
        let at_or_before = (key.currency, &key.group, key.window.start);
        let before = self.sessions.range(..=at_or_before).next_back();
        before
            .map(|(_, session)| *session)
            .filter(|session| (session.currency, &session.group) == (key.currency, &key.group))
            .filter(|session| key.window.start < session.window.end)
            .unwrap_or(key)
            .clone()
    }
}
