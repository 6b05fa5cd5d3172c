//! `cargo xtask vm`: runs the tests of `pping/tests/vm` on other kernels, each in virtual machines.
//!
//! Debian's kernels are fetched, not installed. They boot under emulation, which needs no support from the processor. A
//! start takes some seconds.

mod boot;
mod boot_image;
mod console;
mod cost;
mod document;
mod guest_tools;
mod image;
mod index;
mod kernel;
mod line;
mod machines;
mod outcome;
mod payload;
mod system;

use std::{
    fs,
    num::{NonZeroU8, NonZeroUsize},
    thread,
    time::Duration,
};

use anyhow::{Result, ensure};
use pping_chores::{arch::Arch, duration, environment, setup};
use pping_lab::Interrupt;

pub use self::system::boot_system;
use self::{
    boot::Processors,
    cost::Costs,
    guest_tools::GuestTools,
    kernel::Kernel,
    line::Line,
    machines::Machines,
    outcome::Outcome,
    payload::{Payload, TestClass},
};

/// The request.
#[derive(clap::Args)]
pub struct Arguments {
    /// The architecture of the machines [default: this machine's]
    #[arg(long)]
    arch: Option<Arch>,
    /// Only these lines of kernels, the newest of each: `5.10,6.1`, `newest`, `all`
    #[arg(long, value_name = "LINES", value_delimiter = ',', default_value = "all")]
    kernel: Vec<String>,
    /// CPUs of each machine. With several, the tests of several CPUs run and those of exact times do not: the guest's
    /// clock is this machine's own then
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    cpus: NonZeroU8,
    /// The model of the processor, as the emulator names it, such as `neoverse-n1` [default: `max`, and `cortex-a72`
    /// for arm64]
    #[arg(long, value_name = "MODEL")]
    cpu: Option<String>,
    /// Machines side by side [default: as many as there are cores, and one with several CPUs]
    #[arg(long, value_name = "NUMBER")]
    jobs: Option<NonZeroUsize>,
    /// For how long one may run
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = duration::parse)]
    patience: Duration,
    /// Write what programs cost into docs/lab/kernels.md and, after a run of all tests, the results of each kernel
    #[arg(long)]
    write: bool,
    /// Only the tests whose names contain one of these
    #[arg(value_name = "TEST")]
    filters: Vec<String>,
}

/// Runs the tests on every kernel that is asked for, and fails unless all of them passed on all.
pub fn run(arguments: &Arguments) -> Result<()> {
    let host = Arch::of_host()?;
    let arch = arguments.arch.unwrap_or(host);
    ensure!(
        arch == host || host == Arch::X86_64,
        "machines of another architecture run on {} only, and this is {}",
        Arch::X86_64.name(),
        host.name()
    );
    let lines = Line::named(&arguments.kernel)?;
    setup::for_machines(arch)?;
    let directory = environment::target_directory().join("vm");
    fs::create_dir_all(&directory)?;
    let interrupt = Interrupt::catch()?;
    let (fetched, payload) = thread::scope(|scope| {
        let fetched = scope.spawn(|| -> (Vec<_>, Result<GuestTools>) {
            let kernels = lines.iter().map(|line| (*line, Kernel::get(*line, arch, &directory)));
            (kernels.collect(), GuestTools::get(arch, &directory))
        });
        let payload = Payload::build(arch);
        (fetched.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload)), payload)
    });
    let ((kernels, tools), payload) = (fetched, payload?);
    let tools = tools?;
    let mut tests = Vec::new();
    for class in TestClass::ALL {
        tests.push((class, payload.list(class, arguments.cpus, &arguments.filters)?));
    }
    tests.retain(|(_, names)| !names.is_empty());
    ensure!(
        !tests.is_empty(),
        "no test on {} CPUs has {} in its name",
        arguments.cpus,
        arguments.filters.join(" or ")
    );

    // A machine with several CPUs takes all CPUs of this one.
    let side_by_side = || if arguments.cpus.get() > 1 { None } else { thread::available_parallelism().ok() };
    let jobs = arguments.jobs.or_else(side_by_side).map_or(1, NonZeroUsize::get);
    let processors = Processors { count: arguments.cpus, model: arguments.cpu.clone() };
    let machines =
        Machines::new(&directory, &payload, &tools, &tests, processors, arguments.patience, &interrupt)?;
    let outcomes = machines.run(kernels, jobs);
    let names: Vec<String> = tests.into_iter().flat_map(|(_, names)| names).collect();
    for complaint in outcomes.iter().filter_map(Outcome::complaint) {
        eprintln!("\n{complaint}");
    }
    eprintln!("\n{}", outcome::table(&outcomes, &names));
    ensure!(!interrupt.is_raised(), "interrupted");
    // Only one architecture's costs are in the document.
    let costs = if arch == Arch::X86_64 { Costs::found(&outcomes) } else { Costs::default() };
    if arguments.write {
        let all_tests = arguments.filters.is_empty() && arguments.cpus.get() == 1;
        if !costs.is_empty() {
            document::write_costs(costs.clone(), all_tests && lines == Line::ALL)?;
        }
        if all_tests {
            document::write_kernels(arch, &outcomes)?;
        }
    }
    let bad: Vec<&str> = outcomes.iter().filter(|it| !it.is_good()).map(|it| it.line.name).collect();
    ensure!(bad.is_empty(), "something failed on {}", bad.join(", "));
    document::compare(&costs)
}
