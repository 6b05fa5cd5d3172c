//! Atomic instructions, and the lock of a flow.
//!
//! `AtomicU32` lacks `swap` and `fetch_add` on this target, and the intrinsics compile to BPF's own
//! instructions (`xchg`, `lock +=`).

use core::intrinsics::{AtomicOrdering, atomic_xadd, atomic_xchg};

use pping_common::flow::Flow;

/// Attempts to take a flow's lock before giving up: a microsecond or two, many times as long as it is ever
/// held, so a failure means that its holder's (virtual) CPU is not running.
const ATTEMPTS: u32 = 64;

/// Adds to a counter that other CPUs, or a softirq on this one, may add to at the same time.
#[inline(always)]
pub(crate) fn add(counter: *mut u64, value: u64) {
    // SAFETY: callers pass a field of a map value, which is valid and aligned for the program's run.
    unsafe {
        atomic_xadd::<u64, u64, { AtomicOrdering::Relaxed }>(counter, value);
    }
}

/// Takes the lock of a flow; `false` when another CPU has it and keeps it.
#[inline(always)]
pub(crate) fn lock(flow: *mut Flow) -> bool {
    for _ in 0..ATTEMPTS {
        // SAFETY: a pointer to a map value, valid for the program's run.
        let busy = unsafe { &raw mut (*flow).busy };
        // SAFETY: as above, and aligned.
        if unsafe { atomic_xchg::<u32, { AtomicOrdering::AcqRel }>(busy, 1) } == 0 {
            return true;
        }
    }
    false
}

/// Gives back the lock of a flow.
#[inline(always)]
pub(crate) fn unlock(flow: *mut Flow) {
    // SAFETY: a pointer to a map value, valid for the program's run.
    let busy = unsafe { &raw mut (*flow).busy };
    // SAFETY: as above, and aligned.
    unsafe {
        atomic_xchg::<u32, { AtomicOrdering::AcqRel }>(busy, 0);
    }
}
