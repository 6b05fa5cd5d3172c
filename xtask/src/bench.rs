//! `cargo xtask bench`: what pping costs, measured here.

use std::ffi::OsString;

use anyhow::Result;

use crate::{
    command, environment,
    setup::{self, Report, Scope},
};

/// Builds the benchmarks and runs them.
pub(crate) fn run(arguments: &[OsString]) -> Result<()> {
    setup::run(Scope::default(), Report::Changes)?;
    command::run(
        environment::cargo().args(["run", "--release", "--package", "pping-benches", "--"]).args(arguments),
    )
}
