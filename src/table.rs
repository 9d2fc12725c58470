//! Rows as a table, and the one CSV dialect of every file that leaves the service.
//!
//! The dialect: RFC 4180 with a header row, UTF-8 without a byte order mark, lines end in CRLF, quotes only
//! where a cell needs them, `.` decimals, RFC 3339 times, `true` and `false`, nothing for what there is not.
//! A text that a spreadsheet would take for a formula (it begins with `=`, `+`, `-`, `@`, a tab or a
//! carriage return) has a `'` before it; numbers such as `-4.50` stay numbers.
//!
//! Absent on purpose: options. Whoever wants another dialect takes NDJSON.

use std::fmt::Display;

/// What stands in one place of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    /// There is no value.
    Nothing,
    /// A text that somebody else wrote.
    Text(String),
    /// A number, a time, a flag or a word of ours: never a formula.
    Exact(String),
}

impl Cell {
    /// A number, a time, a flag or a word of ours.
    pub fn exact(value: impl Display) -> Self {
        Self::Exact(value.to_string())
    }

    /// The same where there is one.
    pub fn exact_or_nothing(value: Option<impl Display>) -> Self {
        value.map_or(Self::Nothing, Self::exact)
    }

    /// A text that somebody else wrote, where there is one.
    pub fn text(value: Option<&str>) -> Self {
        value.map_or(Self::Nothing, |text| Self::Text(text.to_owned()))
    }

    /// The cell as it stands in a CSV file, before any quotes.
    pub fn to_csv(&self) -> String {
        match self {
            Self::Nothing => String::new(),
            Self::Text(text) if text.starts_with(['=', '+', '-', '@', '\t', '\r']) => {
                format!("'{text}")
            }
            Self::Text(text) | Self::Exact(text) => text.clone(),
        }
    }
}

/// A column: its name, and what it shows of a row.
pub struct Column<Row> {
    name: String,
    cell: Box<dyn Fn(&Row) -> Cell + Send + Sync>,
}

/// The columns of a table, in their order.
pub struct Columns<Row>(Vec<Column<Row>>);

impl<Row> Default for Columns<Row> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<Row> std::fmt::Debug for Columns<Row> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl<Row> Columns<Row> {
    /// The same with one more column at the end.
    #[must_use]
    pub fn and(
        mut self,
        name: impl Into<String>,
        cell: impl Fn(&Row) -> Cell + Send + Sync + 'static,
    ) -> Self {
        self.0.push(Column { name: name.into(), cell: Box::new(cell) });
        self
    }

    /// The names, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|column| column.name.as_str())
    }

    /// The cells of a row, in the order of the columns.
    pub fn cells(&self, row: &Row) -> Vec<Cell> {
        self.0.iter().map(|column| (column.cell)(row)).collect()
    }

    /// The header of a CSV file, its line end included.
    pub fn csv_header(&self) -> Vec<u8> {
        csv_lines([self.names().map(|name| Cell::text(Some(name))).collect()])
    }

    /// Rows as lines of a CSV file.
    pub fn csv_rows<'row>(&self, rows: impl IntoIterator<Item = &'row Row>) -> Vec<u8>
    where
        Row: 'row,
    {
        csv_lines(rows.into_iter().map(|row| self.cells(row)))
    }
}

fn csv_lines(lines: impl IntoIterator<Item = Vec<Cell>>) -> Vec<u8> {
    let mut writer = csv::WriterBuilder::new()
        .terminator(csv::Terminator::CRLF)
        .flexible(true)
        .from_writer(Vec::new());
    for cells in lines {
        // Into memory: writing cannot fail.
        drop(writer.write_record(cells.iter().map(Cell::to_csv)));
    }
    writer.into_inner().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_looks_like_a_formula_is_guarded_and_a_number_is_not() {
        for (case, cell, csv) in [
            ("a formula", Cell::Text("=1+1".into()), "'=1+1"),
            ("a plus", Cell::Text("+49".into()), "'+49"),
            ("a minus", Cell::Text("-4.50".into()), "'-4.50"),
            ("an at sign", Cell::Text("@SUM(A1)".into()), "'@SUM(A1)"),
            ("a tab", Cell::Text("\t=1".into()), "'\t=1"),
            ("a carriage return", Cell::Text("\r=1".into()), "\"'\r=1\""),
            ("a formula that needs quotes", Cell::Text("=A,\"B\"".into()), "\"'=A,\"\"B\"\"\""),
            ("inside a text it is none", Cell::Text("a=b".into()), "a=b"),
            ("a space before it", Cell::Text(" =1".into()), " =1"),
            ("a number", Cell::exact("-4.50"), "-4.50"),
            ("a comma", Cell::Text("S,1".into()), "\"S,1\""),
            ("a line break", Cell::Text("a\nb".into()), "\"a\nb\""),
            ("beyond ASCII", Cell::Text("Évora".into()), "Évora"),
            ("no value", Cell::Nothing, ""),
        ] {
            let columns = Columns::<Cell>::default()
                .and("number", |_| Cell::exact(1))
                .and("cell", Cell::clone);
            let written = String::from_utf8(columns.csv_rows([&cell])).expect("UTF-8");
            assert_eq!(written, format!("1,{csv}\r\n"), "{case}");
        }
    }

    #[test]
    fn a_table_without_rows_still_has_its_header() {
        let columns = Columns::<()>::default()
            .and("start", |()| Cell::Nothing)
            .and("=odd", |()| Cell::Nothing);
        assert_eq!(columns.csv_header(), b"start,'=odd\r\n");
        assert!(columns.csv_rows([]).is_empty());
    }
}
