//! `cargo xtask fuzz`: feeds arbitrary bytes, packets and captures to pping-fuzz, which checks what must always hold.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result};
use clap::{ValueEnum, builder::PossibleValue};
use pping_chores::{command, environment, setup};

/// Where the targets and their initial corpora are.
const DIRECTORY: &str = "pping/fuzz";

/// Sanitizers need a nightly compiler, and would find nothing in code without `unsafe`.
const BUILD: [&str; 6] = ["--fuzz-dir", DIRECTORY, "--sanitizer", "none", "--features", "libfuzzer"];

/// An input that exceeds one of these limits is a finding; no honest input does.
const LIMITS: [&str; 2] = ["-timeout=10", "-rss_limit_mb=512"];

/// Fewer inputs than these take less time than compiling an optimised build, which is some ten times as fast.
const WORTH_OPTIMISING: u32 = 200_000;

/// The seed of [`Extent::Runs`].
const SEED: u32 = 1;

/// What is fuzzed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Parse,
    Matching,
    Forged,
    Capture,
}

impl Target {
    fn name(self) -> &'static str {
        match self {
            Self::Parse => "parse",
            Self::Matching => "matching",
            Self::Forged => "forged",
            Self::Capture => "capture",
        }
    }

    fn help(self) -> &'static str {
        match self {
            Self::Parse => "The parser: any frame",
            Self::Matching => "The state machine: any packets of a few flows",
            Self::Forged => "What is forged beside a connection: any packets in the names of its ends",
            Self::Capture => "The reader of captures, and what measures them: any file",
        }
    }

    /// Bytes of the longest input.
    fn max_len(self) -> usize {
        match self {
            // As far into a frame as a header can be.
            Self::Parse => 32_768,
            Self::Matching | Self::Forged => 4_096,
            Self::Capture => 16_384,
        }
    }
}

impl ValueEnum for Target {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Parse, Self::Matching, Self::Forged, Self::Capture]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()).help(self.help()))
    }
}

/// How long a target is fuzzed.
#[derive(Clone, Copy)]
pub(crate) enum Extent {
    /// For this many seconds, from where the last run stopped.
    Seconds(u32),
    /// With this many inputs, always from the corpus and with the same seed, so that every run finds the same.
    Runs(u32),
}

/// Installs what is missing, then fuzzes each target, beginning with all inputs of its corpus.
pub(crate) fn run(target: Option<Target>, extent: Extent) -> Result<()> {
    setup::for_fuzzing()?;
    let all = Target::value_variants();
    all.iter()
        .filter(|each| target.is_none_or(|only| only == **each))
        .try_for_each(|each| fuzz(*each, extent))
}

fn fuzz(target: Target, extent: Extent) -> Result<()> {
    let seeds = environment::repository().join(DIRECTORY).join("corpus").join(target.name());
    let (found, build, limits) = match extent {
        Extent::Seconds(seconds) => (found(target)?, None, vec![format!("-max_total_time={seconds}")]),
        Extent::Runs(runs) => {
            let build = (runs < WORTH_OPTIMISING).then_some("--dev");
            (fresh(target)?, build, vec![format!("-runs={runs}"), format!("-seed={SEED}")])
        }
    };
    let mut cargo = environment::cargo();
    cargo
        .args(["fuzz", "run"])
        .args(BUILD)
        .args(build)
        .arg(target.name())
        .args([found, seeds])
        .arg("--")
        .args(LIMITS)
        .arg(format!("-max_len={}", target.max_len()))
        .args(limits)
        .args(["-verbosity=0", "-print_funcs=0", "-print_final_stats=1"]);
    // libFuzzer ends with a page of words that it has learnt.
    command::run_and_read(&mut cargo, |line| {
        if !line.contains("# Uses: ") {
            eprintln!("{line}");
        }
    })
}

/// Returns the directory of inputs that have come further than all before. The next run goes on from there.
fn found(target: Target) -> Result<PathBuf> {
    let directory = environment::target_directory().join("fuzz").join(target.name());
    fs::create_dir_all(&directory)
        .with_context(|| format!("could not create the directory {}", directory.display()))?;
    Ok(directory)
}

/// Returns an empty directory for inputs, so that a run does not depend on earlier ones.
fn fresh(target: Target) -> Result<PathBuf> {
    let directory = environment::target_directory().join("fuzz-fresh").join(target.name());
    if directory.exists() {
        fs::remove_dir_all(&directory)
            .with_context(|| format!("could not empty the directory {}", directory.display()))?;
    }
    fs::create_dir_all(&directory)
        .with_context(|| format!("could not create the directory {}", directory.display()))?;
    Ok(directory)
}
