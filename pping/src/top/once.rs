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
        add_rows(&mut text, &rows, View::Sides, by, |_| String::new());
        return Ok(text);
    }
    let rows = table::rows(&groups.groups, |_| true);
    let interface = rows.iter().map(|row| width(&row.interface)).max().unwrap_or(0).max(INTERFACE.len());
    let before = |row: Option<&Row>| {
        let what = row.map_or(String::new(), |row| format!("{} {}", row.method, row.side));
        let name = row.map_or(INTERFACE, |row| &row.interface);
        format!("{} {} ", padded(&what, 22), padded(name, interface))
    };
    add_rows(&mut text, &rows, View::Series, by, before);
    Ok(text)
}

fn without_level(summary: &Summary, level: &str) -> String {
    let networks = summary.networks.then_some(NETWORK);
    let known: Vec<_> =
        summary.levels.iter().map(|level| sanitized(level)).chain(networks.map(Into::into)).collect();
    let level = sanitized(level);
    if known.is_empty() {
        return format!(
            "--by `{level}`: what is measured has no levels; start pping with --roll-up or --remote-groups"
        );
    }
    format!("--by `{level}`: there is no such level; give one of {}", known.join(", "))
}

/// Adds the titles and the rows, each after what `before` returns for it; for the titles it gets none.
fn add_rows(
    text: &mut String,
    rows: &[Row],
    view: View,
    by: Option<&str>,
    before: impl Fn(Option<&Row>) -> String,
) {
    let titles = table::titles(view);
    let names: Vec<String> = rows.iter().map(name).collect();
    let widest = names.iter().map(|name| width(name)).max().unwrap_or(0);
    let mut line = |row: Option<&Row>, name: &str| {
        let figures = titles.iter().enumerate().skip(1).map(|(at, title)| {
            let cell = row.map_or(title.name, |row| &row.cells[at]);
            padded(cell, title.text_width)
        });
        let figures = figures.collect::<Vec<_>>().join(" ");
        let of_node = if by.is_some_and(|level| level != NETWORK) { of_node(row) } else { String::new() };
        let name = padded(name, widest.max(titles[0].text_width));
        writeln!(text, "{}", format!("{}{name} {figures}{of_node}", before(row)).trim_end()).ok();
    };
    line(None, &by.map_or(titles[0].name.to_owned(), sanitized));
    for (row, name) in rows.iter().zip(&names) {
        line(Some(row), name);
    }
}

/// What a row is called. Nodes of one level may have equal values under others, so they have their paths.
fn name(row: &Row) -> String {
    row.node.as_ref().map_or_else(|| row.label.clone(), |node| sanitized(&node.path))
}

/// The numbers of a node, or without a row their titles.
fn of_node(row: Option<&Row>) -> String {
    let Some(row) = row else { return OF_NODES.map(|title| format!(" {title:>7}")).concat() };
    let numbers =
        row.node.as_ref().filter(|_| row.is_of_group).map(|node| [node.members, node.active, node.bad]);
    let number = |number: Option<usize>| format!(" {:>7}", number.map_or(String::new(), |it| it.to_string()));
    numbers.map_or(String::new(), |numbers| numbers.map(number).concat())
}
