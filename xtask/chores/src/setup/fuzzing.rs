//! What fuzzing needs beside Rust: libFuzzer is written in C++.

use std::io;

use anyhow::{Context as _, Result, ensure};

use super::Missing;
use crate::{command, environment};

const COMPILER: Missing = Missing {
    what: "a C++ compiler",
    packages: &["g++"],
    elsewhere: "the package your distribution has `c++` in",
};

const CARGO_FUZZ_INSTALL: [&str; 5] = ["install", "cargo-fuzz", "--version", "0.13.2", "--locked"];

/// Returns the missing tools, with their packages.
pub(super) fn missing() -> Vec<Missing> {
    if environment::find_program("c++").is_some() { Vec::new() } else { vec![COMPILER] }
}

/// Builds cargo-fuzz, unless it is there.
pub(super) fn complete() -> Result<()> {
    if has_cargo_fuzz() {
        return Ok(());
    }
    command::run(environment::cargo().args(CARGO_FUZZ_INSTALL).stdout(io::stderr()))
        .context("could not install cargo-fuzz")?;
    ensure!(has_cargo_fuzz(), "cargo-fuzz was installed but does not run");
    Ok(())
}

fn has_cargo_fuzz() -> bool {
    command::succeeds(environment::cargo().args(["fuzz", "--version"]))
}
