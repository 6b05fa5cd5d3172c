//! Checks words, links and citations: spelling, broken links, and comments or pages that name a file that does not
//! exist.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use pping_chores::{command, environment, setup};

/// Pages about the project's future, which readers of the repository do not have.
const PRIVATE_PAGES: [&str; 2] = ["MATCHING.md", "OUTPUT.md"];

/// Records of the past, which may name files that have moved since.
const HISTORICAL: [&str; 2] = ["benches/runs/", "CHANGELOG.md"];

/// Checks spelling, links and citations.
pub(super) fn check() -> Result<()> {
    let files = tracked()?;
    let repository = environment::repository();
    command::run(Command::new(setup::lint_program("typos")).current_dir(repository))?;
    let pages = files.iter().filter(|file| extension(file) == Some("md") && !is_historical(file));
    // A site cannot be asked without a network, and a page that disappears there is no fault of a change.
    command::run(
        Command::new(setup::lint_program("lychee"))
            .args(["--offline", "--include-fragments", "--no-progress", "--quiet", "--"])
            .args(pages)
            .current_dir(repository),
    )?;
    citations(&files)?;
    code_names(&files)
}

fn is_historical(file: &str) -> bool {
    HISTORICAL.iter().any(|path| file.starts_with(path))
}

fn extension(file: &str) -> Option<&str> {
    Path::new(file).extension().and_then(|extension| extension.to_str())
}

/// Returns the files that git knows.
fn tracked() -> Result<Vec<String>> {
    let mut git = Command::new("git");
    let names = command::output(git.args(["ls-files", "-z"]).current_dir(environment::repository()))?;
    Ok(names.split_terminator('\0').map(str::to_owned).collect())
}

/// Fails if a page or a comment names a file of the repository that does not exist. Comments are read in Rust, TOML,
/// Python, shell and YAML.
fn citations(files: &[String]) -> Result<()> {
    let known: BTreeSet<&str> = files.iter().map(String::as_str).collect();
    let mut wrong = Vec::new();
    for file in files.iter().filter(|file| !is_historical(file)) {
        let marker = match extension(file) {
            Some("md") => "",
            Some("rs") => "//",
            Some("toml" | "py" | "sh" | "yml") => "#",
            _ => continue,
        };
        let text = fs::read_to_string(environment::repository().join(file))
            .with_context(|| format!("cannot read {file}"))?;
        for (number, line) in text.lines().enumerate() {
            let Some(start) = line.find(marker) else { continue };
            for cited in cited(&line[start..]) {
                if !is_there(cited, file, &known) {
                    wrong.push(format!("{file}:{}: {cited} is not in the repository", number + 1));
                }
            }
        }
    }
    ensure!(wrong.is_empty(), "files that are named but do not exist:\n  {}", wrong.join("\n  "));
    Ok(())
}

/// Returns the names of Rust files and pages in a line.
fn cited(line: &str) -> impl Iterator<Item = &str> {
    let ends = |character: char| character.is_whitespace() || "()[]{}<>\"'`,;:|=".contains(character);
    line.split(ends)
        .map(|word| word.trim_end_matches(['.', '!', '?']).split('#').next().unwrap_or_default())
        .filter(|word| {
            let name = word.rsplit('/').next().unwrap_or(word);
            let stem = name.strip_suffix(".rs").or_else(|| name.strip_suffix(".md"));
            let is_name = stem.is_some_and(|stem| {
                !stem.is_empty() && stem.chars().all(|it| it.is_ascii_alphanumeric() || "_-".contains(it))
            });
            // Absolute paths, addresses and patterns do not name files of the repository.
            is_name && !word.starts_with(['/', '~', '$']) && !word.contains("//") && !word.contains('*')
        })
}

/// Fails if a page links a Rust file for a name that the file does not contain: `` `name` ([file](path)) ``.
fn code_names(files: &[String]) -> Result<()> {
    let mut wrong = Vec::new();
    for page in files.iter().filter(|file| extension(file) == Some("md") && !is_historical(file)) {
        let folder = environment::repository().join(page).parent().map(Path::to_owned).unwrap_or_default();
        let text = fs::read_to_string(environment::repository().join(page))?;
        for (name, path) in linked_names(&text.split_whitespace().collect::<Vec<_>>().join(" ")) {
            let code = fs::read_to_string(folder.join(path))
                .with_context(|| format!("{page} links {path} for `{name}`"))?;
            if code.split(|character| !is_of_identifier(character)).all(|word| word != name) {
                wrong.push(format!("{page}: {path} has no `{name}`"));
            }
        }
    }
    ensure!(wrong.is_empty(), "code that is named but does not exist:\n  {}", wrong.join("\n  "));
    Ok(())
}

/// Returns the last part of each name that a link to a Rust file follows, and the file.
fn linked_names(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.match_indices("` ([").filter_map(|(end, _)| {
        let code = text[..end].rsplit('`').next()?;
        let path = text[end..].split_once("](")?.1.split(')').next()?;
        let path = path.split('#').next().filter(|path| extension(path) == Some("rs"))?;
        let name = code.rsplit("::").next().filter(|name| name.chars().all(is_of_identifier))?;
        Some((name, path))
    })
}

fn is_of_identifier(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Whether a cited file exists: from the root, from the citing file, or as the end of a path.
fn is_there(cited: &str, file: &str, known: &BTreeSet<&str>) -> bool {
    if PRIVATE_PAGES.iter().any(|name| cited.ends_with(name)) {
        return false;
    }
    let cited = cited.trim_start_matches("../").trim_start_matches("./");
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    let beside = folder.join(cited);
    known.contains(cited)
        || beside.to_str().is_some_and(|beside| known.contains(beside))
        || known.iter().any(|known| known.strip_suffix(cited).is_some_and(|rest| rest.ends_with('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_found_in_sentences() {
        let line =
            "// See docs/methods.md#tcp-ts, `parse/mod.rs` and (kernel.rs); not *.md, /etc/a.md or README.";
        assert_eq!(cited(line).collect::<Vec<_>>(), ["docs/methods.md", "parse/mod.rs", "kernel.rs"]);
    }

    #[test]
    fn the_name_before_a_link_is_found() {
        let text = "Then `a`, `Flow::step` ([step.rs](../flow/step.rs)), and `b` ([page](page.md)).";
        assert_eq!(linked_names(text).collect::<Vec<_>>(), [("step", "../flow/step.rs")]);
    }

    #[test]
    fn a_file_is_found_from_root_or_neighbour_or_by_its_end() {
        let known = BTreeSet::from(["docs/methods.md", "pping-common/src/parse/mod.rs"]);
        for (cited, is_known) in [
            ("docs/methods.md", true),
            ("methods.md", true),
            ("../docs/methods.md", true),
            ("parse/mod.rs", true),
            ("arse/mod.rs", false),
            ("docs/MATCHING.md", false),
        ] {
            assert_eq!(is_there(cited, "docs/lab/kernels.md", &known), is_known, "{cited}");
        }
    }
}
