//! `cargo xtask bench`: what pping costs, measured here.

use std::ffi::OsString;

use anyhow::Result;

use crate::{
    build::{self, Profile},
    command, environment,
    setup::{self, Report, Scope},
};

/// Builds the benchmarks and runs them.
pub(crate) fn run(arguments: &[OsString]) -> Result<()> {
    // The tests' tools have tshark, which is measured as well.
    setup::run(Scope { tests: true, ..Scope::default() }, Report::Changes)?;
    // The program that a capture is given to.
    build::compile(Profile::Release)?;
    command::run(
        environment::cargo().args(["run", "--release", "--package", "pping-benches", "--"]).args(arguments),
    )
}
