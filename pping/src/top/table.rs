//! The rows of the table of groups, and the screen as text for `--once`.

use std::{borrow::Cow, fmt::Write as _, sync::Arc};

use super::{
    header,
    text::{padded, percent, side, time, width},
};
use crate::foreign_text::sanitized;
use crate::recent::{Column, GroupAnswer, GroupsAnswer, RttAnswer, SeriesAnswer, Summary};

/// The columns of a row: the title, the width in text, and what it sorts by.
pub(super) const COLUMNS: [(&str, u16, Column); 9] = [
    ("group", 28, Column::Group),
    ("samples", 9, Column::Count),
    ("min", 9, Column::Min),
    ("p50", 9, Column::P50),
    ("p95", 9, Column::P95),
    ("p99", 9, Column::P99),
    ("packets", 9, Column::Packets),
    ("retx", 8, Column::Retransmissions),
    ("quality", 8, Column::Quality),
];

/// A row of the table of groups: one series of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// The texts of [`COLUMNS`].
    pub(super) cells: [String; COLUMNS.len()],
    /// The first prefix of the group and the number of the others, if that differs from the label.
    pub(super) prefix: Option<String>,
    pub(super) interface: String,
    pub(super) method: String,
    /// The side, in a word.
    pub(super) side: &'static str,
    /// The id of the group.
    pub(super) id: String,
    /// The series of the group.
    pub(super) series: SeriesKey,
}

/// A series of a group: its interface, method and side.
pub(super) type SeriesKey = (Option<Arc<str>>, String, Option<String>, Option<String>);

/// Returns the rows of the groups: one for each of their series.
pub(super) fn rows(groups: &[GroupAnswer]) -> Vec<Row> {
    groups.iter().flat_map(|group| group.series.iter().map(|series| row(group, series))).collect()
}

fn row(group: &GroupAnswer, series: &SeriesAnswer) -> Row {
    let of =
        |value: fn(&RttAnswer) -> u64| series.rtt.as_ref().map_or("-".to_owned(), |rtt| time(value(rtt)));
    let packets = series.sent.packets + series.received.packets;
    let retransmissions = series.sent.retransmissions + series.received.retransmissions;
    let share = if packets == 0 { "-".to_owned() } else { percent(retransmissions as f64 / packets as f64) };
    Row {
        cells: [
            sanitized(&group.group),
            series.rtt.map_or("0".to_owned(), |rtt| rtt.count.to_string()),
            of(|rtt| rtt.min),
            of(|rtt| rtt.p50),
            of(|rtt| rtt.p95),
            of(|rtt| rtt.p99),
            packets.to_string(),
            share,
            quality(series),
        ],
        prefix: prefix(group),
        interface: sanitized(series.interface.as_deref().unwrap_or("-")),
        method: sanitized(&series.method),
        side: side(series.matched.as_deref(), series.side.as_deref()),
        id: group.id.clone(),
        series: key(series),
    }
}

/// Returns the first prefix of a group and the number of the others, unless the group is named so.
fn prefix(group: &GroupAnswer) -> Option<String> {
    let first = group.prefix.as_ref().filter(|prefix| **prefix != group.group)?;
    Some(match group.prefix_count.saturating_sub(1) {
        0 => sanitized(first),
        others => format!("{} +{others}", sanitized(first)),
    })
}

/// Returns the score by the first profile, the only one that fits.
fn quality(series: &SeriesAnswer) -> String {
    let score = series.quality.first().and_then(|(_, score)| *score);
    score.map_or("-".to_owned(), |score| score.to_string())
}

/// Returns the key of a series.
pub(super) fn key(series: &SeriesAnswer) -> SeriesKey {
    let owned = |name: &Option<Cow<'_, str>>| name.as_deref().map(ToOwned::to_owned);
    (series.interface.clone(), series.method.to_string(), owned(&series.matched), owned(&series.side))
}

impl Row {
    /// Returns the key of a row, which does not depend on its position.
    pub(super) fn key(&self) -> (&str, &SeriesKey) {
        (&self.id, &self.series)
    }
}

/// The title of the column of interfaces in the text.
const INTERFACE: &str = "interface";

/// Returns the whole screen as text.
pub(super) fn text(summary: &Summary, groups: &GroupsAnswer) -> String {
    let mut text = String::new();
    for line in header::lines(summary) {
        // Writing to memory does not fail.
        writeln!(text, "{line}").ok();
    }
    writeln!(text, "\n{} of {} groups in the last minute", groups.groups.len(), groups.known).ok();
    let rows = rows(&groups.groups);
    let interface = rows.iter().map(|row| width(&row.interface)).max().unwrap_or(0).max(INTERFACE.len());
    let line = |text: &mut String, what: &str, name: &str, cells: &[&str]| {
        let mut line = format!("{} {}", padded(what, 22), padded(name, interface));
        for ((_, width, _), cell) in COLUMNS.iter().zip(cells) {
            write!(line, " {}", padded(cell, usize::from(*width))).ok();
        }
        writeln!(text, "{}", line.trim_end()).ok();
    };
    line(&mut text, "", INTERFACE, &COLUMNS.map(|(title, ..)| title));
    for Row { cells, interface, method, side, .. } in &rows {
        line(&mut text, &format!("{method} {side}"), interface, &cells.each_ref().map(String::as_str));
    }
    text
}
