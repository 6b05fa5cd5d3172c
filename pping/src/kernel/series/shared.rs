//! Series while kernel programs write to them: what may be read when, and how the agent waits for them.

use std::{sync::atomic::AtomicU32, thread, time::Duration};

use pping_common::abi::{Series, SeriesKey, Tally};

/// The time that running programs get to end, if the kernel cannot say when they have: many times what they need.
const QUIESCENCE: Duration = Duration::from_millis(50);

/// Waits until every program that runs at present has ended.
pub(super) fn wait_for_programs() {
    // This waits for what the kernel calls an RCU grace period (kernel/sched/membarrier.c, since Linux 4.3), and BPF
    // programs run within RCU read-side critical sections.
    const MEMBARRIER_CMD_GLOBAL: libc::c_int = 1;
    // SAFETY: it takes no pointers.
    if unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) } != 0 {
        // Where CPUs run without ticks (nohz_full) there is no such thing.
        thread::sleep(QUIESCENCE);
    }
}

/// The tally of an interval that has ended.
pub(super) fn tally<'a>(series: *mut Series, ended: u32) -> &'a mut Tally {
    // SAFETY: inside the mapping, which lives as long as the table. No program writes to this tally any more, and the
    // table has one reference at a time.
    unsafe { &mut (*series).tallies[ended as usize & 1] }
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
