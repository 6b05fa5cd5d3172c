//! Writes the tables in docs/lab/kernels.md: costs, and kernels.

use std::{fmt::Write as _, process::Command};

use anyhow::{Result, ensure};
use pping_chores::{arch::Arch, document};

use super::{console::Verdict, cost::Costs, line::Line, outcome::Outcome};

const KERNELS: &str = "docs/lab/kernels.md";
const COSTS_MARKER: &str = "costs";

/// Returns the marker of an architecture's table.
fn kernels_marker(arch: Arch) -> String {
    format!("kernels {}", arch.debian())
}

/// Compares the costs of the programs with those in the document.
pub(super) fn compare(costs: &Costs) -> Result<()> {
    if costs.is_empty() {
        return Ok(());
    }
    let before = document::read_section(KERNELS, COSTS_MARKER)?;
    let complaints = costs.complaints(&Costs::read(&before));
    ensure!(
        complaints.is_empty(),
        "{}\n(instructions that the verifier processes, and bytes; if that is intended, run `cargo xtask vm \
         --write`)",
        complaints.join("\n")
    );
    Ok(())
}

/// Writes the costs of the programs into the document. If not all were measured, the others stay.
pub(super) fn write_costs(costs: Costs, are_all: bool) -> Result<()> {
    let before =
        if are_all { Costs::default() } else { Costs::read(&document::read_section(KERNELS, COSTS_MARKER)?) };
    document::replace(KERNELS, COSTS_MARKER, &costs.over(before).tables())
}

/// Writes into the document which kernels of an architecture were tried, and the results. Other lines of kernels keep
/// their rows.
pub(super) fn write_kernels(arch: Arch, outcomes: &[Outcome]) -> Result<()> {
    let date = pping_lab::run(Command::new("date").args(["--utc", "+%F"]))?;
    let marker = kernels_marker(arch);
    let before = document::read_section(KERNELS, &marker)?;
    let rows: Vec<_> =
        outcomes.iter().map(|outcome| (outcome.line.name, row(outcome, date.trim()))).collect();
    document::replace(KERNELS, &marker, &kernels(&before, &rows))
}

/// Formats the table of kernels: the rows of a run, and those of the table before for the other lines.
fn kernels(before: &str, rows: &[(&str, String)]) -> String {
    let mut text =
        "\n| Linux | tried | on | at tc | idle flows are swept | tests passed | skipped | failed |\n\
                    | --- | --- | --- | --- | --- | ---: | ---: | ---: |\n"
            .to_owned();
    for line in Line::ALL {
        let new = rows.iter().find(|(name, _)| *name == line.name).map(|(_, row)| row.as_str());
        let old = || before.lines().find(|row| row.starts_with(&format!("| {line} |")));
        if let Some(row) = new.or_else(old) {
            // Writing to a string cannot fail.
            let _infallible = writeln!(text, "{row}");
        }
    }
    text + "\n"
}

/// Formats the row of a kernel.
fn row(outcome: &Outcome, date: &str) -> String {
    let line = outcome.line;
    // The failure has been printed, and may be too long for a table.
    let Ok(kernel) = &outcome.kernel else {
        return format!("| {line} | not fetched | {date} | - | - | - | - | - |");
    };
    let has = |feature| outcome.consoles().any(|it| it.features.get(feature).is_some_and(|it| it == "yes"));
    format!(
        "| {line} | {} | {date} | {} | {} | {} | {} | {} |",
        kernel.version,
        if has("tcx") { "TCX links" } else { "clsact filters" },
        if has("for-each") { "in the kernel" } else { "flow by flow" },
        outcome.count(|it| *it == Verdict::Passed),
        outcome.count(|it| matches!(it, Verdict::Skipped(_))),
        outcome.count(|it| *it == Verdict::Failed),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_did_not_run_keep_their_rows() {
        let before = "\n| Linux | tried |\n| --- | --- |\n| 6.1 | old |\n| 5.10 | older |\n| 2.4 | gone |\n";
        let rows = [("newest", "| newest | new |".to_owned()), ("6.1", "| 6.1 | new |".to_owned())];
        let table = kernels(before, &rows);
        let rows: Vec<_> = table.trim().lines().skip(2).collect();
        assert_eq!(rows, ["| 5.10 | older |", "| 6.1 | new |", "| newest | new |"]);
    }

    #[test]
    fn the_documents_have_their_markers() {
        document::read_section(KERNELS, COSTS_MARKER).expect("it has markers");
        for arch in Arch::ALL {
            document::read_section(KERNELS, &kernels_marker(arch)).expect("it has markers");
        }
    }
}
