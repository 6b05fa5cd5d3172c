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
use pping_lab::{Interrupt, Process};

use super::{kernel::Kernel, payload::TestClass};

const POLL: Duration = Duration::from_millis(100);

const MACHINE: [&str; 11] = [
    "-cpu",
    "max",
    "-machine",
    "q35",
    "-m",
    "2048",
    "-nodefaults",
    "-no-user-config",
    "-display",
    "none",
    "-no-reboot",
];

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
const PARAMETERS: &str = "console=ttyS0 quiet panic=-1 random.trust_cpu=on transparent_hugepage=never";

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

/// Boots a kernel for a class of tests and waits until the machine is off. `look` gets what the serial console shows
/// so far.
#[expect(clippy::too_many_arguments, reason = "they are what a machine is made of")]
pub(super) fn run(
    kernel: &Kernel,
    image: &Path,
    class: TestClass,
    cpus: NonZeroU8,
    log: &Path,
    patience: Duration,
    interrupt: &Interrupt,
    look: &mut dyn FnMut(&str),
) -> Result<End> {
    fs::write(log, "")?;
    // `setpriv` has the kernel kill qemu when this thread ends, however it ends.
    let mut qemu = Command::new("setpriv");
    qemu.args(["--pdeathsig", "KILL", "qemu-system-x86_64"]).args(MACHINE);
    qemu.arg("-serial").arg(format!("file:{}", log.display()));
    qemu.arg("-kernel").arg(kernel.directory.join("vmlinuz")).arg("-initrd").arg(image);
    qemu.arg("-append").arg(format!("{PARAMETERS} pping.part={}", class.name()));
    if cpus.get() > 1 {
        qemu.args(SEVERAL_CPUS).args(["-smp", &cpus.to_string()]);
    } else {
        qemu.args(ONE_CPU);
        if class == TestClass::Times {
            qemu.args(COUNTING);
        }
    }
    let mut process = Process::spawn(qemu)?;
    let began = Instant::now();
    loop {
        // Read the status first, because output written just before the end counts.
        let status = process.status()?;
        look(&console(log)?);
        match status {
            Some(status) if status.success() => return Ok(End::Off),
            Some(status) => {
                return Ok(End::Failed(format!("qemu ended with {status}: {}", process.stderr()?.trim())));
            }
            None if interrupt.is_raised() => return Ok(End::Interrupted),
            None if began.elapsed() > patience => {
                return Ok(End::Failed(format!("not over after {} s", patience.as_secs())));
            }
            None => thread::sleep(POLL),
        }
    }
}

/// Returns what the serial console shows.
pub(super) fn console(log: &Path) -> Result<String> {
    let bytes = fs::read(log).with_context(|| format!("reading {}", log.display()))?;
    Ok(String::from_utf8_lossy(&bytes).replace('\r', ""))
}
