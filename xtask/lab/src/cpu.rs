use nix::{
    sched::{CpuSet, sched_setaffinity},
    unistd::Pid,
};

use crate::{Result, error::Context as _};

/// Pins the calling thread to a CPU.
///
/// # Errors
/// If there is no such CPU, or this process may not use it.
pub fn stay_on(cpu: usize) -> Result<()> {
    const THIS_THREAD: Pid = Pid::from_raw(0);
    let mut cpus = CpuSet::new();
    cpus.set(cpu)
        .and_then(|()| sched_setaffinity(THIS_THREAD, &cpus))
        .map_err(std::io::Error::from)
        .while_doing(|| format!("stay on CPU {cpu}"))
}
