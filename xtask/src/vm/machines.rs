//! Machines side by side, as many as there is room for.

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

use super::{
    boot::{self, End},
    console::{Console, Verdict},
    image,
    kernel::Kernel,
    line::Line,
    outcome::{Outcome, Run},
    payload::{Part, Payload},
};

/// What all machines have in common.
pub(super) struct Machines<'a> {
    common: PathBuf,
    images: PathBuf,
    logs: PathBuf,
    parts: Vec<Part>,
    patience: Duration,
    interrupt: &'a Interrupt,
}

impl<'a> Machines<'a> {
    /// Packs what they boot.
    pub(super) fn new(
        directory: &Path,
        payload: &Payload,
        tests: &[(Part, Vec<String>)],
        patience: Duration,
        interrupt: &'a Interrupt,
    ) -> Result<Self> {
        let (images, logs) = (directory.join("images"), directory.join("logs"));
        for directory in [&images, &logs] {
            fs::create_dir_all(directory)?;
        }
        let common = image::common(payload, tests, &images)?;
        let parts = tests.iter().map(|(part, _)| *part).collect();
        Ok(Self { common, images, logs, parts, patience, interrupt })
    }

    /// Has each kernel run each part of the tests, that many at a time.
    pub(super) fn run(&self, kernels: Vec<(Line, Result<Kernel>)>, jobs: usize) -> Vec<Outcome> {
        let outcomes: Vec<_> = kernels.into_iter().map(|(line, kernel)| Outcome::new(line, kernel)).collect();
        // What takes longest first.
        let mut queue = VecDeque::new();
        for part in &self.parts {
            for (number, outcome) in outcomes.iter().enumerate() {
                queue.extend(outcome.kernel.as_ref().ok().map(|kernel| (number, kernel.clone(), *part)));
            }
        }
        let (queue, outcomes) = (Mutex::new(queue), Mutex::new(outcomes));
        thread::scope(|scope| {
            for _ in 0..jobs {
                scope.spawn(|| {
                    // Not in the loop's own line, which would hold the lock all the while.
                    let next = || lock(&queue).pop_front();
                    while let Some((number, kernel, part)) = next() {
                        let run = self.boot(&kernel, part);
                        lock(&outcomes)[number].add(run);
                    }
                });
            }
        });
        outcomes.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Boots a kernel and has it run a part of the tests.
    fn boot(&self, kernel: &Kernel, part: Part) -> Run {
        let name = format!("{}-{}", kernel.line, part.name());
        let log = self.logs.join(format!("{name}.log"));
        let began = Instant::now();
        let mut printed = 0;
        let look = |text: &str| {
            let console = Console::read(text);
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
        let run = || -> Result<_> {
            let image = image::image(kernel, &self.common, &self.images, &name)?;
            let end = boot::run(kernel, &image, part, &log, self.patience, self.interrupt, look)?;
            fs::remove_file(image).context("removing what was booted")?;
            Ok((end, Console::read(&boot::console(&log)?)))
        };
        let (end, console) = run().unwrap_or_else(|error| {
            (End::Trouble(format!("could not be booted: {error:#}")), Console::default())
        });
        Run { console, end, log }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
