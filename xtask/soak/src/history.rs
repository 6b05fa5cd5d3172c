//! The history that each agent on the router writes.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::{findings::Findings, metrics::Page};

/// The directory of an agent's history.
pub(super) fn directory(workspace: &Path, agent: &str) -> PathBuf {
    workspace.join(format!("history-{agent}"))
}

/// Reads all files of the history, and returns its samples.
pub(super) fn samples(pping: &Path, directory: &Path) -> Result<u64> {
    let history = |arguments: &str| {
        let mut command = Command::new(pping);
        command.arg("history").args(arguments.split_whitespace()).arg("--history").arg(directory);
        pping_lab::run(&mut command)
    };
    history("check")?;
    let answer: Value = serde_json::from_str(&history("--json --from -2d --step 1m")?)?;
    let series = answer["series"].as_array().context("the history has no series")?;
    let cells = series.iter().filter_map(|series| series["cells"].as_array()).flatten();
    Ok(cells.filter_map(|cell| cell["rtt"]["count"].as_u64()).sum())
}

/// Compares the samples of a history with those of the last page of the same agent.
pub(super) fn compare(pping: &Path, directory: &Path, page: &Page, findings: &Findings) -> Result<u64> {
    let (kept, measured) = (samples(pping, directory)?, page.sum("pping_rtt_seconds_count", &[]));
    if kept != measured {
        findings.note(format!("history: {kept} samples are kept, and {measured} were measured"));
    }
    Ok(kept)
}
