//! What is on the screen, as rows of text: with `--once` that is all there is, and the screen draws the same.

use std::{fmt::Write as _, sync::Arc};

use unicode_width::UnicodeWidthChar as _;

use crate::view::{Column, GroupAnswer, GroupsAnswer, Interface, RttAnswer, SeriesAnswer, Summary};

/// The columns of the table of groups: the title, the width, and what it is sorted by.
pub(super) const COLUMNS: [(&str, u16, Column); 8] = [
    ("group", 28, Column::Group),
    ("samples", 9, Column::Count),
    ("min", 9, Column::Min),
    ("p50", 9, Column::P50),
    ("p95", 9, Column::P95),
    ("p99", 9, Column::P99),
    ("packets", 9, Column::Packets),
    ("again", 8, Column::Retransmissions),
];

/// A row of the table of groups: a side of a group, by a method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// The texts of [`COLUMNS`].
    pub(super) cells: [String; COLUMNS.len()],
    /// The method and the side, in words.
    pub(super) what: String,
    /// The id of the group.
    pub(super) id: String,
    /// The series among those of the group.
    pub(super) series: SeriesKey,
}

/// A series of a group: its interface, method and side.
pub(super) type SeriesKey = (Option<Arc<str>>, String, Option<String>);

/// The rows of the groups: one for each of their series.
pub(super) fn rows(groups: &[GroupAnswer]) -> Vec<Row> {
    groups.iter().flat_map(|group| group.series.iter().map(|series| row(group, series))).collect()
}

fn row(group: &GroupAnswer, series: &SeriesAnswer) -> Row {
    let of =
        |value: fn(&RttAnswer) -> u64| series.rtt.as_ref().map_or("-".to_owned(), |rtt| time(value(rtt)));
    let packets = series.sent.packets + series.received.packets;
    let again = series.sent.retransmissions + series.received.retransmissions;
    let share =
        if packets == 0 { "-".to_owned() } else { format!("{:.1} %", 100.0 * again as f64 / packets as f64) };
    Row {
        cells: [
            shown(&group.group),
            series.rtt.map_or("0".to_owned(), |rtt| rtt.count.to_string()),
            of(|rtt| rtt.min),
            of(|rtt| rtt.p50),
            of(|rtt| rtt.p95),
            of(|rtt| rtt.p99),
            packets.to_string(),
            share,
        ],
        what: format!("{} {}", shown(&series.method), side(series.matched.as_deref())),
        id: group.id.clone(),
        series: (
            series.interface.clone(),
            series.method.to_string(),
            series.matched.as_deref().map(ToOwned::to_owned),
        ),
    }
}

/// The side of the box that a series is of.
pub(super) fn side(matched: Option<&str>) -> &'static str {
    match matched {
        Some("ingress") => "beyond",
        Some("egress") => "behind",
        _ => "both",
    }
}

/// The lines above the table: an interface each, and what was lost.
pub(super) fn head(summary: &Summary) -> Vec<String> {
    let mut lines: Vec<String> = summary.interfaces.iter().map(interface).collect();
    let losses = &summary.losses;
    let all = [
        (losses.recordings_skipped, "packets not recorded"),
        (losses.unaggregated, "samples in no histogram"),
        (losses.events_lost, "records lost"),
    ];
    let some: Vec<String> = all
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if !some.is_empty() {
        lines.push(format!("since the start: {}", some.join(", ")));
    }
    lines
}

fn interface(interface: &Interface) -> String {
    let name = shown(&interface.interface);
    if !interface.is_up {
        return format!("{name}: is gone");
    }
    let (ingress, egress) = (&interface.rates.ingress, &interface.rates.egress);
    format!(
        "{name}: in {} packets/s {} bit/s, out {} packets/s {} bit/s, {} samples/s",
        amount(ingress.packets),
        amount(ingress.bits),
        amount(egress.packets),
        amount(egress.bits),
        amount(interface.rates.samples),
    )
}

/// A time in ns, in few characters.
pub(super) fn time(ns: u64) -> String {
    match ns {
        0..1_000_000 => format!("{:.0} us", ns as f64 / 1e3),
        1_000_000..10_000_000 => format!("{:.2} ms", ns as f64 / 1e6),
        10_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.2} s", ns as f64 / 1e9),
    }
}

/// A number, in few characters.
fn amount(number: f64) -> String {
    match number {
        ..1e3 => format!("{number:.0}"),
        ..1e6 => format!("{:.1}k", number / 1e3),
        ..1e9 => format!("{:.1}M", number / 1e6),
        _ => format!("{:.1}G", number / 1e9),
    }
}

/// Text of others, fit for a terminal: what would move the cursor, or turn the order of letters, is shown as a question mark.
pub(super) fn shown(text: &str) -> String {
    let is_harmless = |it: char| {
        !it.is_control()
            && !matches!(it, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
    };
    text.chars().map(|it| if is_harmless(it) { it } else { '?' }).collect()
}

/// The beginning of a text, and spaces, so that it is this wide.
pub(super) fn padded(text: &str, width: usize) -> String {
    let (mut used, mut padded) = (0, String::new());
    for character in text.chars() {
        let wide = character.width().unwrap_or(0);
        if used + wide > width {
            break;
        }
        used += wide;
        padded.push(character);
    }
    padded.extend(std::iter::repeat_n(' ', width - used));
    padded
}

/// The whole screen as text.
pub(super) fn text(summary: &Summary, groups: &GroupsAnswer) -> String {
    let mut text = String::new();
    for line in head(summary) {
        // Writing to memory does not fail.
        writeln!(text, "{line}").ok();
    }
    writeln!(text, "\n{} of {} groups in the last minute", groups.groups.len(), groups.known).ok();
    let line = |text: &mut String, what: &str, cells: &[&str]| {
        let mut line = padded(what, 22);
        for ((_, width, _), cell) in COLUMNS.iter().zip(cells) {
            write!(line, " {}", padded(cell, usize::from(*width))).ok();
        }
        writeln!(text, "{}", line.trim_end()).ok();
    };
    line(&mut text, "", &COLUMNS.map(|(title, ..)| title));
    for Row { cells, what, .. } in rows(&groups.groups) {
        line(&mut text, &what, &cells.each_ref().map(String::as_str));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_or_so() {
        for (ns, text) in [
            (0, "0 us"),
            (51_300, "51 us"),
            (1_234_567, "1.23 ms"),
            (20_250_000, "20.2 ms"),
            (999_900_000, "999.9 ms"),
            (64_000_000_000, "64.00 s"),
        ] {
            assert_eq!(time(ns), text);
        }
    }

    #[test]
    fn texts_of_others_cannot_move_the_cursor_or_turn_letters() {
        assert_eq!(shown("a\u{1b}[2Jb\u{202e}c\n\u{200b}d"), "a?[2Jb?c??d");
        assert_eq!(shown("Åre 東京"), "Åre 東京");
    }

    #[test]
    fn padded_texts_are_as_wide_as_asked_for() {
        assert_eq!(padded("東京都", 5), "東京 ");
        assert_eq!(padded("ab", 4), "ab  ");
        assert_eq!(padded("abcdef", 3), "abc");
    }
}
