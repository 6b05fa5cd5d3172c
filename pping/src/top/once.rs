//! The screen as text, for `--once`.

use std::fmt::Write as _;

use super::{
    ask::has_level,
    header,
    table::{self, Row},
    text::{padded, width},
};
use crate::{
    Error, config,
    foreign_text::sanitized,
    groups::NETWORK,
    recent::{GroupsAnswer, Summary, View},
};

/// The title of the column of interfaces in the text.
const INTERFACE: &str = "interface";

/// The titles of what nodes of the tree of groups have besides.
const OF_NODES: [&str; 3] = ["members", "active", "bad"];

/// Returns the whole screen as text: a row for each group, or node of a level, if sides are told apart, and else one for each series.
///
/// # Errors
/// If what is watched has no such level.
pub(super) fn text(summary: &Summary, groups: &GroupsAnswer, by: Option<&str>) -> Result<String, Error> {
    if let Some(level) = by.filter(|level| !has_level(summary, level)) {
        return Err(config::Error::Arguments(without_level(summary, level)).into());
    }
    let mut text = String::new();
    for line in header::lines(summary) {
        // Writing to memory does not fail.
        writeln!(text, "{line}").ok();
    }
    let what = match by {
        None => "groups".to_owned(),
        Some(NETWORK) if summary.networks => "networks".to_owned(),
        Some(level) => sanitized(level),
    };
    writeln!(text, "\n{} of {} {what} in the last minute", groups.groups.len(), groups.known).ok();
    if summary.sides {
        let rows = table::rows(&groups.groups, |_| false);
        add_rows(&mut text, &rows, View::Sides, |_| String::new());
        return Ok(text);
    }
    let rows = table::rows(&groups.groups, |_| true);
    let interface = rows.iter().map(|row| width(&row.interface)).max().unwrap_or(0).max(INTERFACE.len());
    let before = |row: Option<&Row>| {
        let what = row.map_or(String::new(), |row| format!("{} {}", row.method, row.side));
        let name = row.map_or(INTERFACE, |row| &row.interface);
        format!("{} {} ", padded(&what, 22), padded(name, interface))
    };
    add_rows(&mut text, &rows, View::Series, before);
    Ok(text)
}

fn without_level(summary: &Summary, level: &str) -> String {
    let networks = summary.networks.then_some(NETWORK);
    let known: Vec<_> =
        summary.levels.iter().map(|level| sanitized(level)).chain(networks.map(Into::into)).collect();
    let level = sanitized(level);
    if known.is_empty() {
        return format!(
            "--by {level}: what is measured has no levels; start pping with --roll-up or --remote-groups"
        );
    }
    format!("--by {level}: there is no such level; give one of {}", known.join(", "))
}

/// Adds the titles and the rows, each after what `before` returns for it; for the titles it gets none.
fn add_rows(text: &mut String, rows: &[Row], view: View, before: impl Fn(Option<&Row>) -> String) {
    let titles = table::titles(view);
    let has_members = rows.iter().any(|row| row.node.as_ref().is_some_and(|node| node.members.is_some()));
    let mut line = |row: Option<&Row>| {
        let cells = titles.iter().enumerate().map(|(at, title)| {
            let cell = row.map_or(title.name, |row| &row.cells[at]);
            padded(cell, title.text_width)
        });
        let of_node = if has_members { of_node(row) } else { String::new() };
        let line = format!("{}{}{of_node}", before(row), cells.collect::<Vec<_>>().join(" "));
        writeln!(text, "{}", line.trim_end()).ok();
    };
    line(None);
    for row in rows {
        line(Some(row));
    }
}

/// The numbers of a node, or without a row their titles.
fn of_node(row: Option<&Row>) -> String {
    let Some(row) = row else { return OF_NODES.map(|title| format!(" {title:>7}")).concat() };
    let numbers =
        row.node.as_ref().filter(|_| row.is_of_group).map(|node| [node.members, node.active, node.bad]);
    let number = |number: Option<usize>| format!(" {:>7}", number.map_or(String::new(), |it| it.to_string()));
    numbers.map_or(String::new(), |numbers| numbers.map(number).concat())
}
