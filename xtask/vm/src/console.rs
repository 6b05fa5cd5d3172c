//! Reads what a guest writes to its serial console. `guest/init` and `pping/tests/vm/report.rs` write it.

use std::collections::BTreeMap;

/// The outcome of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Passed,
    Failed,
    /// The kernel lacks what the test needs.
    Skipped(String),
}

/// A test, and its output.
#[derive(Clone, Debug)]
pub(super) struct Test {
    pub(super) name: String,
    pub(super) verdict: Verdict,
    /// By the guest's clock; `None` for a test that did not end.
    pub(super) seconds: Option<f64>,
    pub(super) output: String,
}

/// What the verifier and the translator report about a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verified {
    pub(super) program: String,
    /// The features with which it was loaded.
    pub(super) features: String,
    /// Instructions that the verifier looked at; `None` if the kernel does not report them.
    pub(super) instructions: Option<u32>,
    /// Size of the program in the kernel, in bytes.
    pub(super) bytes: u32,
}

/// Everything that a console shows.
#[derive(Clone, Debug, Default)]
pub(super) struct Console {
    pub(super) tests: Vec<Test>,
    pub(super) verified: Vec<Verified>,
    /// The features of the kernel: name and value.
    pub(super) features: BTreeMap<String, String>,
    /// Whether the guest has run all tests.
    pub(super) is_done: bool,
    /// Output outside of tests, such as that of the boot.
    pub(super) start: String,
}

impl Console {
    /// Reads what has come so far. A test that has begun and not ended has failed.
    pub(super) fn read(text: &str) -> Self {
        let mut console = Self::default();
        let mut current: Option<Test> = None;
        for line in text.lines() {
            // A program that was killed may have left an incomplete line.
            let Some((before, word, rest)) = marker(line) else {
                write(&mut console.start, &mut current, line);
                continue;
            };
            if !before.trim().is_empty() {
                write(&mut console.start, &mut current, before);
            }
            match word {
                "BEGIN" => {
                    console.tests.extend(current.take());
                    current = Some(Test {
                        name: rest.to_owned(),
                        verdict: Verdict::Failed,
                        seconds: None,
                        output: String::new(),
                    });
                }
                "SKIPPED" => {
                    if let Some(test) = &mut current {
                        test.verdict = Verdict::Skipped(rest.to_owned());
                    }
                }
                "END" => console.tests.extend(current.take().map(|test| ended(test, rest))),
                "VERIFIED" => console.verified.extend(verified(rest)),
                "FEATURE" => {
                    let (name, value) = rest.split_once(' ').unwrap_or((rest, ""));
                    console.features.insert(name.to_owned(), value.to_owned());
                }
                "DONE" => console.is_done = true,
                _ => {}
            }
        }
        console.tests.extend(current.map(|test| Test { verdict: Verdict::Failed, ..test }));
        console
    }
}

/// Splits a line with a marker into the text before it, the marker, and the text after it.
fn marker(line: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = line.split_once("PPING-")?;
    let (word, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    Some((before, word, rest.trim()))
}

fn write(start: &mut String, current: &mut Option<Test>, line: &str) {
    let output = current.as_mut().map_or(start, |test| &mut test.output);
    output.push_str(line);
    output.push('\n');
}

/// Reads `name status began ended`. The name is already known.
fn ended(mut test: Test, rest: &str) -> Test {
    let fields: Vec<&str> = rest.split(' ').collect();
    if let [_, status, began, ended] = fields[..] {
        test.seconds =
            began.parse::<f64>().ok().zip(ended.parse::<f64>().ok()).map(|(began, ended)| ended - began);
        test.verdict = match (status, test.verdict) {
            ("0", skipped @ Verdict::Skipped(_)) => skipped,
            ("0", _) => Verdict::Passed,
            _ => Verdict::Failed,
        };
    } else {
        test.verdict = Verdict::Failed;
    }
    test
}

/// Reads `program features instructions bytes`.
fn verified(rest: &str) -> Option<Verified> {
    let fields: Vec<&str> = rest.split(' ').collect();
    let [program, features, instructions, bytes] = fields[..] else { return None };
    Some(Verified {
        program: program.to_owned(),
        features: features.to_owned(),
        instructions: instructions.parse().ok(),
        bytes: bytes.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "booting\nPPING-KERNEL 6.1\nPPING-BEGIN a::passes\nrunning 1 test\n\
        PPING-VERIFIED pping_xdp samples 12000 8192\nPPING-FEATURE tcx no\n.\nPPING-END a::passes 0 1.50 3.75\n\
        PPING-BEGIN a::fails\npanicked at\nPPING-END a::fails 101 4.00 5.00\n\
        PPING-BEGIN a::cannot\nPPING-SKIPPED no such thing\nPPING-END a::cannot 0 5.00 5.00\n";

    #[test]
    fn verdicts_are_read() {
        let console = Console::read(&format!("{TEXT}PPING-DONE\n"));
        let verdicts: Vec<_> = console.tests.iter().map(|test| (&*test.name, &test.verdict)).collect();
        let skipped = Verdict::Skipped("no such thing".to_owned());
        let expected =
            [("a::passes", &Verdict::Passed), ("a::fails", &Verdict::Failed), ("a::cannot", &skipped)];
        assert_eq!(verdicts, expected);
        assert_eq!(console.tests[0].seconds, Some(2.25));
        assert_eq!(console.tests[1].output, "panicked at\n");
        assert_eq!(console.verified[0].instructions, Some(12_000));
        assert_eq!(console.features["tcx"], "no");
        assert_eq!(console.start, "booting\n");
        assert!(console.is_done);
    }

    #[test]
    fn a_test_that_does_not_end_has_failed() {
        let console =
            Console::read(&format!("{TEXT}PPING-BEGIN a::hangs\nPPING-SKIPPED not really\nKernel panic"));
        let last = console.tests.last().expect("it has begun");
        assert_eq!((&*last.name, &last.verdict), ("a::hangs", &Verdict::Failed));
        assert!(last.output.contains("Kernel panic") && !console.is_done);
    }

    #[test]
    fn a_test_that_fails_after_it_was_skipped_has_failed() {
        let text = "PPING-BEGIN a\nhalf a linePPING-SKIPPED reason\nPPING-END a 101 1 2\n";
        let console = Console::read(text);
        assert_eq!(console.tests[0].verdict, Verdict::Failed);
        assert_eq!(console.tests[0].output, "half a line\n");
    }

    #[test]
    fn a_kernel_that_counts_no_instructions_reports_a_size() {
        let console = Console::read("PPING-VERIFIED pping_xdp samples - 8192\n");
        assert_eq!((console.verified[0].instructions, console.verified[0].bytes), (None, 8192));
    }
}
