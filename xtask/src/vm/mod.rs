//! `cargo xtask vm`: the tests of `pping/tests/vm` on other kernels, each in virtual machines.
//!
//! Debian's kernels are fetched, not installed. They boot under emulation, which needs no help of the processor: a start
//! takes some seconds.

mod boot;
mod console;
mod cost;
mod document;
mod image;
mod index;
mod kernel;
mod line;
mod machines;
mod outcome;
mod payload;

use std::{env::consts::ARCH, fs, num::NonZeroUsize, thread, time::Duration};

use anyhow::{Result, ensure};
use pping_lab::Interrupt;

use self::{
    cost::Costs,
    kernel::Kernel,
    line::Line,
    machines::Machines,
    outcome::Outcome,
    payload::{Part, Payload},
};
use crate::{environment, setup, soak};

/// The request.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only these lines of kernels, the newest of each: `5.10,6.1`, `newest`, `all`
    #[arg(long, value_name = "LINES", value_delimiter = ',', default_value = "all")]
    kernel: Vec<String>,
    /// Machines side by side [default: as many as there are cores]
    #[arg(long, value_name = "NUMBER")]
    jobs: Option<NonZeroUsize>,
    /// For how long one may run
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = soak::duration)]
    patience: Duration,
    /// Write what programs cost into docs/kernels.md and, after a run of all kernels and all tests, their results
    #[arg(long)]
    write: bool,
    /// Only the tests whose names contain one of these
    #[arg(value_name = "TEST")]
    filters: Vec<String>,
}

impl Arguments {
    /// All tests on all kernels.
    pub(crate) fn all() -> Self {
        Self {
            kernel: vec!["all".to_owned()],
            jobs: None,
            patience: Duration::from_hours(1),
            write: false,
            filters: Vec::new(),
        }
    }
}

/// Runs the tests on every kernel that is asked for, and fails unless all of them passed on all.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    ensure!(ARCH == "x86_64", "the virtual machines are PCs, and so are the tests in them: this is {ARCH}");
    let lines = Line::named(&arguments.kernel)?;
    setup::for_machines()?;
    let directory = environment::target_directory().join("vm");
    fs::create_dir_all(&directory)?;
    let interrupt = Interrupt::catch()?;
    let (kernels, payload) = thread::scope(|scope| {
        let kernels = scope.spawn(|| -> Vec<_> {
            lines.iter().map(|line| (*line, Kernel::get(*line, &directory))).collect()
        });
        let payload = Payload::build();
        let kernels = kernels.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload));
        payload.map(|payload| (kernels, payload))
    })?;
    let mut tests = Vec::new();
    for part in Part::ALL {
        tests.push((part, payload.list(part, &arguments.filters)?));
    }
    tests.retain(|(_, names)| !names.is_empty());
    ensure!(!tests.is_empty(), "no test has {} in its name", arguments.filters.join(" or "));

    let jobs = arguments.jobs.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let machines = Machines::new(&directory, &payload, &tests, arguments.patience, &interrupt)?;
    let outcomes = machines.run(kernels, jobs);
    let names: Vec<String> = tests.into_iter().flat_map(|(_, names)| names).collect();
    for complaint in outcomes.iter().filter_map(Outcome::complaint) {
        eprintln!("\n{complaint}");
    }
    eprintln!("\n{}", outcome::table(&outcomes, &names));
    ensure!(!interrupt.is_raised(), "interrupted");
    let costs = Costs::found(&outcomes);
    if arguments.write {
        document::write_costs(&costs)?;
        if arguments.filters.is_empty() && outcomes.len() == Line::ALL.len() {
            document::write_kernels(&outcomes)?;
        }
    }
    let bad: Vec<&str> = outcomes.iter().filter(|it| !it.is_good()).map(|it| it.line.name).collect();
    ensure!(bad.is_empty(), "not all is well on {}", bad.join(", "));
    document::compare(&costs)
}
