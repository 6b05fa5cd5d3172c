//! Indices with bounds that the verifier sees.

use core::{arch::asm, hint::assert_unchecked};

/// `index` modulo `N`, a power of two. Written as an instruction, because the compiler knows the range of an enum and
/// would leave out the mask. The verifier does not know the range and insists on the mask.
#[inline(always)]
pub(crate) fn within<const N: usize>(mut index: usize) -> usize {
    const { assert!(N.is_power_of_two()) };
    // SAFETY: masks one register, and touches nothing else.
    unsafe {
        asm!("{0} &= {mask}", inout(reg) index, mask = const N - 1, options(pure, nomem, nostack));
    }
    // SAFETY: the mask above guarantees it. The compiler does not look into that instruction, and learns the range here.
    unsafe { assert_unchecked(index < N) };
    index
}
