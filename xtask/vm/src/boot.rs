//! Runs a virtual machine until it is off.

use std::{
    fs,
    num::NonZeroU8,
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use pping_chores::arch::Arch;
use pping_lab::{Interrupt, Process};

use super::kernel::Kernel;

const POLL: Duration = Duration::from_millis(100);

/// The parts of every machine.
const MACHINE: [&str; 7] = ["-m", "2048", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"];

/// What differs between machines of the architectures.
struct Board {
    emulator: &'static str,
    machine: &'static str,
    /// The model of the processor, unless another one is asked for.
    cpu: &'static str,
    /// The parameters of its kernel.
    parameters: &'static str,
}

const PC: Board = Board {
    emulator: "qemu-system-x86_64",
    machine: "q35",
    cpu: "max",
    parameters: "console=ttyS0 random.trust_cpu=on",
};

/// A processor of ARMv8.0, which has no atomic instructions beside exclusive loads and stores. `max` has more than old
/// kernels know. The kernel gets its entropy from the emulator, since this processor has no instruction for it.
const ARM: Board = Board {
    emulator: "qemu-system-aarch64",
    machine: "virt,gic-version=3",
    cpu: "cortex-a72",
    parameters: "console=ttyAMA0 random.trust_bootloader=on",
};

impl Board {
    fn of(arch: Arch) -> &'static Self {
        match arch {
            Arch::X86_64 => &PC,
            Arch::Aarch64 => &ARM,
        }
    }
}

/// One thread for one CPU, or one for each of several CPUs. Several CPUs really run at the same time, so their
/// instructions cannot be counted.
const ONE_CPU: [&str; 2] = ["-accel", "tcg,thread=single"];
const SEVERAL_CPUS: [&str; 2] = ["-accel", "tcg,thread=multi"];

/// The guest's clock counts the guest's instructions, and jumps ahead while the guest is idle. So measurements in the
/// guest do not depend on how busy this machine is, and a minute of waiting takes a moment. But instructions take two
/// or three times as long.
const COUNTING: [&str; 4] = ["-icount", "shift=1,sleep=off", "-rtc", "clock=vm"];

/// A kernel that panics switches the machine off. Huge pages are not collected: before Linux 6.4, packets waited for 4 ms
/// and more while khugepaged had the only CPU, because softirqs were left to a ksoftirqd that was due to run.
const PARAMETERS: &str = "quiet panic=-1 transparent_hugepage=never";

/// The processors of a machine.
#[derive(Clone, Debug)]
pub(super) struct Processors {
    pub(super) count: NonZeroU8,
    /// The emulator's name of the model, unless it is the usual one.
    pub(super) model: Option<String>,
}

/// How a machine came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// By itself.
    Off,
    /// Ctrl-C was pressed.
    Interrupted,
    /// Something was wrong.
    Failed(String),
}

/// What a machine is made of.
pub(super) struct Machine<'a> {
    pub(super) kernel: &'a Kernel,
    /// The archive that the kernel unpacks, whose `/init` it starts.
    pub(super) image: &'a Path,
    /// Further parameters of the kernel.
    pub(super) parameters: &'a str,
    pub(super) processors: &'a Processors,
    /// Whether the clock of a machine with one CPU counts its instructions.
    pub(super) counts_time: bool,
    /// The file for what the serial console shows.
    pub(super) log: &'a Path,
    pub(super) patience: Duration,
}

impl Machine<'_> {
    /// Boots the machine and waits until it is off. `look` gets what the serial console shows so far.
    pub(super) fn run(&self, interrupt: &Interrupt, look: &mut dyn FnMut(&str)) -> Result<End> {
        fs::write(self.log, "")?;
        let mut process = Process::spawn(self.qemu())?;
        let began = Instant::now();
        loop {
            // Read the status first, because output written just before the end counts.
            let status = process.status()?;
            look(&console(self.log)?);
            match status {
                Some(status) if status.success() => return Ok(End::Off),
                Some(status) => {
                    return Ok(End::Failed(format!(
                        "qemu ended with {status}: {}",
                        process.stderr()?.trim()
                    )));
                }
                None if interrupt.is_raised() => return Ok(End::Interrupted),
                None if began.elapsed() > self.patience => {
                    return Ok(End::Failed(format!("not over after {} s", self.patience.as_secs())));
                }
                None => thread::sleep(POLL),
            }
        }
    }

    fn qemu(&self) -> Command {
        let Self { kernel, image, parameters, processors, counts_time, log, .. } = self;
        let board = Board::of(kernel.arch);
        // `setpriv` has the kernel kill qemu when this thread ends, however it ends.
        let mut qemu = Command::new("setpriv");
        qemu.args(["--pdeathsig", "KILL", board.emulator]).args(MACHINE).args(["-machine", board.machine]);
        qemu.args(["-cpu", processors.model.as_deref().unwrap_or(board.cpu)]);
        qemu.arg("-serial").arg(format!("file:{}", log.display()));
        qemu.arg("-kernel").arg(kernel.directory.join("vmlinuz")).arg("-initrd").arg(image);
        qemu.arg("-append").arg(format!("{} {PARAMETERS} {parameters}", board.parameters));
        if processors.count.get() > 1 {
            qemu.args(SEVERAL_CPUS).args(["-smp", &processors.count.to_string()]);
        } else {
            qemu.args(ONE_CPU);
            if *counts_time {
                qemu.args(COUNTING);
            }
        }
        qemu
    }
}

/// Returns what the serial console shows.
pub(super) fn console(log: &Path) -> Result<String> {
    let bytes = fs::read(log).with_context(|| format!("reading {}", log.display()))?;
    Ok(String::from_utf8_lossy(&bytes).replace('\r', ""))
}
