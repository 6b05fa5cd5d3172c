//! The verifier's work for each program and the size of the program, kernel by kernel, as in `docs/lab/kernels.md`.

use std::{collections::BTreeMap, fmt::Write as _};

use super::{console::Verified, outcome::Outcome};

/// A quarter of what kernels allow.
const BUDGET: u32 = 250_000;

/// How much a program may grow before CI fails, in percent.
const LEEWAY: u64 = 10;

/// Prefix of what the guest loads to check that two features work together, and the row with the most that any pair
/// takes.
const PAIR: &str = "pair:";
const PAIRS_ROW: &str = "pairs";

/// The tables: their headings, and the programs of each, whose costs hardly differ.
const TABLES: [(&str, &[&str]); 13] = [
    ("tc", &["pping_ingress", "pping_egress"]),
    ("tc, slow", &["pping_tc_slow"]),
    ("tc, copies", &["pping_tc_copies"]),
    ("tc, step", &["pping_tc_step4", "pping_tc_step6"]),
    ("tc, report", &["pping_tc_report4", "pping_tc_report6"]),
    ("tc, networks", &["pping_tc_networks4", "pping_tc_networks6"]),
    ("XDP", &["pping_xdp"]),
    ("XDP, slow", &["pping_xdp_slow"]),
    ("XDP, copies", &["pping_xdp_copies"]),
    ("XDP, step", &["pping_xdp_step4", "pping_xdp_step6"]),
    ("XDP, report", &["pping_xdp_report4", "pping_xdp_report6"]),
    ("XDP, networks", &["pping_xdp_networks4", "pping_xdp_networks6"]),
    ("sweep", &["pping_sweep", "pping_sweep_one"]),
];

/// The cost of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cost {
    /// `None` if the kernel does not report them.
    instructions: Option<u32>,
    bytes: u32,
}

impl Cost {
    fn most(self, other: Self) -> Self {
        Self { instructions: self.instructions.max(other.instructions), bytes: self.bytes.max(other.bytes) }
    }

    fn has_outgrown(self, before: Self) -> bool {
        let outgrows = |now: u32, before: u32| u64::from(now) * 100 > u64::from(before) * (100 + LEEWAY);
        let instructions = self.instructions.zip(before.instructions);
        instructions.is_some_and(|(now, before)| outgrows(now, before)) || outgrows(self.bytes, before.bytes)
    }

    fn text(self) -> String {
        let instructions = self.instructions.map_or("-".to_owned(), thousands);
        format!("{instructions} · {}", thousands(self.bytes))
    }

    fn read(text: &str) -> Option<Self> {
        let (instructions, bytes) = text.split_once(" · ")?;
        let number = |text: &str| text.replace(',', "").parse().ok();
        Some(Self { instructions: number(instructions), bytes: number(bytes)? })
    }
}

/// A program, the features with which it was loaded, and the line of kernels.
type CostKey = (String, String, String);

/// All costs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Costs {
    of: BTreeMap<CostKey, Cost>,
    /// In the order in which they were met, since neither is in alphabetical order.
    rows: Vec<String>,
    lines: Vec<String>,
}

impl Costs {
    /// Collects what the guests reported.
    pub(super) fn found(outcomes: &[Outcome]) -> Self {
        let mut costs = Self::default();
        for outcome in outcomes {
            for verified in outcome.consoles().flat_map(|console| &console.verified) {
                costs.add(outcome.line.name, verified);
            }
        }
        costs
    }

    /// Reads the costs of a document.
    pub(super) fn read(document: &str) -> Self {
        let (mut costs, mut program, mut lines) = (Self::default(), String::new(), Vec::new());
        for line in document.lines() {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            if let Some(heading) = line.strip_prefix("### ") {
                heading.clone_into(&mut program);
            } else if cells[0] == "loaded with" {
                lines = cells[1..].iter().map(ToString::to_string).collect();
            } else {
                for (line, cost) in lines.iter().zip(&cells[1..]) {
                    if let Some(cost) = Cost::read(cost) {
                        costs.note(&program, cells[0], line, cost);
                    }
                }
            }
        }
        costs
    }

    /// Returns these costs and, where they have none, those before.
    pub(super) fn over(self, mut before: Self) -> Self {
        add_new(&mut before.rows, self.rows);
        add_new(&mut before.lines, self.lines);
        before.of.extend(self.of);
        before
    }

    pub(super) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// Lists costs that exceed the budget, are new, or have grown too much.
    pub(super) fn complaints(&self, before: &Self) -> Vec<String> {
        let mut complaints = Vec::new();
        for (key, cost) in &self.of {
            let (program, features, line) = key;
            let what = format!("{line}: {program} with {features} takes {}", cost.text());
            if cost.instructions.is_some_and(|count| count > BUDGET) {
                complaints.push(format!("{what}; at most {} instructions are allowed", thousands(BUDGET)));
            }
            match before.of.get(key) {
                None => complaints.push(format!("{what}, which docs/lab/kernels.md does not list")),
                Some(before) if cost.has_outgrown(*before) => {
                    complaints.push(format!("{what}, more than {LEEWAY} % above {}", before.text()));
                }
                Some(_) => {}
            }
        }
        complaints
    }

