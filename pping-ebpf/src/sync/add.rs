//! The atomic instruction that every kernel has.

use core::intrinsics::{AtomicOrdering, atomic_xadd};

use crate::shared::Shared;

impl Shared<u64> {
    /// Adds to a counter by one instruction: other CPUs, or a softirq on this one, may add to it at the same time.
    #[inline(always)]
    pub(crate) fn add(self, more: u64) {
        // SAFETY: valid and aligned, as `Shared::new` requires.
        unsafe {
            atomic_xadd::<u64, u64, { AtomicOrdering::Relaxed }>(self.as_ptr(), more);
        }
    }
}

impl Shared<u32> {
    /// The same for 32 bits.
    #[inline(always)]
    pub(crate) fn add(self, more: u32) {
        // SAFETY: valid and aligned, as `Shared::new` requires.
        unsafe {
            atomic_xadd::<u32, u32, { AtomicOrdering::Relaxed }>(self.as_ptr(), more);
        }
    }
}
