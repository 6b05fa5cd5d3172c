//! Indices with bounds that the verifier sees.

use core::{arch::asm, hint::assert_unchecked};

/// `index` modulo `N`, a power of two. Written as an instruction, since the compiler knows the range of
/// an enum and leaves out a mask that the verifier, which does not, insists on.
#[inline(always)]
pub(crate) fn within<const N: usize>(mut index: usize) -> usize {
    const { assert!(N.is_power_of_two()) };
    // SAFETY: masks one register, and touches nothing else.
    unsafe {
        asm!("{0} &= {mask}", inout(reg) index, mask = const N - 1, options(pure, nomem, nostack));
    }
    // SAFETY: the mask above. This is for the compiler, which does not look into it.
    unsafe { assert_unchecked(index < N) };
    index
}
