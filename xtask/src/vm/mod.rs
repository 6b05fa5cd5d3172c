//! `cargo xtask vm`: the tests of `pping/tests/vm` on other kernels, each in a virtual machine.
//!
//! Debian's kernels are fetched, not installed. They boot under emulation, which needs no help of the processor: a start
//! takes some seconds.

mod boot;
mod console;
mod image;
mod index;
mod kernel;
mod line;
mod outcome;
mod payload;

use std::{
    collections::VecDeque,
    env::consts::ARCH,
    fs,
    num::NonZeroUsize,
    path::Path,
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use pping_lab::Interrupt;

use self::{
    console::{Console, Verdict},
    kernel::Kernel,
    line::Line,
    outcome::Outcome,
    payload::Payload,
};
use crate::{environment, setup, soak};

/// What is asked for.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only these lines of kernels, the newest of each: `5.10,6.1`, `newest`, `all`
    #[arg(long, value_name = "LINES", value_delimiter = ',', default_value = "all")]
    kernel: Vec<String>,
    /// Machines side by side [default: as many as there are cores]
    #[arg(long, value_name = "NUMBER")]
    jobs: Option<NonZeroUsize>,
    /// For how long one may run
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = soak::duration)]
    patience: Duration,
    /// Only the tests whose names contain one of these
    #[arg(value_name = "TEST")]
    filters: Vec<String>,
}

/// Runs the tests on every kernel that is asked for, and fails unless all of them passed on all.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    ensure!(ARCH == "x86_64", "the virtual machines are PCs, and so are the tests in them: this is {ARCH}");
    let lines = Line::named(&arguments.kernel)?;
    setup::for_machines()?;
    let directory = environment::target_directory().join("vm");
    let (images, logs) = (directory.join("images"), directory.join("logs"));
    for directory in [&images, &logs] {
        fs::create_dir_all(directory)?;
    }
    let interrupt = Interrupt::catch()?;
    let (kernels, payload) = thread::scope(|scope| {
        let kernels = scope.spawn(|| -> Vec<_> {
            lines.iter().map(|line| (*line, Kernel::get(*line, &directory))).collect()
        });
        let payload = Payload::build();
        let kernels = kernels.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload));
        payload.map(|payload| (kernels, payload))
    })?;
    let common = image::common(&payload, &arguments.filters, &images)?;

    let jobs = arguments.jobs.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let queue: Mutex<VecDeque<_>> = Mutex::new(kernels.into_iter().enumerate().collect());
    let outcomes = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some((number, (line, kernel))) = lock(&queue).pop_front() {
                    let outcome = match kernel {
                        Ok(kernel) => test(kernel, &common, &images, &logs, arguments.patience, &interrupt),
                        Err(error) => Outcome::not_fetched(line, format!("{error:#}")),
                    };
                    lock(&outcomes).push((number, outcome));
                }
            });
        }
    });
    let mut outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcomes.sort_by_key(|(number, _)| *number);
    let outcomes: Vec<Outcome> = outcomes.into_iter().map(|(_, outcome)| outcome).collect();
    conclude(&outcomes, &logs)
}

/// Boots a kernel and has it run the tests.
fn test(
    kernel: Kernel,
    common: &Path,
    images: &Path,
    logs: &Path,
    patience: Duration,
    interrupt: &Interrupt,
) -> Outcome {
    let log = logs.join(format!("{}.log", kernel.line));
    let began = Instant::now();
    let mut told = 0;
    let look = |text: &str| {
        let console = Console::read(text);
        let ended = console.tests.iter().filter(|test| test.seconds.is_some());
        for test in ended.skip(told) {
            told += 1;
            let verdict = match &test.verdict {
                Verdict::Passed => "passed".to_owned(),
                Verdict::Failed => "FAILED".to_owned(),
                Verdict::Skipped(reason) => format!("skipped: {reason}"),
            };
            eprintln!("{} {:>4} s: {} {verdict}", kernel.line, began.elapsed().as_secs(), test.name);
        }
    };
    let run = || -> Result<_> {
        let image = image::image(&kernel, common, images)?;
        let end = boot::run(&kernel, &image, &log, patience, interrupt, look)?;
        fs::remove_file(image).context("removing what was booted")?;
        Ok((end, Console::read(&boot::console(&log)?)))
    };
    match run() {
        Ok((end, console)) => {
            eprintln!("{}: {} took {} s", kernel.line, kernel.version, began.elapsed().as_secs());
            Outcome::ran(kernel, console, end)
        }
        Err(error) => Outcome::ran(
            kernel,
            Console::default(),
            boot::End::Trouble(format!("could not be booted: {error:#}")),
        ),
    }
}

/// Says what came of it all.
fn conclude(outcomes: &[Outcome], logs: &Path) -> Result<()> {
    for complaint in outcomes.iter().filter_map(Outcome::complaint) {
        eprintln!("\n{complaint}");
    }
    eprintln!("\n{}", outcome::table(outcomes));
    let bad: Vec<&str> = outcomes.iter().filter(|it| !it.is_good()).map(|it| it.line.name).collect();
    ensure!(
        bad.is_empty(),
        "not all is well on {}; {} has what the machines said",
        bad.join(", "),
        logs.display()
    );
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