    /// Formats the tables, one for each program.
    pub(super) fn tables(&self) -> String {
        let mut text = String::new();
        // The rows are in the order in which tests ended.
        let mut rows = self.rows.clone();
        rows.sort_by_key(|row| row != "default");
        for (program, _) in TABLES {
            // Writing to a string cannot fail.
            let _infallible =
                writeln!(text, "\n### {program}\n\n| loaded with | {} |", self.lines.join(" | "));
            let _infallible = writeln!(text, "| --- |{}", " ---: |".repeat(self.lines.len()));
            for row in &rows {
                let cell = |line: &String| {
                    let key = (program.to_owned(), row.clone(), line.clone());
                    self.of.get(&key).map_or("-".to_owned(), |cost| cost.text())
                };
                let cells: Vec<String> = self.lines.iter().map(cell).collect();
                let _infallible = writeln!(text, "| {row} | {} |", cells.join(" | "));
            }
        }
        text + "\n"
    }

    fn add(&mut self, line: &str, verified: &Verified) {
        let is_of = |(_, programs): &&(&str, &[&str])| programs.contains(&&*verified.program);
        // A program without a table is reported, because no document has it.
        let program = TABLES.iter().find(is_of).map_or(&*verified.program, |(program, _)| program);
        let row = if verified.features.starts_with(PAIR) { PAIRS_ROW } else { &verified.features };
        self.note(program, row, line, Cost { instructions: verified.instructions, bytes: verified.bytes });
    }

    fn note(&mut self, program: &str, row: &str, line: &str, cost: Cost) {
        add_new(&mut self.rows, [row.to_owned()]);
        add_new(&mut self.lines, [line.to_owned()]);
        let noted = self.of.entry((program.to_owned(), row.to_owned(), line.to_owned())).or_default();
        *noted = noted.most(cost);
    }
}

/// Adds the names that are not there yet.
fn add_new(names: &mut Vec<String>, new: impl IntoIterator<Item = String>) {
    for name in new {
        if !names.contains(&name) {
            names.push(name);
        }
    }
}

/// A number with a comma before every third digit.
fn thousands(number: u32) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verified(program: &str, features: &str, instructions: Option<u32>, bytes: u32) -> Verified {
        Verified { program: program.to_owned(), features: features.to_owned(), instructions, bytes }
    }

    fn costs(instructions: u32) -> Costs {
        let mut costs = Costs::default();
        costs.add("5.10", &verified("pping_ingress", "default", None, 70_000));
        costs.add("6.1", &verified("pping_ingress", "default", Some(instructions), 70_000));
        costs.add("6.1", &verified("pping_egress", "default", Some(100), 70_016));
        costs.add("6.1", &verified("pping_sweep_one", "pair:a=1", Some(5), 9_000));
        costs.add("6.1", &verified("pping_sweep", "pair:a=2", Some(7), 8_000));
        costs
    }

    #[test]
    fn what_is_written_is_read_again() {
        let costs = costs(115_502);
        let text = costs.tables();
        assert!(text.contains("| default | - · 70,000 | 115,502 · 70,016 |"), "{text}");
        assert!(text.contains("| pairs | - | 7 · 9,000 |"), "{text}");
        assert_eq!(Costs::read(&text), costs);
    }

    #[test]
    fn what_was_not_tried_keeps_its_costs() {
        let mut found = Costs::default();
        found.add("7.3", &verified("pping_ingress", "default", Some(3), 8));
        found.add("6.1", &verified("pping_ingress", "default", Some(1), 8));
        let text = found.over(costs(100_000)).tables();
        assert!(text.contains("| loaded with | 5.10 | 6.1 | 7.3 |"), "{text}");
        assert!(text.contains("| default | - · 70,000 | 1 · 8 | 3 · 8 |"), "{text}");
        assert!(text.contains("| pairs | - | 7 · 9,000 | - |"), "{text}");
    }

    #[test]
    fn growth_and_new_findings_are_reported() {
        assert_eq!(costs(110_000).complaints(&costs(100_000)), [""; 0]);
        let complaints = costs(110_001).complaints(&costs(100_000));
        assert!(complaints.len() == 1 && complaints[0].contains("more than 10 %"), "{complaints:?}");
        let complaints = costs(250_001).complaints(&costs(250_001));
        assert!(complaints.len() == 1 && complaints[0].contains("250,000"), "{complaints:?}");
        assert_eq!(costs(1).complaints(&Costs::default()).len(), 3);
        let mut more = costs(100_000);
        more.add("6.1", &verified("pping_new", "default", Some(1), 8));
        let complaints = more.complaints(&costs(100_000));
        assert!(complaints.len() == 1 && complaints[0].contains("pping_new"), "{complaints:?}");
    }
}
