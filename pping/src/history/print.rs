//! Printing the past: tables for people, CSV for spreadsheets.

use pping_common::limits::SECOND;

use super::{
    line::{GROUP, Line},
    time::{length, local},
};
use crate::foreign_text::sanitized;

/// The lines as CSV (RFC 4180, with line feeds), times in ns since the Unix epoch, steps and RTTs in ns.
pub(super) fn csv(lines: &[Line]) -> String {
    let mut text =
        "time,step,group,interface,method,matched,side,count,p50,p95,p99,packets,bytes,retransmissions\n"
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
        let names = line.names().map(|(_, name)| field(name.unwrap_or_default()));
        let fields = [line.time, line.step].map(number).into_iter().chain(names).chain(numbers.map(number));
        text.push_str(&fields.collect::<Vec<_>>().join(","));
        text.push('\n');
    }
    text
}

/// A text as a field. Whoever names a group must not make a spreadsheet compute something, so what would be a formula gets a
/// quote mark before it.
fn field(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = format!("{}{text}", if is_formula { "'" } else { "" });
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

/// The lines as a table, with local times.
pub(super) fn table(lines: &[Line]) -> String {
    let has_times = lines.iter().any(|line| line.time.is_some());
    // Intervals are all of the same group, if of one.
    let is_used = |column: usize| {
        lines.iter().any(|line| line.names()[column].1.is_some() && !(has_times && column == GROUP))
    };
    let used: Vec<usize> = (0..Line::default().names().len()).filter(|&column| is_used(column)).collect();
    let times: &[&str] = if has_times { &["time", "step"] } else { &[] };
    let numbers = ["samples", "p50 ms", "p95 ms", "p99 ms", "packets", "MB", "retx %"];
    let names = Line::default().names().map(|(title, _)| title);
    let titles = times.iter().copied().chain(used.iter().map(|&column| names[column])).chain(numbers);
    let mut rows = vec![titles.map(ToOwned::to_owned).collect::<Vec<String>>()];
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
        let times = [line.time.map(|time| local(time / SECOND)), line.step.map(|step| length(step / SECOND))];
        let names = used.iter().map(|&column| sanitized(line.names()[column].1.unwrap_or("-")));
        rows.push(times.into_iter().flatten().chain(names).chain(numbers).collect());
    }
    aligned(&rows, times.len() + used.len())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_no_formulas_in_csv_and_move_no_cursor_in_tables() {
        let labels = ["=1+1", "+1", "-2,5", "@sum", "\t=1", "\r=1", "a=b", "\u{1b}[2J", "say \"hi\""];
        let lines: Vec<Line> =
            labels.iter().map(|&label| Line { group: Some(label.into()), ..Line::default() }).collect();
        let csv = csv(&lines);
        for field in ["'=1+1", "'+1", "\"'-2,5\"", "'@sum", "'\t=1", "\"'\r=1\"", "a=b", "\"say \"\"hi\"\"\""]
        {
            assert!(csv.contains(&format!("\n,,{field},")), "{field}: {csv}");
        }
        let table = table(&lines);
        assert!(table.contains("?[2J") && !table.contains('\u{1b}'), "{table}");
    }
}
