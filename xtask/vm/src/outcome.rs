//! The outcome of each kernel, and the table of all.

use std::{fmt::Write as _, path::PathBuf};

use anyhow::Result;

use super::{
    boot::End,
    console::{Console, Test, Verdict},
    kernel::Kernel,
    line::Line,
};

/// How many lines of a failure are printed; the log has all.
const RELEVANT: usize = 60;

/// The outcome of a machine.
pub(super) struct Run {
    pub(super) console: Console,
    pub(super) end: End,
    /// The file with all output of the machine.
    pub(super) log: PathBuf,
}

impl Run {
    /// Returns what is wrong, beside tests that failed.
    fn failure(&self) -> Option<&str> {
        match &self.end {
            End::Interrupted => Some("interrupted"),
            End::Failed(what) => Some(what),
            End::Off if !self.console.is_done => Some("it powered off before the tests ended"),
            End::Off if self.console.tests.is_empty() => Some("it ran no test"),
            End::Off => None,
        }
    }
}

/// The outcome of a kernel.
pub(super) struct Outcome {
    pub(super) line: Line,
    /// The kernel that ran, or why there is none.
    pub(super) kernel: Result<Kernel, String>,
    runs: Vec<Run>,
}

impl Outcome {
    pub(super) fn new(line: Line, kernel: Result<Kernel>) -> Self {
        Self { line, kernel: kernel.map_err(|error| format!("{error:#}")), runs: Vec::new() }
    }

    pub(super) fn add(&mut self, run: Run) {
        self.runs.push(run);
    }

    pub(super) fn consoles(&self) -> impl Iterator<Item = &Console> {
        self.runs.iter().map(|run| &run.console)
    }

    fn tests(&self) -> impl Iterator<Item = &Test> {
        self.consoles().flat_map(|console| &console.tests)
    }

    pub(super) fn count(&self, of: impl Fn(&Verdict) -> bool) -> usize {
        self.tests().filter(|test| of(&test.verdict)).count()
    }

    /// Whether every test ended as it should.
    pub(super) fn is_good(&self) -> bool {
        self.kernel.is_ok()
            && self.runs.iter().all(|run| run.failure().is_none())
            && self.tests().all(|test| test.verdict != Verdict::Failed)
    }

    /// Describes what is wrong, with the output of the guest.
    pub(super) fn complaint(&self) -> Option<String> {
        let mut text = String::new();
        if let Err(why) = &self.kernel {
            add(&mut text, &format!("{}: not fetched: {why}", self.line));
        }
        for run in &self.runs {
            let before = text.len();
            for test in run.console.tests.iter().filter(|test| test.verdict == Verdict::Failed) {
                add(&mut text, &format!("{}: {} failed:\n{}", self.line, test.name, tail(&test.output)));
            }
            if let Some(failure) = run.failure() {
                add(&mut text, &format!("{}: {failure}", self.line));
                if run.console.tests.is_empty() {
                    add(&mut text, &tail(&run.console.start));
                }
            }
            if text.len() > before {
                add(&mut text, &format!("({} has the whole output of the machine)", run.log.display()));
            }
        }
        (!text.is_empty()).then_some(text)
    }

    fn find(&self, name: &str) -> Option<&Test> {
        self.tests().find(|test| test.name == name)
    }
}

/// Formats a row for each test and a column for each kernel, followed by the reasons for skipped tests.
pub(super) fn table(outcomes: &[Outcome], names: &[String]) -> String {
    let mut rows = vec![
        std::iter::once("test".to_owned()).chain(outcomes.iter().map(|it| it.line.to_string())).collect(),
        std::iter::once("kernel".to_owned()).chain(outcomes.iter().map(version)).collect(),
    ];
    let mut reasons = String::new();
    for name in names {
        let mut row = vec![name.clone()];
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

/// Aligns the cells in columns, two blanks apart.
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
    use anyhow::anyhow;

    use super::*;

    fn outcome(line: usize, text: &str) -> Outcome {
        let line = Line::ALL[line];
        let kernel = Kernel {
            line,
            arch: pping_chores::arch::Arch::X86_64,
            version: format!("{line}.3-1"),
            release: String::new(),
            directory: PathBuf::new(),
        };
        let mut outcome = Outcome::new(line, Ok(kernel));
        outcome.add(Run { console: Console::read(text), end: End::Off, log: PathBuf::new() });
        outcome
    }

    const PASSED: &str = "PPING-BEGIN a\nPPING-END a 0 1 3\nPPING-DONE\n";

    #[test]
    fn the_table_has_every_test_and_every_kernel() {
        let skipped = "PPING-BEGIN b\nPPING-SKIPPED too old\nPPING-END b 0 1 2\nPPING-DONE\n";
        let outcomes =
            [outcome(0, skipped), outcome(1, PASSED), Outcome::new(Line::ALL[2], Err(anyhow!("no net")))];
        let expected = "test    5.10      6.1         6.12\n\
                        kernel  5.10.3-1  6.1.3-1     not fetched\n\
                        a       NOT RUN   passed 2 s  not fetched\n\
                        b       skipped   NOT RUN     not fetched\n\
                        5.10: b skipped: too old\n";
        assert_eq!(table(&outcomes, &["a".to_owned(), "b".to_owned()]), expected);
        assert!(outcomes[1].is_good() && !outcomes[2].is_good());
    }

    #[test]
    fn a_run_that_does_not_finish_is_a_failure() {
        let complains = |text, of| {
            let outcome = outcome(1, text);
            assert!(!outcome.is_good());
            let complaint = outcome.complaint().expect("something is wrong");
            assert!(complaint.contains(of), "{complaint}");
        };
        complains("PPING-BEGIN a\nPPING-END a 0 1 3\n", "before the tests ended");
        complains("PPING-DONE\n", "it ran no test");
        complains("PPING-BEGIN a\nassertion\nPPING-END a 101 1 3\nPPING-DONE\n", "assertion");
        assert!(outcome(1, PASSED).complaint().is_none() && outcome(1, PASSED).is_good());
    }
}
