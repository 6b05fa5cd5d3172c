//! Writes the tables in docs/kernels.md: costs, and kernels.

use std::{fmt::Write as _, process::Command};

use anyhow::{Result, ensure};

use super::{console::Verdict, cost::Costs, outcome::Outcome};
use crate::{arch::Arch, document};

const KERNELS: &str = "docs/kernels.md";
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

/// Writes the costs of the programs into the document.
pub(super) fn write_costs(costs: &Costs) -> Result<()> {
    document::replace(KERNELS, COSTS_MARKER, &costs.tables())
}

/// Writes into the document which kernels of an architecture were tried, and the results.
pub(super) fn write_kernels(arch: Arch, outcomes: &[Outcome]) -> Result<()> {
    let date = pping_lab::run(Command::new("date").args(["--utc", "+%F"]))?;
    document::replace(KERNELS, &kernels_marker(arch), &kernels(outcomes, date.trim()))
}

/// Formats the table of kernels and their results.
fn kernels(outcomes: &[Outcome], date: &str) -> String {
    let mut text = format!(
        "\n| Linux | tried on {date} | at tc | idle flows are swept | tests passed | skipped | failed |\n\
         | --- | --- | --- | --- | ---: | ---: | ---: |\n"
    );
    for outcome in outcomes {
        let line = outcome.line;
        let row = match &outcome.kernel {
            // The failure has been printed, and may be too long for a table.
            Err(_) => format!("| {line} | not fetched | - | - | - | - | - |"),
            Ok(kernel) => {
                let has = |feature| {
                    outcome.consoles().any(|it| it.features.get(feature).is_some_and(|it| it == "yes"))
                };
                format!(
                    "| {line} | {} | {} | {} | {} | {} | {} |",
                    kernel.version,
                    if has("tcx") { "TCX links" } else { "clsact filters" },
                    if has("for-each") { "in the kernel" } else { "flow by flow" },
                    outcome.count(|it| *it == Verdict::Passed),
                    outcome.count(|it| matches!(it, Verdict::Skipped(_))),
                    outcome.count(|it| *it == Verdict::Failed),
                )
            }
        };
        // Writing to a string cannot fail.
        let _infallible = writeln!(text, "{row}");
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documents_have_their_markers() {
        document::read_section(KERNELS, COSTS_MARKER).expect("it has markers");
        for arch in Arch::ALL {
            document::read_section(KERNELS, &kernels_marker(arch)).expect("it has markers");
        }
    }
}
