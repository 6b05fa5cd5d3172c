//! `cargo xtask everything`: the checks that a release needs and CI has no time for.

use std::time::Instant;

use anyhow::{Context as _, Result};
use pping_chores::{
    arch::Arch,
    chore::{DIST, LINT, SOAK, VM},
    passed, setup,
};

use crate::{fuzz, test};

/// How long each target is fuzzed.
const FUZZING_SECONDS: u32 = 600;

/// A part: its name and its function.
type Part = (&'static str, fn() -> Result<()>);

/// Tests of several CPUs, in full: on the oldest kernel, which has other locks, and on a recent one. With eight CPUs,
/// packets of one flow meet on different CPUs all the time.
const MANY_CPUS: [&str; 6] = ["--kernel", "5.10,6.18", "--cpus", "8", "cpus::", "programs::the_least"];

/// A moment of each on a processor with atomic instructions, which the usual one of the virtual machines does not have.
const MANY_CPUS_WITH_ATOMICS: [&str; 7] =
    ["--kernel", "5.10,6.18", "--cpus", "8", "--cpu", "neoverse-n1", "cpus::a_moment"];

const PARTS: [Part; 9] = [
    ("lint", || LINT.run(&[])),
    ("test", || test::run(None, &[], test::Extent::Exhaustive)),
    ("fuzz", || fuzz::run(None, fuzz::Extent::Seconds(FUZZING_SECONDS))),
    ("other kernels", || on_kernels(Arch::X86_64, &[])),
    ("many CPUs", || on_kernels(Arch::X86_64, &MANY_CPUS)),
    ("other kernels on arm64", || on_kernels(Arch::Aarch64, &[])),
    ("many CPUs on arm64", || {
        on_kernels(Arch::Aarch64, &MANY_CPUS)?;
        on_kernels(Arch::Aarch64, &MANY_CPUS_WITH_ATOMICS)
    }),
    ("soak", || SOAK.run(&["--for", "1h"])),
    ("packages", || DIST.run(&["--check", "--reproduce"])),
];

/// Runs tests in virtual machines of an architecture.
fn on_kernels(arch: Arch, arguments: &[&str]) -> Result<()> {
    VM.run(&[&["--arch", arch.debian(), "--patience", "1h"], arguments].concat())
}

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
    let commit = passed::clean_commit()?;
    let began = Instant::now();
    for (name, part) in &PARTS[first..] {
        eprintln!("\n==== {name} (at {} min)", began.elapsed().as_secs() / 60);
        part().with_context(|| format!("{name} failed; once it is fixed, continue with --from '{name}'"))?;
    }
    if first > 0 {
        eprintln!("passed from {} on; all parts in one run are noted in {}", PARTS[first].0, passed::FILE);
        return Ok(());
    }
    passed::note(&commit, began.elapsed())
}
