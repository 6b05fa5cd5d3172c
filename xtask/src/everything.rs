//! `cargo xtask everything`: the checks that a release needs and CI has no time for.

use std::{
    fs,
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};

use crate::{arch::Arch, build, dist, environment, fuzz, lint, setup, soak, test, vm};

/// Notes when all parts last passed, and on which commit.
const PASSED: &str = "xtask/everything.txt";

/// How long each target is fuzzed, and how long the soak lasts.
const FUZZING_SECONDS: u32 = 600;
const SOAK: Duration = Duration::from_hours(1);

/// A part: its name and its function.
type Part = (&'static str, fn() -> Result<()>);

/// A processor with atomic instructions, which the usual one of the virtual machines does not have.
const ARM_WITH_ATOMICS: &str = "neoverse-n1";

const PARTS: [Part; 9] = [
    ("lint", lint::run),
    ("test", || test::run(None, &[], test::Extent::Exhaustive)),
    ("fuzz", || fuzz::run(None, fuzz::Extent::Seconds(FUZZING_SECONDS))),
    ("other kernels", || vm::run(&vm::Arguments::all(Arch::X86_64))),
    ("many CPUs", || vm::run(&vm::Arguments::many_cpus(Arch::X86_64))),
    ("other kernels on arm64", || vm::run(&vm::Arguments::all(Arch::Aarch64))),
    ("many CPUs on arm64", || {
        vm::run(&vm::Arguments::many_cpus(Arch::Aarch64))?;
        vm::run(&vm::Arguments::many_cpus_of(Arch::Aarch64, ARM_WITH_ATOMICS))
    }),
    ("soak", || soak::run(&build::run(build::Profile::Release)?, soak::Plan::new(SOAK))),
    ("packages", || dist::run(dist::Arguments { check: true, reproduce: true, ..Default::default() })),
];

/// Runs all parts, or only `from` and those after it. Once all have passed in one run, notes the commit.
pub(crate) fn run(from: Option<&str>) -> Result<()> {
    let first = match from {
        None => 0,
        Some(from) => PARTS.iter().position(|(name, _)| *name == from).with_context(|| {
            let names: Vec<_> = PARTS.iter().map(|(name, _)| *name).collect();
            format!("--from {from}: no part has this name; there are {}", names.join(", "))
        })?,
    };
    setup::run(setup::Scope { tests: true, lints: true }, setup::Report::Changes)?;
    let commit = clean_commit()?;
    let began = Instant::now();
    for (name, part) in &PARTS[first..] {
        eprintln!("\n==== {name} (at {} min)", began.elapsed().as_secs() / 60);
        part().with_context(|| format!("{name} failed; once it is fixed, continue with --from '{name}'"))?;
    }
    if first > 0 {
        eprintln!("passed from {} on; all parts in one run are noted in {PASSED}", PARTS[first].0);
        return Ok(());
    }
    let note =
        format!("{} {commit} {} min\n", git(&["log", "-1", "--format=%cs"])?, began.elapsed().as_secs() / 60);
    fs::write(file(), note).with_context(|| format!("cannot write {PASSED}"))
}

/// Says when all parts last passed, to decide on a release.
pub(crate) fn last_passed() -> String {
    let Ok(note) = fs::read_to_string(file()) else {
        return "`cargo xtask everything` has not passed yet: do not release this".to_owned();
    };
    let commit = note.split(' ').nth(1).unwrap_or_default();
    match git(&["rev-list", "--count", &format!("{commit}..HEAD")]) {
        Ok(count) => format!("`cargo xtask everything` last passed {count} commits ago: {}", note.trim_end()),
        Err(_) => {
            format!("`cargo xtask everything` last passed on an unknown commit: {}", note.trim_end())
        }
    }
}

fn file() -> PathBuf {
    environment::repository().join(PASSED)
}

/// Returns the commit that is checked out. Fails if anything is not committed, since the result would not be that of
/// the commit.
pub(crate) fn clean_commit() -> Result<String> {
    if !git(&["status", "--porcelain"])?.is_empty() {
        bail!("there are uncommitted changes; commit them first, because the result is that of a commit");
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(arguments: &[&str]) -> Result<String> {
    let mut git = Command::new("git");
    git.args(arguments).current_dir(environment::repository());
    Ok(pping_lab::run(&mut git)?.trim().to_owned())
}
