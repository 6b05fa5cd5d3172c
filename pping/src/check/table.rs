//! Writes a report for people.

use std::fmt::Write as _;

use clap::builder::styling::{AnsiColor, Style};

use super::report::{Check, Report, Status};
use crate::foreign_text::is_harmful;

/// The most columns, and the number without a terminal: long lines are hard to read.
const COLUMNS: usize = 100;

/// The fewest columns for the text of a check, however narrow the terminal is.
const MIN_COLUMNS: usize = 24;

/// The indentation of remedies.
const INDENT: usize = 2;

/// Writes the report in lines of at most `columns` characters, as far as words allow.
pub(super) fn table(report: &Report, columns: Option<usize>, is_coloured: bool) -> String {
    let width =
        |texts: &mut dyn Iterator<Item = &str>| texts.map(|text| text.chars().count()).max().unwrap_or(0);
    let status_width = width(&mut report.checks.iter().map(|check| check.status.name()));
    let name_width = width(&mut report.checks.iter().map(|check| check.name.text()));
    let margin = status_width + 2 + name_width + 2;
    let room = columns.unwrap_or(COLUMNS).min(COLUMNS).saturating_sub(margin).max(MIN_COLUMNS);
    let mut text = String::new();
    let mut subject = &None;
    for check in &report.checks {
        if check.subject != *subject {
            subject = &check.subject;
            let name = check.subject.as_deref().map(printable).unwrap_or_default();
            let bold = style(Style::new().bold(), is_coloured);
            // Writing to a string cannot fail.
            writeln!(text, "\n{bold}{name}{bold:#}").ok();
        }
        let colour = style(colour(check.status), is_coloured);
        let status = check.status.name();
        write!(text, "{colour}{status}{colour:#}{:1$}", "", status_width - status.len() + 2).ok();
        write!(text, "{:name_width$}  ", check.name.text()).ok();
        for (index, line) in lines(check, room).iter().enumerate() {
            let margin = if index == 0 { 0 } else { margin };
            writeln!(text, "{:margin$}{line}", "").ok();
        }
    }
    write!(text, "\n{}", verdict(report)).ok();
    text
}

/// The finding, with the remedy below it.
fn lines(check: &Check, room: usize) -> Vec<String> {
    let mut lines = wrapped(&printable(&check.found), room);
    let remedy = check.remedy.as_deref().map(printable).unwrap_or_default();
    let remedy = wrapped(&remedy, room - INDENT).into_iter();
    lines.extend(remedy.map(|line| format!("{:INDENT$}{line}", "")));
    lines
}

/// The last lines: the verdict, and the checks that are not ok.
fn verdict(report: &Report) -> String {
    let list =
        |status| report.titles(status).iter().map(|title| printable(title)).collect::<Vec<_>>().join(", ");
    let mut verdict =
        if report.ok { "pping can run here.\n".to_owned() } else { "pping cannot run here.\n".to_owned() };
    for status in [Status::Missing, Status::Degraded, Status::Unknown] {
        let titles = list(status);
        if !titles.is_empty() {
            writeln!(verdict, "{}: {titles}", status.name()).ok();
        }
    }
    verdict
}

fn colour(status: Status) -> Style {
    match status {
        Status::Ok => AnsiColor::Green.on_default(),
        Status::Degraded => AnsiColor::Yellow.on_default(),
        Status::Missing => AnsiColor::Red.on_default().bold(),
        Status::Unknown => AnsiColor::Cyan.on_default(),
    }
}

fn style(style: Style, is_coloured: bool) -> Style {
    if is_coloured { style } else { Style::new() }
}

/// Replaces harmful characters: a user who may create interfaces in a container can put them into interface names.
fn printable(text: &str) -> String {
    let visible = |letter: char| if is_harmful(letter) && letter != '\n' { '\u{fffd}' } else { letter };
    text.chars().map(visible).collect()
}

/// Wraps text into lines of at most `columns` characters, unless a word is longer.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            let is_full = line.chars().count() + 1 + word.chars().count() > columns;
            if is_full && !line.is_empty() {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::{super::name::Name, *};

    fn report() -> Report {
        Report::new(vec![
            Check::ok(Name::Kernel, "Linux 6.18.0, x86_64"),
            Check::degraded(
                Name::Tcx,
                "not in this kernel",
                "use a newer one, since this one has none of it",
            ),
            Check::missing(Name::Interface, "none of\x1b[2J that name", "make one").of("eth0\x07"),
        ])
    }

    #[test]
    fn columns_are_aligned_and_lines_are_short() {
        let expected = concat!(
            "ok        kernel     Linux 6.18.0, x86_64\n",
            "degraded  tcx        not in this kernel\n",
            "                       use a newer one, since\n",
            "                       this one has none of it\n",
            "\neth0\u{fffd}\n",
            "missing   interface  none of\u{fffd}[2J that name\n",
            "                       make one\n",
            "\npping cannot run here.\n",
            "missing: eth0\u{fffd} interface\n",
            "degraded: tcx\n",
        );
        assert_eq!(table(&report(), Some(46), false), expected);
        let widest = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap();
        let mut long = report();
        long.checks[0].found = "word ".repeat(80);
        assert_eq!(widest(&table(&long, None, false)), 100);
        assert_eq!(widest(&table(&long, Some(1_000), false)), 100);
        assert!(widest(&table(&long, Some(3), false)) < 60);
    }

    #[test]
    fn colours_are_only_around_words() {
        let plain = table(&report(), Some(60), false);
        let coloured = table(&report(), Some(60), true);
        assert!(!plain.contains('\x1b') && coloured.contains("\x1b[32mok\x1b[0m"), "{coloured:?}");
        assert_eq!(anstream::adapter::strip_str(&coloured).to_string(), plain);
    }
}
