//! What the verifier and the compiler know of a value: barriers make them forget it, and a mask shows them the bounds of an
//! index.
//!
//! The verifier follows every path through a program. Where paths meet, it checks what follows once for each state that
//! differs. A value in a register carries all that the verifier found out about it; a value that is read back from a
//! map carries nothing. So a program writes what it found to [`crate::maps::Scratch`] and puts a barrier there
//! ([`barrier_var`], as libbpf calls its macro). Then the verifier checks what follows once instead of once per path. See
//! docs/lab/kernels.md, what the verifier needs.

use core::{arch::asm, hint::assert_unchecked};

/// Makes the compiler read a value from memory again instead of using what it kept in registers.
#[inline(always)]
pub(crate) fn barrier_var<T>(value: &mut T) {
    // SAFETY: moves a register to itself; to the compiler, this might change the value. (An empty block would give the
    // next instruction two source lines, which the kernel rejects.)
    unsafe { asm!("{0} = {0}", inout(reg) &raw mut *value => _, options(nostack)) };
}

/// Returns the same pointer, but the compiler no longer knows that it is. So it reads the memory behind it again, and
/// the verifier knows nothing of what it reads.
#[inline(always)]
pub(crate) fn barrier_ptr<T>(mut pointer: *const T) -> *const T {
    // SAFETY: a move to itself.
    unsafe { asm!("{0} = {0}", inout(reg) pointer, options(nostack)) };
    pointer
}

/// Returns the same index, but the compiler no longer knows its range. So it keeps the comparison that proves the range
/// to the verifier.
#[inline(always)]
pub(crate) fn barrier_index(mut index: usize) -> usize {
    // SAFETY: a move to itself.
    unsafe { asm!("{0} = {0}", inout(reg) index, options(pure, nomem, nostack)) };
    index
}

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
