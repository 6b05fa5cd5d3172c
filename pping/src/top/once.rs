//! The screen as text, for `--once`.

use std::fmt::Write as _;

use super::{
    header,
    table::{self, Row},
    text::{padded, width},
};
use crate::recent::{GroupsAnswer, Summary, View};

/// The title of the column of interfaces in the text.
const INTERFACE: &str = "interface";

/// Returns the whole screen as text: a row for each group if sides are told apart, and else one for each series.
pub(super) fn text(summary: &Summary, groups: &GroupsAnswer) -> String {
    let mut text = String::new();
    for line in header::lines(summary) {
        // Writing to memory does not fail.
        writeln!(text, "{line}").ok();
    }
    writeln!(text, "\n{} of {} groups in the last minute", groups.groups.len(), groups.known).ok();
    if summary.sides {
        let rows = table::rows(&groups.groups, |_| false);
        add_rows(&mut text, &rows, View::Sides, |_| String::new());
        return text;
    }
    let rows = table::rows(&groups.groups, |_| true);
    let interface = rows.iter().map(|row| width(&row.interface)).max().unwrap_or(0).max(INTERFACE.len());
    let before = |row: Option<&Row>| {
        let what = row.map_or(String::new(), |row| format!("{} {}", row.method, row.side));
        let name = row.map_or(INTERFACE, |row| &row.interface);
        format!("{} {} ", padded(&what, 22), padded(name, interface))
    };
    add_rows(&mut text, &rows, View::Series, before);
    text
}

/// Adds the titles and the rows, each after what `before` returns for it; for the titles it gets none.
fn add_rows(text: &mut String, rows: &[Row], view: View, before: impl Fn(Option<&Row>) -> String) {
    let titles = table::titles(view);
    let mut line = |row: Option<&Row>| {
        let cells = titles.iter().enumerate().map(|(at, title)| {
            let cell = row.map_or(title.name, |row| &row.cells[at]);
            padded(cell, title.text_width)
        });
        let line = format!("{}{}", before(row), cells.collect::<Vec<_>>().join(" "));
        writeln!(text, "{}", line.trim_end()).ok();
    };
    line(None);
    for row in rows {
        line(Some(row));
    }
}
