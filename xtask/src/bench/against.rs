//! Two revisions, measured in turn: on a machine that others use too only what was measured side by side can be compared.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

use super::table::{Figures, Line, compare};
use crate::{command, environment};

/// Where the other revision is checked out, and what is built of it, below the target directory.
const DIRECTORY: &str = "bench-against";

/// Builds both, has them run in turn, and prints what each line of their tables has become.
pub(super) fn run(revision: &str, turns: usize, arguments: &[OsString]) -> Result<()> {
    let directory = environment::target_directory().join(DIRECTORY);
    let (commit, other) = check_out(revision, &directory.join("repository"))?;
    let theirs = build(&other, Some(&directory.join("target")))?;
    let ours = build(environment::repository(), None)?;
    let (mut before, mut now) = (Figures::default(), Figures::default());
    for turn in 0..turns {
        eprintln!("turn {} of {turns}", turn + 1);
        // The second of two finds the machine as the first left it, so the order alternates.
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

/// Has a revision in a directory of its own, and returns its short name and where it is.
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

/// Builds the benchmarks, and the program that they run, and returns where the benchmarks are.
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
