//! Without atomic instructions that return the old value: Linux 5.10 and 5.11.
//!
//! A lock counts the CPUs that want it. The one that adds 1 and then finds 1 has it: later ones find more, until it is given
//! back. When two come at once both find 2, take back what they added, and try again. On x86 an addition is a full barrier;
//! on other machines of that time what is written under the lock may be seen late.

use core::arch::asm;

use pping_common::abi::Series;

use super::add::add_32;

/// Whether there is [`replace`].
pub(crate) const HAS_REPLACE: bool = false;

/// Attempts to take the lock of a flow before giving up. Each takes twice as long as where one instruction does it, and costs the
/// verifier more.
pub(super) const ATTEMPTS: u32 = 12;

/// Attempts to take a lock that is held for a moment only, and seldom.
pub(super) const FEW_ATTEMPTS: u32 = 4;

/// There is no addition that returns the old value: the agent hands out all indexes itself.
#[inline(always)]
pub(crate) fn fetch_add_1(_: impl Into<*mut u32>) -> Option<u32> {
    None
}

/// There is no compare-and-exchange.
#[inline(always)]
pub(crate) fn replace(_: impl Into<*mut u32>, _: u32, _: u32) -> bool {
    false
}

/// Raises two numbers of a series to at least these. It fails when another CPU has the series and keeps it.
#[inline(always)]
pub(crate) fn raise(series: *mut Series, numbers: [(*mut u64, u64); 2]) {
    // SAFETY: fields of a map value, valid for the program's run.
    let is_less = |(number, value): (*mut u64, u64)| unsafe { number.read_volatile() } < value;
    // SAFETY: as above.
    let busy = unsafe { &raw mut (*series).busy };
    // Most samples are far from the extremes.
    if !(is_less(numbers[0]) || is_less(numbers[1])) || !take::<FEW_ATTEMPTS>(busy) {
        return;
    }
    for (number, value) in numbers {
        if is_less((number, value)) {
            // SAFETY: as above, and no other CPU raises it.
            unsafe { number.write_volatile(value) };
        }
    }
    give(busy);
}

/// Gives back a lock.
#[inline(always)]
pub(crate) fn unlock(busy: impl Into<*mut u32>) {
    give(busy.into());
}

/// Writes a word that is 0, after everything that was written before.
#[inline(always)]
pub(crate) fn publish(word: impl Into<*mut u32>, value: u32) {
    let word = word.into();
    barrier(word);
    add_32(word, value);
}

/// Takes a lock; `false` when another CPU has it and keeps it.
#[inline(always)]
pub(super) fn take<const ATTEMPTS: u32>(busy: impl Into<*mut u32>) -> bool {
    let busy = busy.into();
    for _ in 0..ATTEMPTS {
        add_32(busy, 1);
        barrier(busy);
        // SAFETY: part of a map value, valid for the program's run, and aligned.
        if unsafe { busy.read_volatile() } == 1 {
            barrier(busy);
            return true;
        }
        add_32(busy, 1_u32.wrapping_neg());
    }
    false
}

#[inline(always)]
fn give(busy: *mut u32) {
    barrier(busy);
    add_32(busy, 1_u32.wrapping_neg());
}

/// A barrier for the compiler: it moves no read or write across.
#[inline(always)]
fn barrier(word: *mut u32) {
    // SAFETY: a move to itself. (Without any instruction its line would be that of the next one twice, which the kernel
    // rejects.)
    unsafe { asm!("{0} = {0}", inout(reg) word => _, options(nostack)) };
}
