//! What is tested, and the tests.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::{command, environment};

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
        cargo.args(["test", "--package", "pping", "--test", "vm", "--no-run", "--color", "never"]);
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
}
