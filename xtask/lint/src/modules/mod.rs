//! `cargo xtask modules`: prints which module uses which, and fails if some use each other in a cycle.

mod crate_graph;
mod cycles;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};
use pping_chores::environment;

use self::crate_graph::CrateGraph;

/// The crates that people read from top to bottom.
const CRATES: [&str; 3] = ["pping-common", "pping-ebpf", "pping"];

/// The name of a crate's root.
const ROOT: &str = "lib";

/// The modules by name, each with the modules that it uses.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Prints the graph of each crate, by top-level modules or by files. Fails if files or folders use each other in a cycle.
pub(super) fn run(by_file: bool) -> Result<()> {
    let mut found = Vec::new();
    for name in CRATES {
        let read = CrateGraph::read(&environment::repository().join(name).join("src"))?;
        let files = read.edges();
        eprintln!("{name}");
        for (module, used) in &if by_file { files.clone() } else { top_level(&files) } {
            let used: Vec<&str> = used.iter().map(String::as_str).collect();
            eprintln!(
                "  {module} -> {}",
                if used.is_empty() { "nothing".to_owned() } else { used.join(", ") }
            );
        }
        found.extend(cycles::cycles(&files).into_iter().map(|cycle| format!("{name}: {}", cycle.join(", "))));
        for (folder, siblings) in folders(&read.paths()) {
            let cycles = cycles::cycles(&siblings).into_iter();
            found.extend(cycles.map(|cycle| format!("{name}, in `{folder}`: {}", cycle.join(", "))));
        }
    }
    ensure!(found.is_empty(), "modules that depend on each other in a cycle:\n  {}", found.join("\n  "));
    Ok(())
}

/// Returns for each folder which of its files and folders use which others. The root has no name.
fn folders(paths: &Graph) -> BTreeMap<String, Graph> {
    let mut folders: BTreeMap<String, Graph> = BTreeMap::new();
    for (module, used) in paths {
        let from: Vec<&str> = module.split("::").collect();
        for used in used {
            let to: Vec<&str> = used.split("::").collect();
            let common = from.iter().zip(&to).take_while(|(from, to)| from == to).count();
            // A folder uses what it contains, and its contents may use what it defines: that is no cycle.
            let (Some(room), Some(other)) = (from.get(common), to.get(common)) else { continue };
            if *room != ROOT && *other != ROOT {
                let siblings = folders.entry(from[..common].join("::")).or_default();
                siblings.entry((*room).to_owned()).or_default().insert((*other).to_owned());
            }
        }
    }
    folders
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the graph with these modules, each with those that it uses.
    pub(super) fn graph(edges: &[(&str, &[&str])]) -> Graph {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        edges.iter().map(|(module, used)| ((*module).to_owned(), owned(used))).collect()
    }

    #[test]
    fn files_of_a_folder_count_for_it_beside_others() {
        let paths = graph(&[
            ("lib", &["a", "b"]),
            ("a", &["a::one", "lib"]),
            ("a::one", &["a", "a::two", "b::three"]),
            ("b::three", &["a"]),
        ]);
        let folders = folders(&paths);
        assert_eq!(folders.keys().collect::<Vec<_>>(), ["", "a"]);
        assert_eq!(folders[""], graph(&[("a", &["b"]), ("b", &["a"])]));
        assert_eq!(folders["a"], graph(&[("one", &["two"])]));
    }
}
