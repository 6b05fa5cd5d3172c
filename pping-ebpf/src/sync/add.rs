//! The atomic instruction that every kernel has.

use core::intrinsics::{AtomicOrdering, atomic_xadd};

use crate::shared::Shared;

/// Adds to a counter that other CPUs, or a softirq on this one, may add to at the same time.
#[inline(always)]
pub(crate) fn add(counter: impl Into<*mut u64>, value: u64) {
    // SAFETY: callers pass a field of a map value, which is valid and aligned for the program's run.
    unsafe {
        atomic_xadd::<u64, u64, { AtomicOrdering::Relaxed }>(counter.into(), value);
    }
}

/// The same for a counter of 32 bits.
#[inline(always)]
pub(crate) fn add_32(counter: impl Into<*mut u32>, value: u32) {
    // SAFETY: as for `add`.
    unsafe {
        atomic_xadd::<u32, u32, { AtomicOrdering::Relaxed }>(counter.into(), value);
    }
}

impl Shared<u64> {
    /// Adds by one instruction: several CPUs may add at the same time.
    #[inline(always)]
    pub(crate) fn add(self, more: u64) {
        add(self.as_ptr(), more);
    }
}

impl Shared<u32> {
    /// The same for 32 bits.
    #[inline(always)]
    pub(crate) fn add(self, more: u32) {
        add_32(self.as_ptr(), more);
    }
}
