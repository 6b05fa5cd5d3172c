//! Printing the past: tables for people, CSV for spreadsheets.

use pping_common::limits::SECOND;

use super::{line::Line, time::local};
use crate::foreign_text::sanitized;

/// The lines as CSV (RFC 4180, with line feeds), times in ns since the Unix epoch and RTTs in ns.
pub(super) fn csv(lines: &[Line]) -> String {
    let mut text =
        "time,group,interface,method,matched,side,count,p50,p95,p99,packets,bytes,retransmissions\n"
            .to_owned();
    for line in lines {
        let number = |number: Option<u64>| number.map(|it| it.to_string()).unwrap_or_default();
        let numbers = [
            Some(line.count),
            line.p50,
            line.p95,
            line.p99,
            Some(line.packets),
            Some(line.bytes),
            Some(line.retransmissions),
        ];
        let names = line.names().map(|(_, name)| quoted(name.unwrap_or_default()));
        let fields = [number(line.time)].into_iter().chain(names).chain(numbers.map(number));
        text.push_str(&fields.collect::<Vec<_>>().join(","));
        text.push('\n');
    }
    text
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// The lines as a table, with local times.
pub(super) fn table(lines: &[Line]) -> String {
    if lines.is_empty() {
        return "nothing was measured in this range\n".to_owned();
    }
    let is_used = |column: usize| lines.iter().any(|line| line.names()[column].1.is_some());
    let used: Vec<usize> = (0..lines[0].names().len()).filter(|&column| is_used(column)).collect();
    let has_times = lines.iter().any(|line| line.time.is_some());
    let mut rows = vec![
        has_times
            .then(|| "time".to_owned())
            .into_iter()
            .chain(used.iter().map(|&column| lines[0].names()[column].0.to_owned()))
            .chain(
                ["samples", "p50 ms", "p95 ms", "p99 ms", "packets", "MB", "retx %"].map(ToOwned::to_owned),
            )
            .collect::<Vec<String>>(),
    ];
    for line in lines {
        let ms = |ns: Option<u64>| ns.map_or("-".to_owned(), |ns| format!("{:.3}", ns as f64 / 1e6));
        let share = 100.0 * line.retransmissions as f64 / line.packets.max(1) as f64;
        let numbers = [
            line.count.to_string(),
            ms(line.p50),
            ms(line.p95),
            ms(line.p99),
            line.packets.to_string(),
            format!("{:.1}", line.bytes as f64 / 1e6),
            format!("{share:.2}"),
        ];
        let names = used.iter().map(|&column| sanitized(line.names()[column].1.unwrap_or("-")));
        rows.push(
            line.time.map(|time| local(time / SECOND)).into_iter().chain(names).chain(numbers).collect(),
        );
    }
    let texts = usize::from(has_times) + used.len();
    aligned(&rows, texts)
}

/// Aligns columns: the first ones, which are texts, to the left, the others to the right.
fn aligned(rows: &[Vec<String>], texts: usize) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|it| it.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column < texts { format!("{cell:width$}") } else { format!("{cell:>width$}") }
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}
