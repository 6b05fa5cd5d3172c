//! `cargo xtask bench`: what pping costs, measured here.

mod against;
mod saved;
mod table;

use std::ffi::OsString;

use anyhow::Result;
use pping_chores::{
    build::{self, Profile},
    command, environment,
    setup::{self, Report, Scope},
};

/// The subject of a measurement.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Beside another revision of the repository, which is built as well: both are run in turn, and each line is compared
    #[arg(long, value_name = "REVISION")]
    against: Option<String>,
    /// How many turns each has
    #[arg(long, default_value_t = 5, requires = "against")]
    turns: usize,
    /// Keep the tables, and the figures of each round, in benches/runs/DATE-MACHINE
    #[arg(long, conflicts_with = "against")]
    save: bool,
    /// What the benchmarks are given
    #[arg(last = true, value_name = "BENCH ARGUMENTS")]
    given: Vec<OsString>,
}

/// Builds the benchmarks and runs them.
pub(super) fn run(Arguments { against, turns, save, given }: &Arguments) -> Result<()> {
    // The tests' tools include tshark, which is measured as well.
    setup::run(Scope { tests: true, ..Scope::default() }, Report::Changes)?;
    if let Some(revision) = against {
        return against::run(revision, *turns, given);
    }
    // The benchmarks run this program on captures.
    build::compile(Profile::Release)?;
    let mut bench = environment::cargo();
    bench.args(["run", "--release", "--package", "pping-benches", "--"]).args(given);
    if *save { saved::run(bench) } else { command::run(&mut bench) }
}
