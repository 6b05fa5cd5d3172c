//! The payload of a machine: pping and the tests.

use std::{num::NonZeroU8, path::PathBuf, process::Command};

use anyhow::{Context as _, Result};
use pping_chores::{arch::Arch, build, command, environment};
use pping_cross::Cross;

/// Prefix of the names of tests for several CPUs.
const CPUS: &str = "cpus::";

/// The class of tests that a machine runs. The classes need different clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TestClass {
    /// Tests that keep the verifier busy, and do not depend on time.
    Programs,
    /// All other tests.
    Times,
}

impl TestClass {
    pub(super) const ALL: [Self; 2] = [Self::Programs, Self::Times];

    /// The name of the class in file names.
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

/// The programs. For this machine's processor they are those that cargo builds for any test, so that nothing is
/// compiled twice, and the image includes the libraries that they are linked to. For another processor they are static.
pub(super) struct Payload {
    pub(super) arch: Arch,
    pub(super) tests: PathBuf,
    pub(super) pping: PathBuf,
    /// The compiler, if the processor is another one.
    cross: Option<Cross>,
}

impl Payload {
    /// Builds both programs.
    pub(super) fn build(arch: Arch) -> Result<Self> {
        let cross = if arch == Arch::of_host()? { None } else { Some(Cross::prepare(arch)?) };
        let mut cargo = match &cross {
            None => {
                let mut cargo = environment::cargo();
                cargo.arg("test").args(build::TESTED);
                cargo
            }
            Some(cross) => {
                let mut cargo = cross.cargo("");
                cargo.args(["test", "--package", "pping"]).args(cross.target());
                cargo
            }
        };
        cargo.args(["--test", "vm", "--no-run", "--color", "never"]);
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
        let built = match &cross {
            None => environment::target_directory().join("debug"),
            Some(cross) => {
                cross.ensure_static(&tests)?;
                cross.built("debug")
            }
        };
        Ok(Self { arch, tests, pping: built.join("pping"), cross })
    }

    /// Returns the tests of a class whose names contain one of the filters, or all if there are none. With several
    /// CPUs, tests that need the clock of a machine with one CPU are left out. Tests for several CPUs report by
    /// themselves if one CPU is not enough.
    pub(super) fn list(&self, class: TestClass, cpus: NonZeroU8, filters: &[String]) -> Result<Vec<String>> {
        let mut tests = match &self.cross {
            None => Command::new(&self.tests),
            Some(cross) => cross.emulated(&self.tests),
        };
        let list = pping_lab::run(tests.args(["--list", "--format", "terse"]).args(filters))?;
        let names = list.lines().filter_map(|line| line.strip_suffix(": test"));
        let can_run = |name: &&str| cpus.get() == 1 || class == TestClass::Programs || name.starts_with(CPUS);
        Ok(names.filter(|name| TestClass::of(name) == class).filter(can_run).map(str::to_owned).collect())
    }
}
