//! Runs programs and measures their time.

use std::{hint, io, mem, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};
use aya::{
    Ebpf,
    programs::{Program, TestRun as _, TestRunOptions},
};
use serde::Serialize;

/// How often to measure.
#[derive(Clone, Copy)]
pub(crate) struct Rounds {
    /// Rounds, of which the median is reported.
    pub(crate) rounds: u32,
    /// Runs of each program in a round.
    pub(crate) repeat: u32,
}

/// Single runs of each program in a round with cold caches.
const COLD_RUNS: usize = 500;

/// A measurement, mostly in ns per run, with the baseline subtracted.
#[derive(Clone, Serialize)]
pub(crate) struct Figure {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    /// The value of each round, in order.
    rounds: Vec<f64>,
    /// What was subtracted in each round, if anything.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    baseline: Vec<f64>,
}

impl Rounds {
    /// Measures how much longer a run of `program` takes than one of `baseline` on the same packet. They alternate,
    /// and `between` is called after each round.
    pub(crate) fn measure(
        self,
        baseline: (&Ebpf, &str),
        program: (&Ebpf, &str),
        packet: &[u8],
        mut between: impl FnMut(),
    ) -> Result<Figure> {
        let (mut over, mut bases) = (Vec::new(), Vec::new());
        for round in 0..=self.rounds {
            let base = run(baseline, packet, self.repeat)?;
            let time = run(program, packet, self.repeat)?;
            between();
            // The first round warms up.
            if round > 0 {
                over.push(time - base);
                bases.push(base);
            }
        }
        Ok(Figure { baseline: bases, ..Figure::of(over)? })
    }

    /// The same for single runs with cold caches: before each run, `bytes` bytes of other memory are written. The value
    /// of a round is the median of [`COLD_RUNS`] runs.
    pub(crate) fn measure_cold(
        self,
        baseline: (&Ebpf, &str),
        program: (&Ebpf, &str),
        packet: &[u8],
        bytes: usize,
    ) -> Result<Figure> {
        /// The size of a cache line, in bytes.
        const CACHE_LINE: usize = 64;
        let mut elsewhere = vec![0_u8; bytes];
        let mut once = |program| {
            elsewhere.iter_mut().step_by(CACHE_LINE).for_each(|byte| *byte = byte.wrapping_add(1));
            hint::black_box(&elsewhere);
            run(program, packet, 1)
        };
        let (mut over, mut bases) = (Vec::new(), Vec::new());
        for _ in 0..self.rounds {
            let (mut base, mut time) = (Vec::new(), Vec::new());
            for _ in 0..COLD_RUNS {
                base.push(once(baseline)?);
                time.push(once(program)?);
            }
            let base = Figure::of(base)?.median;
            over.push(Figure::of(time)?.median - base);
            bases.push(base);
        }
        Ok(Figure { baseline: bases, ..Figure::of(over)? })
    }
}

impl Figure {
    /// Makes a figure of the value of each round.
    pub(crate) fn of(rounds: impl IntoIterator<Item = f64>) -> Result<Self> {
        let rounds: Vec<f64> = rounds.into_iter().collect();
        let mut sorted = rounds.clone();
        sorted.sort_by(f64::total_cmp);
        let at = |index: usize| sorted.get(index).copied().context("at least one round is needed");
        Ok(Self {
            median: at(sorted.len() / 2)?,
            min: at(0)?,
            max: at(sorted.len().saturating_sub(1))?,
            rounds,
            baseline: Vec::new(),
        })
    }
}

/// Returns the ns of a run, averaged over `repeat` runs.
pub(crate) fn run((programs, name): (&Ebpf, &str), packet: &[u8], repeat: u32) -> Result<f64> {
    let options = TestRunOptions { data_in: Some(packet), repeat, ..TestRunOptions::default() };
    let result = match programs.program(name).with_context(|| format!("{name} is not in the object"))? {
        Program::SchedClassifier(program) => program.test_run(options),
        Program::Xdp(program) => program.test_run(options),
        _ => bail!("{name} is neither a tc nor an XDP program"),
    };
    // The kernel reports whole nanoseconds per run.
    Ok(result.with_context(|| format!("running {name}"))?.duration.as_nanos() as f64)
}

/// The CPU time of this thread, in user space and kernel.
pub(crate) fn cpu_time() -> Result<Duration> {
    // SAFETY: plain numbers, for which all zeroes is a valid value.
    let mut time: libc::timespec = unsafe { mem::zeroed() };
    // SAFETY: a valid pointer to write to.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    ensure!(result == 0, "no CPU time of a thread: {}", io::Error::last_os_error());
    Ok(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}
