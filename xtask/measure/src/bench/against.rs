//! Measures two revisions in turn. On a machine that others use too, only measurements taken side by side can be
//! compared.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use pping_chores::{command, environment};

use super::table::{Figures, Line, compare};

/// The directory below the target directory with the checkout and the build of the other revision.
const DIRECTORY: &str = "bench-against";

/// Builds both revisions, runs them in turn, and prints how each line of their tables has changed.
pub(super) fn run(revision: &str, turns: usize, arguments: &[OsString]) -> Result<()> {
    let directory = environment::target_directory().join(DIRECTORY);
    let (commit, other) = check_out(revision, &directory.join("repository"))?;
    let theirs = build(&other, Some(&directory.join("target")))?;
    let ours = build(environment::repository(), None)?;
    let (mut before, mut now) = (Figures::default(), Figures::default());
    for turn in 0..turns {
        eprintln!("turn {} of {turns}", turn + 1);
        // The first program of a turn may affect the second, so the order alternates.
        let mut both = [(&theirs, &mut before), (&ours, &mut now)];
        if turn % 2 == 1 {
            both.reverse();
        }
        for (program, figures) in both {
            figures.add(&measure(program, arguments)?);
        }
    }
    print(&commit, turns, &compare(&before, &now));
    Ok(())
}

/// Checks out a revision into a directory of its own. Returns the short commit id and the directory.
fn check_out(revision: &str, directory: &Path) -> Result<(String, PathBuf)> {
    let mut git = Command::new("git");
    let asked = git.current_dir(environment::repository()).args([
        "rev-parse",
        "--short",
        "--verify",
        "--end-of-options",
    ]);
    let answer = asked.arg(format!("{revision}^{{commit}}")).output().context("could not start git")?;
    ensure!(
        answer.status.success(),
        "--against {revision}: {}",
        String::from_utf8_lossy(&answer.stderr).trim()
    );
    let commit = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
    if directory.join(".git").exists() {
        command::run(
            Command::new("git").current_dir(directory).args(["checkout", "--quiet", "--detach", &commit]),
        )?;
    } else {
        let mut git = Command::new("git");
        git.current_dir(environment::repository()).args(["worktree", "prune"]);
        command::run(&mut git)?;
        let mut git = Command::new("git");
        git.current_dir(environment::repository()).args(["worktree", "add", "--quiet", "--detach"]);
        command::run(git.arg(directory).arg(&commit))?;
    }
    Ok((commit, directory.to_owned()))
}

/// Builds the benchmarks and the pping that they run. Returns the path of the benchmarks.
fn build(repository: &Path, target: Option<&Path>) -> Result<PathBuf> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(repository).args([
        "build",
        "--release",
        "--package",
        "pping-benches",
        "--package",
        "pping",
    ]);
    if let Some(target) = target {
        cargo.env("CARGO_TARGET_DIR", target);
    }
    command::run(&mut cargo)?;
    let target = target.map_or_else(environment::target_directory, Path::to_owned);
    Ok(target.join("release").join("pping-benches"))
}

/// Runs the benchmarks once, and returns what they print.
fn measure(program: &Path, arguments: &[OsString]) -> Result<String> {
    let mut bench = Command::new(program);
    bench.args(arguments);
    command::announce(&bench);
    let output = bench.output().with_context(|| format!("could not start {}", program.display()))?;
    let failure = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{} failed: {}", program.display(), failure.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[expect(clippy::print_stdout, reason = "the table is what was asked for")]
fn print(commit: &str, turns: usize, lines: &[Line]) {
    println!(
        "Medians of {turns} turns; the ratio is that of the medians, between those of the single turns.\n"
    );
    println!("{:<52} {commit:>8} {:>8} {:>6}  {:>11}", "", "now", "ratio", "of turns");
    for line in lines {
        println!("{line}");
    }
}
