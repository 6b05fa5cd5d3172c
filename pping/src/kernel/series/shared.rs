//! Access to series while kernel programs write to them, and how the agent waits for the programs.

use std::{sync::atomic::AtomicU32, thread, time::Duration};

use pping_common::{
    abi::{Series, SeriesKey, Sums, Tally, Traffic},
    pool::CHAINS,
};

/// How long to wait for running programs if the kernel cannot say when they have ended: many times what they need.
const QUIESCENCE: Duration = Duration::from_millis(50);

/// Waits until every program that runs at present has ended.
pub(super) fn wait_for_programs() {
    // This waits for what the kernel calls an RCU grace period (kernel/sched/membarrier.c, since Linux 4.3), and BPF
    // programs run within RCU read-side critical sections.
    const MEMBARRIER_CMD_GLOBAL: libc::c_int = 1;
    // SAFETY: it takes no pointers.
    if unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) } != 0 {
        // If a CPU runs without ticks (nohz_full), the kernel refuses this command.
        thread::sleep(QUIESCENCE);
    }
}

/// Returns the tally of a series in an epoch that has ended, without its bins.
pub(super) fn tally(series: *mut Series, ended: u32) -> Tally {
    // SAFETY: inside the mapping. No program writes to these sums any more. Only the sweep, which the agent runs,
    // writes to the traffic.
    let (sums, traffic) = unsafe {
        ((&raw const (*series).sums[ended as usize & 1]).read(), (&raw const (*series).traffic).read())
    };
    Tally::new(sums, traffic)
}

/// Removes the tally of an epoch that has ended from a series.
pub(super) fn empty(series: *mut Series, ended: u32) {
    let phase = ended as usize & 1;
    // SAFETY: as above.
    unsafe {
        (&raw mut (*series).sums[phase]).write(Sums::default());
        (&raw mut (*series).chains[phase]).write([0; CHAINS]);
        (&raw mut (*series).traffic).write([Traffic::default(); 2]);
    }
}

/// The key of a series that is used.
pub(super) fn key(series: *mut Series) -> SeriesKey {
    // SAFETY: inside the mapping, and written before `used` was.
    unsafe { (&raw const (*series).key).read_volatile() }
}

pub(super) fn used<'a>(series: *mut Series) -> &'a AtomicU32 {
    // SAFETY: inside the mapping, which lives as long as the table, aligned, and only accessed as an atomic.
    unsafe { AtomicU32::from_ptr(&raw mut (*series).used) }
}

pub(super) fn life<'a>(series: *mut Series) -> &'a AtomicU32 {
    // SAFETY: as above.
    unsafe { AtomicU32::from_ptr(&raw mut (*series).life) }
}
