//! The counts, and how much they may grow.

use std::fmt::Write as _;

/// How much a count may grow, in percent. The same compiler makes the same instructions from the same sources, so any
/// growth comes from the sources. But a change elsewhere may move some instructions of a function, and a difference this
/// small does not show in a time.
const LEEWAY: u64 = 3;

/// The same, if the earlier counts are from another compiler or for another processor. It catches gross growth only.
const CROSS_COMPILER_LEEWAY: u64 = 25;

/// What precedes the compiler's version in a document.
const COMPILER: &str = "Counted with ";

/// How many instructions each case takes, in the order of the cases, and the compiler that made them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    compiler: String,
    cases: Vec<(String, u64)>,
}

impl Counts {
    pub(super) fn new(compiler: String, cases: Vec<(String, u64)>) -> Self {
        Self { compiler, cases }
    }

    /// Reads the counts of a document.
    pub(super) fn read(document: &str) -> Self {
        let mut counts = Self::default();
        for line in document.lines() {
            if let Some(compiler) = line.strip_prefix(COMPILER) {
                compiler.trim_end_matches(':').clone_into(&mut counts.compiler);
            } else if let Some((name, count)) = row(line) {
                counts.cases.push((name.to_owned(), count));
            }
        }
        counts
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.cases.is_empty()
    }

    /// Formats the counts for a document.
    pub(super) fn table(&self) -> String {
        let mut text = format!("\n{COMPILER}{}:\n\n| | instructions |\n| --- | ---: |\n", self.compiler);
        for (name, count) in &self.cases {
            // Writing to a string cannot fail.
            let _infallible = writeln!(text, "| {name} | {count} |");
        }
        text + "\n"
    }

    /// Formats the counts of now and of before, for people.
    pub(super) fn beside(&self, before: &Self) -> String {
        let mut text = format!("{:<64} {:>8} {:>8}\n", "instructions", "before", "now");
        for (name, now) in &self.cases {
            let before = before.get(name).map_or("-".to_owned(), |before| before.to_string());
            let _infallible = writeln!(text, "{name:<64} {before:>8} {now:>8}");
        }
        text
    }

    /// Returns a warning if the counts cannot be compared closely.
    pub(super) fn warning(&self, before: &Self) -> Option<String> {
        (self.compiler != before.compiler).then(|| {
            format!(
                "warning: the recorded counts are from {}, but this is {}. Only an increase of more than \
                 {CROSS_COMPILER_LEEWAY} % is reported, because the compiler alone may cause {LEEWAY} %. To \
                 keep this compiler, run `cargo xtask instructions --write` on sources that are known to be \
                 good.",
                before.compiler, self.compiler
            )
        })
    }

    /// Lists counts that grew too much, are new, or are gone.
    pub(super) fn complaints(&self, before: &Self) -> Vec<String> {
        let leeway = if self.compiler == before.compiler { LEEWAY } else { CROSS_COMPILER_LEEWAY };
        let mut complaints = Vec::new();
        for (name, now) in &self.cases {
            match before.get(name) {
                None => complaints.push(format!("{name}: {now} instructions, but no count is recorded")),
                // One more is always allowed: it is more than some percent of a small count.
                Some(before) if *now > before + (before * leeway / 100).max(1) => {
                    let percent = (now - before) as f64 * 100.0 / before as f64;
                    complaints.push(format!(
                        "{name}: {now} instructions, {before} before: {percent:.1} % more, and {leeway} % \
                         is allowed"
                    ));
                }
                Some(_) => {}
            }
        }
        let gone = before.cases.iter().filter(|(name, _)| self.get(name).is_none());
        complaints.extend(gone.map(|(name, _)| format!("{name}: recorded, but no longer counted")));
        complaints
    }

    fn get(&self, name: &str) -> Option<u64> {
        self.cases.iter().find(|(other, _)| other == name).map(|(_, count)| *count)
    }
}

/// Returns the name and the count of a table's row.
fn row(line: &str) -> Option<(&str, u64)> {
    let (name, count) = line.strip_prefix("| ")?.strip_suffix(" |")?.rsplit_once(" | ")?;
    Some((name, count.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(compiler: &str, cases: &[(&str, u64)]) -> Counts {
        Counts::new(
            compiler.to_owned(),
            cases.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
        )
    }

    #[test]
    fn what_is_written_is_read_again() {
        let counts =
            counts("rustc 1.95.0 (59807616e 2026-04-14), x86_64", &[("parse, IPv4", 185), ("count", 9)]);
        let text = counts.table();
        assert!(text.contains("| parse, IPv4 | 185 |\n"), "{text}");
        assert_eq!(Counts::read(&text), counts);
    }

    #[test]
    fn three_percent_are_noise_and_more_is_reported() {
        let before = counts("a", &[("long", 1000), ("short", 10)]);
        assert_eq!(counts("a", &[("long", 1030), ("short", 11)]).complaints(&before), [""; 0]);
        assert_eq!(counts("a", &[("long", 500), ("short", 1)]).complaints(&before), [""; 0]);
        let complaints = counts("a", &[("long", 1031), ("short", 12)]).complaints(&before);
        assert_eq!(
            complaints,
            [
                "long: 1031 instructions, 1000 before: 3.1 % more, and 3 % is allowed",
                "short: 12 instructions, 10 before: 20.0 % more, and 3 % is allowed",
            ]
        );
    }

    #[test]
    fn gross_differences_are_reported_with_another_compiler() {
        let before = counts("a", &[("it", 100)]);
        let now = counts("b", &[("it", 125)]);
        assert!(now.warning(&before).is_some() && before.warning(&before).is_none());
        assert_eq!(now.complaints(&before), [""; 0]);
        assert_eq!(counts("b", &[("it", 126)]).complaints(&before).len(), 1);
    }

    #[test]
    fn new_and_missing_lines_are_reported() {
        let (before, now) = (counts("a", &[("old", 5)]), counts("a", &[("new", 5)]));
        assert_eq!(
            now.complaints(&before),
            ["new: 5 instructions, but no count is recorded", "old: recorded, but no longer counted"]
        );
        assert_eq!(now.complaints(&Counts::default()).len(), 1);
    }
}
