//! Hiding from the verifier, and from the compiler, what they know of a value.
//!
//! The verifier follows every way through a program, and once more for each state that differs where ways meet. A value in a
//! register carries all that was found out about it on its way; one that is read back from a map carries nothing. So a program
//! writes what it found to [`crate::maps::Scratch`], launders that, and what follows is verified once instead of once for
//! each way of getting there. See docs/architecture.md, what the verifier asks for.

use core::arch::asm;

/// Has the compiler read a value from memory again after this, in place of what it kept in registers.
#[inline(always)]
pub(crate) fn launder<T>(value: &mut T) {
    // SAFETY: a move to itself, which might, as far as the compiler knows, have changed the value. (Without
    // any instruction its line would be that of the next one twice, which the kernel rejects.)
    unsafe { asm!("{0} = {0}", inout(reg) &raw mut *value => _, options(nostack)) };
}

/// The same of what is only read: where it is, without what was found out about it.
#[inline(always)]
pub(crate) fn launder_ptr<T>(mut pointer: *const T) -> *const T {
    // SAFETY: a move to itself.
    unsafe { asm!("{0} = {0}", inout(reg) pointer, options(nostack)) };
    pointer
}

/// The same index, of which the compiler no longer knows the range: it leaves in the comparison that tells the verifier.
#[inline(always)]
pub(crate) fn launder_index(mut index: usize) -> usize {
    // SAFETY: a move to itself.
    unsafe { asm!("{0} = {0}", inout(reg) index, options(pure, nomem, nostack)) };
    index
}
