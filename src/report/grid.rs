//! A report for people: aligned columns, without those that are zero everywhere, and the sums.

use crate::http::ReportText;
use crate::table::Cell;

/// Too long for a line: findings stand below, and the other forms have the ids.
const LEFT_OUT: [&str; 2] = ["late_event_ids", "findings"];

/// The report as text, ended by a newline.
pub(super) fn text(report: &ReportText) -> String {
    let (names, lines) = report.table();
    let mut text = grid(&names, &lines);
    for (currency, totals) in report.totals() {
        let width = totals.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        text.push_str(&format!("\n{currency} in all\n"));
        for (name, told) in totals {
            text.push_str(&format!("  {name:width$}  {told}\n"));
        }
    }
    for finding in report.findings() {
        text.push_str(&format!("\n{}\n", plain(&finding)));
    }
    text.push_str(&format!("\n{} windows, {} unexplained\n", lines.len(), report.unexplained()));
    text
}

fn grid(names: &[String], lines: &[Vec<Cell>]) -> String {
    let mut rows = vec![String::new(); lines.len() + 1];
    for (index, name) in names.iter().enumerate() {
        let cells: Vec<String> =
            lines.iter().map(|line| line.get(index).map_or(String::new(), shown)).collect();
        let is_figure = name.ends_with("_orders") || name.ends_with("_revenue");
        let says_nothing = is_figure && cells.iter().all(|cell| is_zero(cell));
        if LEFT_OUT.contains(&name.as_str()) || says_nothing && !is_side(name) {
            continue;
        }
        let width = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
        let width = width.max(name.chars().count());
        for (row, cell) in rows.iter_mut().zip(std::iter::once(name).chain(&cells)) {
            let gap = if row.is_empty() { "" } else { "  " };
            match is_figure {
                true => row.push_str(&format!("{gap}{cell:>width$}")),
                false => row.push_str(&format!("{gap}{cell:<width$}")),
            }
        }
    }
    rows.iter().map(|row| format!("{}\n", row.trim_end())).collect()
}

/// The columns that always stand.
fn is_side(name: &str) -> bool {
    ["stream_", "recount_", "difference_"].iter().any(|side| name.starts_with(side))
}

fn is_zero(cell: &str) -> bool {
    cell.chars().all(|digit| matches!(digit, '0' | '.'))
}

/// A cell on a terminal, which must not obey what somebody wrote.
fn shown(cell: &Cell) -> String {
    match cell {
        Cell::Nothing => String::new(),
        Cell::Text(text) | Cell::Exact(text) => plain(text),
    }
}

fn plain(text: &str) -> String {
    text.chars().map(|one| if one.is_control() { '\u{fffd}' } else { one }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_what_is_zero_everywhere_is_left_out() {
        let names =
            ["start", "store_id", "recount_orders", "late_orders", "open_orders", "late_event_ids"]
                .map(str::to_owned);
        let line = |store: &str, orders: i32, late: i32| {
            vec![
                Cell::exact("2026-10-01T09:00:00Z"),
                Cell::Text(store.to_owned()),
                Cell::exact(orders),
                Cell::exact(late),
                Cell::exact(0),
                Cell::exact("[]"),
            ]
        };
        let text = grid(&names, &[line("S1", 12, 0), line("a\u{1b}[2J", 0, -3)]);
        let expected = "\
start                 store_id  recount_orders  late_orders
2026-10-01T09:00:00Z  S1                    12            0
2026-10-01T09:00:00Z  a\u{fffd}[2J                  0           -3
";
        assert_eq!(text, expected);
    }
}
