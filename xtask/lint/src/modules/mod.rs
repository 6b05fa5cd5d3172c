//! `cargo xtask modules`: prints which module uses which, and fails if some use each other in a circle.

mod circles;
mod crate_graph;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};
use pping_chores::environment;

use self::crate_graph::CrateGraph;

/// The crates that people read from top to bottom.
const CRATES: [&str; 3] = ["pping-common", "pping-ebpf", "pping"];

/// The modules by name, each with the modules that it uses.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Prints the graph of each crate, by top-level modules or by files. Fails if files use each other in a circle.
pub(super) fn run(by_file: bool) -> Result<()> {
    let mut found = Vec::new();
    for name in CRATES {
        let files = CrateGraph::read(&environment::repository().join(name).join("src"))?.edges();
        eprintln!("{name}");
        for (module, used) in &if by_file { files.clone() } else { top_level(&files) } {
            let used: Vec<&str> = used.iter().map(String::as_str).collect();
            eprintln!(
                "  {module} -> {}",
                if used.is_empty() { "nothing".to_owned() } else { used.join(", ") }
            );
        }
        found.extend(
            circles::circles(&files).into_iter().map(|circle| format!("{name}: {}", circle.join(", "))),
        );
    }
    ensure!(found.is_empty(), "modules that depend on each other in a cycle:\n  {}", found.join("\n  "));
    Ok(())
}

/// Merges the files of each top-level module.
fn top_level(files: &Graph) -> Graph {
    let top = |module: &str| module.split("::").next().unwrap_or(module).to_owned();
    let mut graph = Graph::new();
    for (module, used) in files {
        let of_module = graph.entry(top(module)).or_default();
        of_module.extend(used.iter().map(|used| top(used)).filter(|used| *used != top(module)));
    }
    graph
}
