//! Access to series while kernel programs write to them, and how the agent waits for the programs.

use std::{sync::atomic::AtomicU32, thread, time::Duration};

use pping_common::{
    field,
    pool::CHAINS,
    series::{Series, SeriesCounts, SeriesKey, Sums, Traffic},
    shared::Shared,
};

use crate::kernel::memory::atomic;

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

/// Returns the counts of a series in an epoch that has ended, without its bins.
pub(super) fn counts(series: Shared<'_, Series>, ended: u32) -> SeriesCounts {
    // No program writes to these sums any more. Only the sweep, which the agent runs, writes to the traffic.
    let sums = series.at(field!(Series, sums)).nth(ended as usize).load();
    SeriesCounts::new(sums, series.at(field!(Series, traffic)).load())
}

/// Removes the counts of an epoch that has ended from a series.
pub(super) fn empty(series: Shared<'_, Series>, ended: u32) {
    series.at(field!(Series, sums)).nth(ended as usize).store(&Sums::default());
    series.at(field!(Series, chains)).nth(ended as usize).store(&[0; CHAINS]);
    series.at(field!(Series, traffic)).store(&[Traffic::default(); 2]);
}

/// The key of a series that is used: it was written before `used` was.
pub(super) fn key(series: Shared<'_, Series>) -> SeriesKey {
    series.at(field!(Series, key)).load()
}

pub(super) fn used(series: Shared<'_, Series>) -> &AtomicU32 {
    atomic(series.at(field!(Series, used)))
}

pub(super) fn generation(series: Shared<'_, Series>) -> &AtomicU32 {
    atomic(series.at(field!(Series, generation)))
}
