//! What watches an interface: pping, a program that does next to nothing, or a foreign command.

use std::{
    path::PathBuf,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use aya::{
    Ebpf,
    programs::{SchedClassifier, TcAttachType, tc::SchedClassifierLink},
};
use pping_lab::{Namespace, Process, Signal};

/// How long pping may take to start.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long to wait for a command that does not report its start.
const GRACE: Duration = Duration::from_secs(3);

/// How long a program may take to end after a signal.
const FAREWELL: Duration = Duration::from_secs(10);

/// What should watch an interface.
pub(crate) enum Watcher {
    Nobody,
    /// One of the programs to compare with.
    Program(&'static str),
    Command(String),
}

/// What watches an interface.
pub(crate) enum Watching {
    Nobody,
    Program(Vec<SchedClassifierLink>),
    Process(Process),
}

impl Watcher {
    /// Starts to watch an interface of a host. `baseline` are the programs to compare with.
    pub(crate) fn watch(&self, host: &Namespace, interface: &str, baseline: &mut Ebpf) -> Result<Watching> {
        Ok(match self {
            Self::Nobody => Watching::Nobody,
            Self::Program(name) => {
                let program = baseline.program_mut(name).with_context(|| format!("there is no {name}"))?;
                let program: &mut SchedClassifier = program.try_into()?;
                let mut attach = |direction| {
                    let link = program.attach(interface, direction)?;
                    Ok(program.take_link(link)?)
                };
                let directions = [TcAttachType::Ingress, TcAttachType::Egress];
                Watching::Program(
                    host.enter(|| directions.into_iter().map(&mut attach).collect::<Result<_>>())??,
                )
            }
            Self::Command(command) => {
                let mut words = command.split_whitespace();
                let mut command = host.command(words.next().context("an empty command cannot watch")?);
                command.args(words);
                Watching::Process(start(command, interface)?.process)
            }
        })
    }
}

impl Watching {
    /// Stops it, on the host given to [`Watcher::watch`]. Returns what a process wrote on standard error, as pping its summary.
    pub(crate) fn stop(self, host: &Namespace) -> Result<String> {
        match self {
            Self::Nobody => {}
            // Dropped in the namespace where they were attached: on older kernels filters are removed by netlink.
            Self::Program(links) => host.enter(|| drop(links))?,
            Self::Process(mut process) => {
                process.stop(Signal::SIGINT, FAREWELL)?;
                return Ok(process.stderr()?);
            }
        }
        Ok(String::new())
    }
}

/// The path of pping.
pub(crate) fn pping() -> Result<PathBuf> {
    let program = std::env::current_exe()?.with_file_name("pping");
    ensure!(program.is_file(), "{} is missing: start this by `cargo xtask bench`", program.display());
    Ok(program)
}

/// A command that was started.
pub(crate) struct Started {
    pub(crate) process: Process,
    /// How long it took to count packets.
    pub(crate) counts: Duration,
    /// How long it took to measure.
    pub(crate) measures: Duration,
}

/// Starts a command, and returns when it measures at `interface`. With `-v` it has to report that; otherwise it is given [`GRACE`].
pub(crate) fn start(command: Command, interface: &str) -> Result<Started> {
    let reports = command.get_args().any(|argument| argument == "-v");
    let began = Instant::now();
    let mut process = Process::spawn(command)?;
    if !reports {
        thread::sleep(GRACE);
        return Ok(Started { process, counts: GRACE, measures: GRACE });
    }
    process.wait_for_output(&format!("watching {interface}"), PATIENCE)?;
    let counts = began.elapsed();
    process.wait_for_output("measuring round-trip times", PATIENCE)?;
    Ok(Started { process, counts, measures: began.elapsed() })
}
