//! Runs machines side by side, as many as there is room for.

use std::{
    collections::VecDeque,
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use pping_lab::Interrupt;
use tempfile::TempPath;

use super::{
    boot::{self, End, Machine, Processors},
    console::{Console, Verdict},
    guest_tools::GuestTools,
    image,
    kernel::Kernel,
    line::Line,
    outcome::{Outcome, Run},
    payload::{Payload, TestClass},
};

/// How often a machine is started again after a fault of the emulator.
const RESTARTS: usize = 2;

/// What all machines have in common.
pub(super) struct Machines<'a> {
    common: TempPath,
    images: PathBuf,
    logs: PathBuf,
    classes: Vec<TestClass>,
    processors: Processors,
    patience: Duration,
    interrupt: &'a Interrupt,
}

impl<'a> Machines<'a> {
    /// Packs what all machines boot.
    pub(super) fn new(
        directory: &Path,
        payload: &Payload,
        tools: &GuestTools,
        tests: &[(TestClass, Vec<String>)],
        processors: Processors,
        patience: Duration,
        interrupt: &'a Interrupt,
    ) -> Result<Self> {
        let (images, logs) = (directory.join("images"), directory.join("logs"));
        for directory in [&images, &logs] {
            fs::create_dir_all(directory)?;
        }
        let common = image::common(payload, tools, tests, &images)?;
        let classes = tests.iter().map(|(class, _)| *class).collect();
        Ok(Self { common, images, logs, classes, processors, patience, interrupt })
    }

    /// Runs each class of tests on each kernel, with up to `jobs` machines at a time.
    pub(super) fn run(&self, kernels: Vec<(Line, Result<Kernel>)>, jobs: usize) -> Vec<Outcome> {
        let outcomes: Vec<_> = kernels.into_iter().map(|(line, kernel)| Outcome::new(line, kernel)).collect();
        // The class that takes longest comes first.
        let mut queue = VecDeque::new();
        for class in &self.classes {
            for (number, outcome) in outcomes.iter().enumerate() {
                queue.extend(outcome.kernel.as_ref().ok().map(|kernel| (number, kernel.clone(), *class)));
            }
        }
        let (queue, outcomes) = (Mutex::new(queue), Mutex::new(outcomes));
        thread::scope(|scope| {
            for _ in 0..jobs {
                scope.spawn(|| {
                    // A closure, because in the condition of the loop the lock would be held for the whole body.
                    let next = || lock(&queue).pop_front();
                    while let Some((number, kernel, class)) = next() {
                        let run = self.boot(&kernel, class);
                        lock(&outcomes)[number].add(run);
                    }
                });
            }
        });
        outcomes.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Boots a kernel and runs a class of tests on it.
    fn boot(&self, kernel: &Kernel, class: TestClass) -> Run {
        // The files of a machine with several CPUs must differ from those of one with a single CPU beside it.
        let cpus = self.processors.count.get();
        let cpus = if cpus > 1 { format!("-{cpus}-cpus") } else { String::new() };
        let name = format!("{}-{}-{}{cpus}", kernel.line, kernel.arch.debian(), class.name());
        let log = self.logs.join(format!("{name}.log"));
        let began = Instant::now();
        let mut printed = 0;
        let mut look = |text: &str| {
            let console = Console::read(text);
            // Fewer tests than before mean that the machine was started again.
            printed = printed.min(console.tests.len());
            for test in console.tests.iter().filter(|test| test.seconds.is_some()).skip(printed) {
                printed += 1;
                let verdict = match &test.verdict {
                    Verdict::Passed => "passed".to_owned(),
                    Verdict::Failed => "FAILED".to_owned(),
                    Verdict::Skipped(reason) => format!("skipped: {reason}"),
                };
                eprintln!("{} at {} s: {} {verdict}", kernel.line, began.elapsed().as_secs(), test.name);
            }
        };
        let mut run = || -> Result<_> {
            let image = image::image(kernel, &self.common, &self.images, &name)?;
            let mut start = || {
                let machine = Machine {
                    kernel,
                    image: &image,
                    parameters: &format!("pping.part={}", class.name()),
                    processors: &self.processors,
                    counts_time: class == TestClass::Times,
                    log: &log,
                    patience: self.patience,
                };
                machine.run(self.interrupt, &mut look)
            };
            let mut end = start()?;
            for _ in 0..RESTARTS {
                if !is_emulator_fault(&boot::console(&log)?) {
                    break;
                }
                eprintln!("{}: a fault of the emulator ended the machine; trying again", kernel.line);
                end = start()?;
            }
            fs::remove_file(image).context("removing what was booted")?;
            Ok((end, Console::read(&boot::console(&log)?)))
        };
        let (end, console) = run().unwrap_or_else(|error| {
            (End::Failed(format!("could not be booted: {error:#}")), Console::default())
        });
        Run { console, end, log }
    }
}

/// Whether a machine ended by a fault of the emulator. There are two. The kernel changes its code while other CPUs run
/// it, with a breakpoint in place meanwhile; in the emulator, a CPU may run into that breakpoint when the kernel has
/// removed it. And at the start the kernel waits for ticks of its timer, which an emulator that gets no CPU does not make.
fn is_emulator_fault(console: &str) -> bool {
    let causes = ["int3: 0000", "IO-APIC + timer doesn't work"];
    console.contains("Kernel panic") && causes.iter().any(|cause| console.contains(cause))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
