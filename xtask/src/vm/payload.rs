//! The payload of a machine: pping and the tests.

use std::{num::NonZeroU8, path::PathBuf, process::Command};

use anyhow::{Context as _, Result};

use crate::{command, environment, test};

/// How the names of tests of several CPUs begin.
const CPUS: &str = "cpus::";

/// What a machine is booted for: not all tests want the same clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Those that keep the verifier busy, and do not care what time it is.
    Programs,
    /// All others.
    Times,
}

impl Part {
    pub(super) const ALL: [Self; 2] = [Self::Programs, Self::Times];

    /// The name in files.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Programs => "programs",
            Self::Times => "times",
        }
    }

    fn of(test: &str) -> Self {
        if test.starts_with("programs::") { Self::Programs } else { Self::Times }
    }
}

/// Programs as cargo builds them for any test, so that what was compiled for those is not compiled again. The libraries
/// that they are linked to come along.
pub(super) struct Payload {
    pub(super) tests: PathBuf,
    pub(super) pping: PathBuf,
}

impl Payload {
    /// Builds both.
    pub(super) fn build() -> Result<Self> {
        let mut cargo = environment::cargo();
        cargo.arg("test").args(test::PACKAGES).args(["--test", "vm", "--no-run", "--color", "never"]);
        let mut tests = None;
        command::run_and_read(&mut cargo, |line| {
            // `Executable tests/vm/main.rs (target/debug/deps/vm-0123456789abcdef)`
            let path = line.trim_start().strip_prefix("Executable ").and_then(|rest| rest.split_once(" ("));
            if let Some((_, path)) = path {
                tests = Some(environment::repository().join(path.trim_end_matches(')')));
            } else {
                eprintln!("{line}");
            }
        })?;
        let tests = tests.context("cargo does not say where it put the tests")?;
        Ok(Self { tests, pping: environment::target_directory().join("debug/pping") })
    }

    /// The tests of a part whose names contain one of these words; all, if there are none. Those that need the clock of a
    /// machine with one CPU are left out on several; those of several CPUs say themselves that one is not enough.
    pub(super) fn list(&self, part: Part, cpus: NonZeroU8, filters: &[String]) -> Result<Vec<String>> {
        let list =
            pping_lab::run(Command::new(&self.tests).args(["--list", "--format", "terse"]).args(filters))?;
        let names = list.lines().filter_map(|line| line.strip_suffix(": test"));
        let can_run = |name: &&str| cpus.get() == 1 || part == Part::Programs || name.starts_with(CPUS);
        Ok(names.filter(|name| Part::of(name) == part).filter(can_run).map(str::to_owned).collect())
    }
}
