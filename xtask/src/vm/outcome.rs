//! What came of each kernel, and the table of it.

use std::fmt::Write as _;

use super::{
    boot::End,
    console::{Console, Test, Verdict},
    kernel::Kernel,
    line::Line,
};

/// Lines of a failure that are printed; the log has all.
const RELEVANT: usize = 60;

/// What came of a kernel.
pub(super) struct Outcome {
    pub(super) line: Line,
    /// The kernel that ran, or why there is none.
    pub(super) kernel: Result<Kernel, String>,
    pub(super) console: Console,
    /// What is wrong beside tests that failed.
    pub(super) trouble: Option<String>,
}

impl Outcome {
    pub(super) fn not_fetched(line: Line, why: String) -> Self {
        Self { line, kernel: Err(why), console: Console::default(), trouble: None }
    }

    pub(super) fn ran(kernel: Kernel, console: Console, end: End) -> Self {
        let trouble = match end {
            End::Interrupted => Some("interrupted".to_owned()),
            End::Trouble(what) => Some(what),
            End::Off if !console.is_done => Some("it went off before the tests were over".to_owned()),
            End::Off if console.tests.is_empty() => Some("there is no such test".to_owned()),
            End::Off => None,
        };
        Self { line: kernel.line, kernel: Ok(kernel), console, trouble }
    }

    /// Whether every test ended as it should.
    pub(super) fn is_good(&self) -> bool {
        self.kernel.is_ok() && self.trouble.is_none() && self.count(|it| *it == Verdict::Failed) == 0
    }

    pub(super) fn count(&self, of: impl Fn(&Verdict) -> bool) -> usize {
        self.console.tests.iter().filter(|test| of(&test.verdict)).count()
    }

    /// What is wrong, for whoever has to find out why.
    pub(super) fn complaint(&self) -> Option<String> {
        let mut text = String::new();
        if let Err(why) = &self.kernel {
            add(&mut text, &format!("{}: not fetched: {why}", self.line));
        }
        for test in self.console.tests.iter().filter(|test| test.verdict == Verdict::Failed) {
            add(&mut text, &format!("{}: {} failed:\n{}", self.line, test.name, tail(&test.output)));
        }
        if let Some(trouble) = &self.trouble {
            add(&mut text, &format!("{}: {trouble}", self.line));
            if self.console.tests.is_empty() {
                add(&mut text, &tail(&self.console.start));
            }
        }
        (!text.is_empty()).then_some(text)
    }

    fn find(&self, name: &str) -> Option<&Test> {
        self.console.tests.iter().find(|test| test.name == name)
    }
}

/// A row for each test, a column for each kernel, and below it why tests were skipped.
pub(super) fn table(outcomes: &[Outcome]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for test in outcomes.iter().flat_map(|outcome| &outcome.console.tests) {
        if !names.contains(&&*test.name) {
            names.push(&test.name);
        }
    }
    let mut rows = vec![
        std::iter::once("test".to_owned()).chain(outcomes.iter().map(|it| it.line.to_string())).collect(),
        std::iter::once("kernel".to_owned()).chain(outcomes.iter().map(version)).collect(),
    ];
    let mut reasons = String::new();
    for name in names {
        let mut row = vec![name.to_owned()];
        for outcome in outcomes {
            row.push(cell(outcome, name));
            if let Some(Verdict::Skipped(reason)) = outcome.find(name).map(|test| &test.verdict) {
                add(&mut reasons, &format!("{}: {name} skipped: {reason}", outcome.line));
            }
        }
        rows.push(row);
    }
    format!("{}{reasons}", aligned(&rows))
}

fn version(outcome: &Outcome) -> String {
    outcome.kernel.as_ref().map_or_else(|_| "not fetched".to_owned(), |kernel| kernel.version.clone())
}

fn cell(outcome: &Outcome, name: &str) -> String {
    match outcome.find(name).map(|test| (&test.verdict, test.seconds)) {
        Some((Verdict::Passed, seconds)) => format!("passed {:.0} s", seconds.unwrap_or_default()),
        Some((Verdict::Failed, _)) => "FAILED".to_owned(),
        Some((Verdict::Skipped(_), _)) => "skipped".to_owned(),
        None if outcome.kernel.is_err() => "not fetched".to_owned(),
        None => "NOT RUN".to_owned(),
    }
}

/// Columns of equal width, two blanks apart.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..columns)
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default())
        .collect();
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}")).collect();
        add(&mut text, cells.join("  ").trim_end());
    }
    text
}

fn add(text: &mut String, line: &str) {
    // Writing to a string cannot fail.
    let _infallible = writeln!(text, "{line}");
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(RELEVANT)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(line: usize, text: &str) -> Outcome {
        let line = Line::ALL[line];
        let kernel = Kernel {
            line,
            version: format!("{line}.3-1"),
            release: String::new(),
            directory: std::path::PathBuf::new(),
        };
        Outcome::ran(kernel, Console::read(text), End::Off)
    }

    const PASSED: &str = "PPING-BEGIN a\nPPING-END a 0 1 3\nPPING-DONE\n";

    #[test]
    fn the_table_has_every_test_and_every_kernel() {
        let skipped = "PPING-BEGIN b\nPPING-SKIPPED too old\nPPING-END b 0 1 2\nPPING-DONE\n";
        let outcomes =
            [outcome(0, skipped), outcome(1, PASSED), Outcome::not_fetched(Line::ALL[2], "no net".into())];
        let expected = "test    5.10      6.1       6.12\n\
                        kernel  5.10.3-1  6.1.3-1   not fetched\n\
                        b       skipped   NOT RUN   not fetched\n\
                        a       NOT RUN   passed 2 s  not fetched\n\
                        5.10: b skipped: too old\n";
        assert_eq!(table(&outcomes).replace("   ", "  "), expected.replace("   ", "  "));
        assert!(outcomes[1].is_good() && !outcomes[2].is_good());
    }

    #[test]
    fn what_does_not_come_to_its_end_is_not_good() {
        let cut = outcome(1, "PPING-BEGIN a\nPPING-END a 0 1 3\n");
        assert!(
            !cut.is_good() && cut.complaint().is_some_and(|it| it.contains("before the tests were over"))
        );
        let nothing = outcome(1, "PPING-DONE\n");
        assert!(!nothing.is_good() && nothing.complaint().is_some_and(|it| it.contains("no such test")));
        let failed = outcome(1, "PPING-BEGIN a\nassertion\nPPING-END a 101 1 3\nPPING-DONE\n");
        assert!(!failed.is_good() && failed.complaint().is_some_and(|it| it.contains("assertion")));
        assert!(outcome(1, PASSED).complaint().is_none());
    }
}
